"""The tokens of a kept caption set: what is read from the file is what the captions say, whatever became of it."""

from __future__ import annotations

import pandas as pd
import pytest

from capbias_core.prepare.tokens import Tokens
from capbias_core.workspace import tokens
from capbias_core.workspace.store import Workspace
from capbias_core.workspace.tokens import FORM, kept_tokens
from tests.collections_ import keep

CAPTIONS = ["A dog, a cat.", "", "the café's <unk> dog", "a  man\twith a T-shirt", "Café"]


def kept(folder, captions=CAPTIONS):
    workspace = Workspace(folder)
    frame = pd.DataFrame({"image_id": [str(n) for n in range(len(captions))], "caption_index": 0, "caption": captions})
    return workspace, workspace.keep("captions", "m", frame, "c", "s")


def said(encoded: Tokens) -> list[list[str]]:
    assert list(encoded.vocabulary.values()) == list(range(len(encoded.words)))
    return [caption.split() for caption in encoded]


TOKENS = [
    ["a", "dog", "a", "cat"],
    [],
    ["the", "café", "'s", "<unk>", "dog"],
    ["a", "man", "with", "a", "t", "shirt"],
    ["café"],
]


def test_what_is_kept_is_what_the_captions_say(tmp_path, monkeypatch):
    workspace, item = kept(tmp_path)
    assert said(kept_tokens(workspace, item.hash)) == TOKENS
    monkeypatch.setattr(tokens, "keep_tokens", None)  # the second time nothing is made
    again = kept_tokens(workspace, item.hash)
    assert said(again) == TOKENS and again.words == Tokens.of(CAPTIONS).words
    assert len(again) == 5 and again.caption.tolist() == Tokens.of(CAPTIONS).caption.tolist()


@pytest.mark.parametrize("left", [b"", b"no Arrow", None])
def test_a_file_that_is_damaged_or_of_another_form_is_made_anew(tmp_path, left):
    workspace, item = kept(tmp_path)
    file = workspace.sidecar_path(item.hash, f"tokens-{FORM}.arrow")
    kept_tokens(workspace, item.hash)
    if left is None:
        file.rename(workspace.sidecar_path(item.hash, f"tokens-{FORM - 1}.arrow"))
    else:
        file.write_bytes(left)
    assert said(kept_tokens(workspace, item.hash)) == TOKENS
    assert file.stat().st_size > 100


def test_they_come_with_an_import_and_go_with_the_last_item(tmp_path):
    workspace = Workspace(tmp_path / "home")
    item = keep(workspace, captions=[{"image_id": 1, "caption": "a dog"}, {"image_id": 2, "caption": "a cat"}])["m"]
    file = workspace.sidecar_path(item.hash, f"tokens-{FORM}.arrow")
    assert file.exists()
    twin = workspace.keep("captions", "twin", workspace.frame(item.hash), "c", "s")
    workspace.delete(item)
    assert file.exists() and said(kept_tokens(workspace, twin.hash)) == [["a", "dog"], ["a", "cat"]]
    workspace.delete(twin)
    assert list((tmp_path / "home" / "data").iterdir()) == []
