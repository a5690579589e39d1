"""Killed jobs: the next run with the same output removes their files."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from killed_calls import killed_after
from record_files import write_rows
from tfrfast.writing.work_folder import WorkFolder, hold

JOBS: dict[str, Any] = {
    "copy": lambda data, out: tfr.copy(data, slice(None), out / "new", overwrite=True),
    "export": lambda data, out: tfr.export(data, out / "new.parquet", overwrite=True),
    "build_keys": lambda data, out: tfr.build_keys(data, "id", folder=out),
    "build_steps": lambda data, out: tfr.build_steps(data, along="s/", index_folder=out),
}


def published(out: Path) -> dict[str, bytes]:
    """The files. The index that reading needs is not one of them."""
    return {path.name: path.read_bytes() for path in out.glob("[!.]*") if path.name != "index"}


@pytest.mark.parametrize("name", JOBS)
def test_the_next_run_removes_what_a_killed_one_left(name: str, tmp_path: Path) -> None:
    """Killed at each point. Its file is whole, or is not there."""
    if name == "export":
        pytest.importorskip("pyarrow")
    rows = ({"id": number, "s/n": [number] * 3} for number in range(50))
    data = write_rows(tmp_path / "data", rows)
    seen = []
    for calls in itertools.count():
        out = tmp_path / f"{calls}"
        out.mkdir()
        killed = killed_after(calls, lambda out=out: JOBS[name](data, out))
        seen.append(published(out))
        if not killed:
            break
        (left,) = out.glob(".*")
        running = left.with_name(f"{left.name[:-20]}{0:012}.tfrfast")
        with hold(str(running), wait=True):
            JOBS[name](data, out)
        assert [*out.glob(".*")] == [running], "only the folder of a job that runs stays"
        assert len(published(out)) == 1
    assert not [*out.glob(".*")]
    assert len(seen[-1]) == 1
    assert all(each in ({}, seen[-1]) for each in seen), "a file is not whole"
    assert seen[0] == {}
    assert seen[-2] == seen[-1], "it was not killed after it had published"


def test_without_locks_no_folder_is_taken_from_a_job_that_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks here")

    monkeypatch.setattr("fcntl.flock", has_none)
    with WorkFolder(str(tmp_path / "out")) as first, WorkFolder(str(tmp_path / "out")):
        assert Path(first.path).is_dir()
