"""Help in a terminal: a line or two per option, in groups, nothing hidden."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

from rich.text import Text

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

WIDEST = 100
# Longer names of options stand on a line of their own.
LEFT = 32


class Compact:
    """Lays help out in two columns without frames, so that the longest fits on two screens."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        if not panel.entries:
            return
        _print(console, Text(str(panel.title), style="bold"))
        if about := _plain(panel.description):
            _print(console, textwrap.fill(about, _width(), initial_indent="  ", subsequent_indent="  "))
        names = [_name(entry) for entry in panel.entries]
        left = min(LEFT, max(map(len, names)))
        for entry, name in zip(panel.entries, names, strict=True):
            _print(console, _row(name, _plain(entry.description), left, _width()))
        console.print()

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        if usage:
            _print(console, f"{_plain(usage).removesuffix(chr(10))}\n")

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        if text := _plain(description):
            _print(console, f"{_filled(text, _width())}\n")


def _print(console: Console, text: str | Text) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _width() -> int:
    # rich says 80 for every dumb terminal, whatever COLUMNS says.
    return min(WIDEST, shutil.get_terminal_size().columns)


def _plain(text: Any) -> str:
    return str(getattr(text, "plain", text) or "").strip() if not hasattr(text, "primary_renderable") else _inner(text)


def _inner(text: Any) -> str:
    """The text in what cyclopts wraps around it."""
    return _plain(text.primary_renderable)


def _name(entry: HelpEntry) -> str:
    return ", ".join(entry.display_labels_with_metavar)


def _row(name: str, about: str, left: int, width: int) -> str:
    lines = textwrap.wrap(about, width - left - 4) or [""]
    first = f"  {name:{left}}  {lines[0]}" if len(name) <= left else f"  {name}\n{' ' * (left + 4)}{lines[0]}"
    return "\n".join([first.rstrip(), *(" " * (left + 4) + line for line in lines[1:])])


def _filled(text: str, width: int) -> str:
    """Paragraphs of a text, each filled; indented lines as they are."""
    parts = text.split("\n\n")
    kept = [part if part.startswith(" ") or "\n  " in part else textwrap.fill(part, width) for part in parts]
    return "\n\n".join(kept)
