"""Journals: whole facts, whatever a crash or a disk has done to the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrfast.storage.journal import Journal


def test_a_cut_line_was_never_added(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    assert journal.read() == []
    journal.begin({"first": "\udcff"})
    begun = len(Path(journal.path).read_bytes())
    journal.add([1, 2])
    whole = Path(journal.path).read_bytes()
    for end in range(begun, len(whole)):
        Path(journal.path).write_bytes(whole[:end])
        again = Journal(str(tmp_path))
        assert again.read() == [{"first": "\udcff"}]
        again.add(3)
        assert again.read() == Journal(str(tmp_path)).read() == [{"first": "\udcff"}, 3]
    again.end()
    assert not again.exists()


def test_no_damaged_fact_is_believed(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.begin({"numbers": [12, 345]})
    whole = Path(journal.path).read_bytes()
    for at in range(len(whole)):
        Path(journal.path).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match="its line 1 is damaged|it has no whole line"):
            journal.read()


def test_only_the_last_line_may_be_damaged(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.begin("first")
    journal.add("second")
    before = len(Path(journal.path).read_bytes())
    journal.add("third")
    whole = Path(journal.path).read_bytes()
    for at in range(len(whole)):
        Path(journal.path).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        if at < before - 1:
            with pytest.raises(ValueError, match="its line [12] is damaged"):
                journal.read()
        elif at >= before:
            assert journal.read() == ["first", "second"]
    Path(journal.path).write_bytes(whole[: before - 3] + whole[before - 1 : -3])
    with pytest.raises(ValueError, match="its line 2 is damaged"):
        journal.read()
