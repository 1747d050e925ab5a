"""Completion in a shell: the installed script as bash runs it; zsh's offers files in each list of arguments."""

import re
import shutil
import subprocess

import pytest

from capbias_core import cli

COMPLETE = """
source {home}/.bashrc
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _capbias; echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home folder of somebody who installs completion."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_commands_flags_and_files(home, capsys):
    assert cli.main(["--install-completion", "--shell", "bash"]) == 0
    assert "Completion script installed" in capsys.readouterr().out

    def complete(words: str) -> set[str]:
        script = COMPLETE.format(home=home, words=words)
        ended = subprocess.run(["bash", "--norc", "-c", script], check=True, capture_output=True, text=True)
        return set(ended.stdout.split())

    assert complete("capbias sc") == {"score"}
    assert complete("capbias view enc") == {"encoders"}
    assert complete("capbias score --see") == {"--seeds"}
    assert complete("capbias view change --fail") == {"--fail-if"}
    assert complete("capbias score --labels attr") == set(), "readline then completes file names"
    text = (home / ".local/share/bash-completion/completions/capbias").read_text()
    assert re.search(r"^complete -o default -F _capbias capbias$", text, re.MULTILINE)
