"""How a notebook shows a Reader, a Batch, a Scan and a Loader's stats."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import damage
from record_files import write_rows
from tfrfast.columns.shown import png_of

FEATURES = {"label": tfr.FixedLen((), "int64"), "<b>": tfr.VarLen("bytes")}


class Cells(HTMLParser):
    """Collects the texts of a page, and checks that all elements end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(thing: object) -> list[str]:
    return Cells(thing._repr_html_()).texts  # type: ignore[attr-defined]


@pytest.fixture
def reader(tmp_path: Path) -> tfr.Reader:
    with tfr.ShardedWriter(tmp_path / "train", num_shards=12, sync=False) as writer:
        writer.write_batch(tfr.encode_examples({"label": range(2000), "<b>": [b"<i>"] * 2000}))
    return tfr.Reader(tmp_path / "train-*")


def test_a_reader_is_its_first_records(reader: tfr.Reader, tmp_path: Path) -> None:
    title, *cells = shown(reader)
    assert title == "Reader: 2,000 records, 12 shards"
    assert cells[:6] == ["column", "type", "shape", "row 0", "row 1", "row 2"]
    assert [cells[6], *cells[-3:]] == ["<b>", "0", "12", "24"]
    reader.close()
    assert shown(reader) == ["Reader(closed)"]
    with tfr.Writer(tmp_path / "x") as writer:
        for record in (b"\xff", b"", tfr.encode_example({"a": 1})):
            writer.write(record)
    assert "b'\\xff'" in shown(tfr.Reader(tmp_path / "x"))
    damage(str(tmp_path / "x"), 0)
    (title, error) = shown(tfr.Reader(tmp_path / "x", index="memory"))
    assert "record 0" in error
    tfr.Writer(tmp_path / "empty").close()
    assert shown(tfr.Reader(tmp_path / "empty"))[0] == "Reader: 0 records, 1 shard"


def test_pictures_are_shown(tmp_path: Path) -> None:
    picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    write_rows(
        tmp_path / "x",
        (
            {"steps/p": [png_of(picture)] * 2, "steps/n": [number, 0], "p": png_of(picture)}
            for number in range(5)
        ),
    )
    steps = tfr.Steps(str(tmp_path / "x"), along="steps/")
    for thing, count in (
        (tfr.Reader(tmp_path / "x"), 3),
        (next(iter(tfr.Loader(str(tmp_path / "x"), 4, features={"p": tfr.Image()}))), 3),
        (next(iter(tfr.Loader(str(tmp_path / "x"), 4, features={"p": tfr.Image(size=(4, 4))}))), 3),
        (steps, 6),
    ):
        page = thing._repr_html_()
        found = re.findall(r'<img src="data:image/png;base64,([^"]+)"', page)
        assert len(found) == count
        again = tfr.encode_example({"p": base64.b64decode(found[0])})
        assert (tfr.parse_example([again], {"p": tfr.Image()})["p"][0] == picture).all()
    assert "Steps: 10 steps of 5 episodes" in steps._repr_html_()


def test_a_packed_batch_has_fewer_packs_than_records(reader: tfr.Reader) -> None:
    packed = tfr.Packed(2, rows=1, lengths=np.ones(len(reader), np.int64))
    kinds = {"label": tfr.VarLen("int64"), "<b>": tfr.FixedLen((), "bytes")}
    batch = next(iter(tfr.Loader(reader, packed, features=kinds, seed=1)))
    title, *cells = shown(batch)
    assert title == "Batch: 2 records, 2 columns"
    assert cells[5:9] == ["label", "ndarray int64", "1x2", str(batch["label"][0].tolist())]
    assert cells[9:] == ["<b>", "Bytes", "2", "b'<i>'", "b'<i>'"]
