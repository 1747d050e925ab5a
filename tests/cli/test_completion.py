"""Completion in a shell: the installed script as bash runs it; zsh's offers files in each list of arguments."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.browser import ROOT

COMPLETE = """
source {home}/.bashrc
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _capbias; echo "${{COMPREPLY[@]}}"
"""


def install(shell: str, home) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "capbias_core", "--install-completion", "--shell", shell]
    variables = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=variables, check=True, capture_output=True, text=True)


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_commands_flags_and_files(tmp_path):
    assert "Completion script installed" in install("bash", tmp_path).stdout

    def complete(words: str) -> set[str]:
        script = COMPLETE.format(home=tmp_path, words=words)
        ended = subprocess.run(["bash", "--norc", "-c", script], check=True, capture_output=True, text=True)
        return set(ended.stdout.split())

    assert complete("capbias sc") == {"score"}
    assert complete("capbias view lea") == {"leaderboard"}
    assert complete("capbias score --see") == {"--seeds"}
    assert complete("capbias view change --fail") == {"--fail-if"}
    assert complete("capbias score --labels attr") == set(), "readline then completes file names"
    text = (tmp_path / ".local/share/bash-completion/completions/capbias").read_text()
    assert re.search(r"^complete -o default -F _capbias capbias$", text, re.MULTILINE)


@pytest.mark.long
def test_zsh_offers_files_where_nothing_else_fits(tmp_path):
    install("zsh", tmp_path)
    (file,) = tmp_path.glob(".zsh/completions/*")
    text = file.read_text()
    assert "#compdef capbias" in text and "'score:Score captions" in text and "--fail-if[" in text
    lists = text.count("_arguments \\\n")
    assert lists > 20 and text.count("' || _files\n") == lists
