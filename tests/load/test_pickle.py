"""Pickles of other people: plain data is read, nothing else is, and nothing runs."""

import collections
import copyreg
import datetime
import os
import pickle
import struct

import numpy as np
import pytest

from capbias_core.errors import CapbiasError
from capbias_core.kinds import CAPTIONS
from capbias_core.load import lic_release
from capbias_core.load.formats import sheets_of
from capbias_core.workspace.ingest import read_part

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


@pytest.mark.parametrize("protocol", range(6))
def test_a_command_does_not_run(tmp_path, protocol):
    mark = tmp_path / "mark"
    data = pickle.dumps([ROW, {"pred": Calls(os.system, f"echo ran > {mark}")}], protocol=protocol)
    got = refused(tmp_path / "a.pkl", data)
    assert got == f"a.pkl is a pickle that asks for {os.system.__module__}.system."
    assert not mark.exists()
    pickle.loads(data)  # the same bytes do run where nothing guards them
    assert mark.exists()


NAMES = [
    (Calls(eval, "1"), "builtins.eval"),
    (Calls(getattr, "x", "upper"), "builtins.getattr"),
    (Calls(bytearray, 10), "builtins.bytearray"),
    (np.float64(0.5), "numpy"),
    (np.arange(3), "numpy"),
    (collections.OrderedDict(a=1), "collections.OrderedDict"),
    (datetime.date(2022, 1, 1), "datetime.date"),
]


def test_names_are_refused_by_name(tmp_path):
    for value, name in NAMES:
        assert f"asks for {name}" in refused(tmp_path / "a.pkl", pickle.dumps([ROW, {"x": value}], protocol=4))


def test_extension_codes_are_refused_even_where_they_are_cached(tmp_path):
    copyreg.add_extension("builtins", "eval", 240)
    try:
        data = b"\x80\x02]\x82\xf0a."
        assert pickle.loads(data) == [eval]  # now cached: find_class would not be asked again
        assert "the opcode EXT1" in refused(tmp_path / "a.pkl", data)
    finally:
        copyreg.remove_extension("builtins", "eval", 240)


OPCODES = [
    (b"\x80\x02]Pobject\n.", "the opcode PERSID"),
    (b"\x80\x02]K\x01Q.", "the opcode BINPERSID"),
    (b"\x80\x04]r\xff\xff\xff\x7f.", "would fill the memory (memo place 2147483647"),
    (b"\x80\x04]p1999999999\n.", "would fill the memory (memo place 1999999999"),
    (b"\x80\x05\x96" + struct.pack("<Q", 2**62), "broken"),
    (b"\x80\x05\x96" + struct.pack("<Q", 1) + b"x.", "the opcode BYTEARRAY8"),
    (b"\x80\x04\x8d" + struct.pack("<Q", 2**62), "broken"),
    (b"\x80\x04\x8b\xff\xff\xff\x7f", "broken"),
    (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"].", "broken"),
    (b"\x80\x04}}K\x01s.", "broken"),
    (b"\x80\x04]h\x05.", "broken"),
    (b"\x80\x04\x8f.", "the opcode EMPTY_SET"),
    (pickle.dumps([{"x": b"bytes"}]), "the opcode SHORT_BINBYTES"),
    (pickle.dumps([{1: "x"}]), "keys that are not text"),
    (pickle.dumps({"a": 1}), "holds a dict without records"),
    (pickle.dumps(["a"]), "holds a list without records"),
    (pickle.dumps([ROW]) + pickle.dumps([ROW]), "that ends at byte"),
    (b"\x80\x04X\x03\x00\x00\x00\xed\xa0\x80\x8c\x01x\x93.", "asks for ?.x"),
]


def test_opcodes_that_plain_data_has_no_use_for(tmp_path):
    for data, message in OPCODES:
        assert message in refused(tmp_path / "a.pkl", data)


def test_shared_lists_and_text_do_not_unfold_into_the_memory(tmp_path, monkeypatch):
    data = pickle.dumps([{"img_id": 1, "caption_list": ["a man"] * 3000}] * 3000)
    assert "unfolds to far more than its size" in refused(tmp_path / "a.pkl", data)
    monkeypatch.setattr(lic_release, "MOST_TEXT", 10_000)
    text = "a man " * 200
    data = pickle.dumps([{"img_id": number, "pred": text} for number in range(100)])
    assert "unfolds to far more than its size" in refused(tmp_path / "a.pkl", data)


def test_text_of_python_2(tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(b"(lp1\n(dp2\nS'img_id'\np3\nI785\nsS'pred'\np4\nS'a man'\np5\nsa.")
    assert read_part(path, CAPTIONS).frame.values.tolist() == [["785", 0, "a man"]]
