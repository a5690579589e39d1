"""An export writes every record whole, or nothing."""

from pathlib import Path

import pytest

import tfrfast as tfr
from cli_files import run
from record_files import write_rows
from record_kinds import event, sequence_example

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("other", [event(7), sequence_example(7)], ids=["event", "sequence"])
@pytest.mark.parametrize("sample", [None, 10])
def test_a_set_with_another_kind_of_record_is_refused(
    tmp_path: Path, other: bytes, sample: int | None
) -> None:
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(3000):
            writer.write_example({"label": number})
        writer.write(other)
    with pytest.raises(tfr.FeatureError, match="Record 3000 of .*x' holds a t.*, not a tf.train"):
        tfr.export(tmp_path / "x", tmp_path / "out.parquet", sample=sample)
    assert not (tmp_path / "out.parquet").exists()
    assert run("export", str(tmp_path / "x"), "--out", str(tmp_path / "out.parquet")) == 2


def test_events_in_files_whose_names_are_not_utf8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd, plain = (str(tmp_path / name) for name in ("events-\udcff", "events"))
    for path in (odd, plain):
        with tfr.Writer(path) as writer:
            writer.write(event(7))
    assert run("export", odd, plain, "--out", str(tmp_path / "out.parquet")) == 2
    assert "is not UTF-8" in capsys.readouterr().err
    assert run("export", odd, "--out", f"{odd}.parquet") == 0


def test_a_feature_of_a_single_late_record_is_exported(tmp_path: Path) -> None:
    write_rows(
        tmp_path / "x",
        ({"label": number} | ({"rare": 1.5} if number == 2222 else {}) for number in range(3000)),
    )
    tfr.export(tmp_path / "x", tmp_path / "out.parquet")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert [n for n, each in enumerate(table["rare"].to_pylist()) if each is not None] == [2222]
