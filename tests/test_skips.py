"""A run of the tests without the shared files says at its end that real numbers were not tested."""

from types import SimpleNamespace

import pytest

from tests import conftest


@pytest.mark.parametrize(("skipped", "said"), [([], 0), (["no Chromium"], 0), (["no Chromium", "shared", "shared"], 2)])
def test_the_end_of_a_run_names_what_was_not_tested(skipped, said, tmp_path, monkeypatch):
    monkeypatch.setattr(conftest, "SHARED", tmp_path)
    with pytest.raises(pytest.skip.Exception) as without:
        conftest.shared_folder("coco-bias", "the real captions")
    reasons = {"shared": str(without.value), "no Chromium": "no Chromium"}
    tests = [SimpleNamespace(longrepr=("test.py", 1, f"Skipped: {reasons[name]}")) for name in skipped]
    lines: list[str] = []
    reporter = SimpleNamespace(stats={"skipped": tests}, section=lambda *_, **__: None, line=lines.append)
    conftest.pytest_terminal_summary(reporter)
    assert [line.split(" tests")[0] for line in lines] == [str(said)] * bool(said)
