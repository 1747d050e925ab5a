"""Pickles of other people: plain data is read, nothing else is, and nothing runs."""

import copyreg
import os
import pickle
import struct

import numpy as np
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.load import lic_release
from capbias_core.load.formats import sheets_of

ROW = {"img_id": 785, "pred": "a man", "bb_gender": "Male"}


class Calls:
    """Pickles as a call of `function`."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def refused(path, data) -> str:
    """What the error says of a pickle."""
    path.write_bytes(data)
    with pytest.raises(CapbiasError) as error:
        sheets_of(path, path.name)
    return error.value.message


@pytest.mark.parametrize("protocol", (2, 4, 5))
def test_a_command_does_not_run(tmp_path, protocol):
    mark = tmp_path / "mark"
    data = pickle.dumps([ROW, {"pred": Calls(os.system, f"echo ran > {mark}")}], protocol=protocol)
    assert "GLOBAL" in refused(tmp_path / "a.pkl", data)
    assert not mark.exists()
    pickle.loads(data)  # the same bytes do run where nothing guards them
    assert mark.exists()


def test_extension_codes_are_refused_even_where_they_are_cached(tmp_path):
    copyreg.add_extension("builtins", "eval", 240)
    try:
        data = b"\x80\x02]\x82\xf0a."
        assert pickle.loads(data) == [eval]  # now cached: find_class would not be asked again
        assert "the opcode EXT1" in refused(tmp_path / "a.pkl", data)
    finally:
        copyreg.remove_extension("builtins", "eval", 240)


REFUSED = [
    (pickle.dumps([ROW, {"x": np.float64(0.5)}], 4), "the opcode STACK_GLOBAL"),
    (pickle.dumps([ROW, {"x": Calls(eval, "1")}], 4), "the opcode STACK_GLOBAL"),
    (b"\x80\x02]Pobject\n.", "the opcode PERSID"),
    (b"\x80\x02]K\x01Q.", "the opcode BINPERSID"),
    (b"\x80\x04]r\xff\xff\xff\x7f.", "the memo place 2147483647"),
    (b"\x80\x05\x96" + struct.pack("<Q", 1) + b"x.", "the opcode BYTEARRAY8"),
    (b"\x80\x04\x8d" + struct.pack("<Q", 2**62), "not of the LIC release"),
    (b"\x80\x04}}K\x01s.", "not of the LIC release"),
    (b"\x80\x04]h\x05.", "not of the LIC release"),
    (pickle.dumps([ROW])[:-3], "not of the LIC release"),
    (pickle.dumps([{"x": b"bytes"}]), "the opcode SHORT_BINBYTES"),
    (pickle.dumps({"a": 1}), "no list of records with img_id"),
    (pickle.dumps([{"image_id": 1, "caption": "a dog"}]), "no list of records with img_id"),
    (b"\x80\x04X\x03\x00\x00\x00\xed\xa0\x80\x8c\x01x\x93.", "the opcode STACK_GLOBAL"),
]


def test_what_plain_data_has_no_use_for_is_refused(tmp_path):
    for data, message in REFUSED:
        assert message in refused(tmp_path / "a.pkl", data)


def test_shared_and_endless_lists_do_not_unfold_into_the_memory(tmp_path, monkeypatch):
    endless = [ROW]
    endless.append({"img_id": 1, "caption_list": endless})
    assert "Circular reference" in refused(tmp_path / "a.pkl", pickle.dumps(endless))
    monkeypatch.setattr(lic_release, "MOST_JSON", 10_000)
    data = pickle.dumps([{"img_id": 1, "caption_list": ["a man"] * 300}] * 300)
    assert "unfolds to far more than its size" in refused(tmp_path / "a.pkl", data)
