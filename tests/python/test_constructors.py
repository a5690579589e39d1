"""Objects whose constructor raised. Tracebacks hold them, and debuggers call their methods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr


def half_made(make: Callable[[], object], error: type[Exception]) -> Any:
    with pytest.raises(error) as caught:
        make()
    return next(
        entry.frame.f_locals["self"] for entry in caught.traceback if "self" in entry.frame.f_locals
    )


def test_a_reader_whose_constructor_raised_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    path.write_bytes(b"no frame at all")
    reader = half_made(lambda: tfr.Reader(path), tfr.CorruptRecordError)
    assert reader.closed
    assert repr(reader) == "Reader(closed)"
    uses: list[Callable[[], object]] = [
        lambda: len(reader),
        lambda: reader[0],
        lambda: list(reader),
        lambda: reader.read([0]),
        lambda: reader.shards,
    ]
    for use in uses:
        with pytest.raises(ValueError, match="never opened: its constructor raised"):
            use()


@pytest.mark.parametrize(
    "make", [tfr.Writer, lambda path: tfr.ShardedWriter(path, num_shards=2)], ids=["one", "many"]
)
def test_a_writer_whose_constructor_raised_is_closed(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    writer = half_made(lambda: make(tmp_path / "file" / "shard"), OSError)
    assert writer.closed
    for use in (lambda: writer.write(b""), writer.close, writer.abort, lambda: writer.num_records):
        with pytest.raises(ValueError, match="never opened: its constructor raised"):
            use()
