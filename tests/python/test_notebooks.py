"""How a notebook shows a Reader, a Batch, a Scan and a Loader's stats."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

import tfrfast as tfr

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


def test_a_reader_is_its_first_shards(reader: tfr.Reader) -> None:
    title, *cells = shown(reader)
    assert title == "Reader: 2,000 records, 12 shards, of which the first 10"
    assert len(cells) == 3 * (1 + 10)
    reader.close()
    assert shown(reader) == ["Reader(closed)"]


def test_a_batch_is_its_columns(reader: tfr.Reader) -> None:
    batch = next(iter(tfr.Loader(reader, 8, features=FEATURES, shuffle=False)))
    title, *cells = shown(batch)
    assert title == "Batch: 8 rows, 2 columns"
    assert cells[4:8] == ["label", "ndarray int64", "8", "0"]
    assert cells[8] == "<b>"
    assert cells[-1] == "[b'<i>']"
    assert shown(batch[:0])[0] == "Batch: 0 rows, 2 columns"


def test_a_scan_is_its_features(reader: tfr.Reader) -> None:
    title, *cells = shown(tfr.scan(reader, features=FEATURES, record_column=True))
    assert title == "Scan: 2,000 rows, which are read when someone asks"
    assert {"label", "<b>", "record"} <= set(cells)


def test_stats_are_sums(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 500)
    assert len(list(loader)) == 4
    assert "2,000" in shown(loader.stats())
