"""Weights of a detector that a visitor uploads."""

import pytest

from capbias_core.errors import CapbiasError
from capbias_core.vision.detect import find_weights, keep_weights, saved_weights


def test_saved_weights_are_found_by_their_name_and_never_replaced(tmp_path):
    given, folder = tmp_path / "mine.onnx", tmp_path / "weights"
    given.write_bytes(b"first")
    assert keep_weights(folder, given).read_bytes() == b"first" and saved_weights(folder) == ["mine.onnx"]
    assert find_weights("mine.onnx", folder).path == str(folder / "mine.onnx")
    keep_weights(folder, given)  # the same again
    given.write_bytes(b"second")
    with pytest.raises(CapbiasError):
        keep_weights(folder, given)
    assert (folder / "mine.onnx").read_bytes() == b"first"
    for name in ("a b.onnx", ".onnx", "x.pt.exe"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(CapbiasError):
            keep_weights(folder, tmp_path / name)
