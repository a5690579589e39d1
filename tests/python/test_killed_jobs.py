"""Killed jobs: the next run with the same output removes their files."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tfrfast as tfr
from record_files import write_rows
from tfrfast.writing.work_folder import WorkFolder

# Stops in the middle of the job, says so, and waits to be killed.
KILLED = """
import sys, time
import tfrfast as tfr
from tfrfast.writing.work_folder import WorkFolder
import {module}

def wait(*_, **__):
    print("working", flush=True)
    time.sleep(60)

{target} = wait
{call}
"""

COPY = 'tfr.copy("data/a", slice(None), "out/new")'
KEYS = 'tfr.build_keys("data/a", "id", folder="out")'
EXPORT = 'tfr.export("data/a", "out/new.parquet")'


def folders(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.is_dir())


def start_and_wait(code: str) -> subprocess.Popen[str]:
    job = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "working\n"
    return job


@pytest.mark.parametrize(
    ("module", "target", "call"),
    [
        ("tfrfast.jobs.running", "tfrfast.jobs.running.run_tasks", COPY),
        ("tfrfast.writing.key_files", "tfrfast.writing.key_files.write_keys", KEYS),
        ("tfrfast.jobs.running", "tfrfast.jobs.running.run_tasks", EXPORT),
    ],
    ids=["copy", "build_keys", "export"],
)
def test_the_next_run_removes_what_a_killed_one_left(
    module: str, target: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if call is EXPORT:
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    write_rows("data/a", ({"id": number} for number in range(50)))
    out = tmp_path / "out"
    code = KILLED.format(module=module, target=target, call=call)
    killed = start_and_wait(code)
    assert len(folders(out)) == 1
    with start_and_wait(code) as running, killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(folders(out)) == 2, "a job removed what another one needs"
        before = {path.name: path.stat().st_ino for path in out.iterdir()}
        exec(call, {"tfr": tfr})
        left = {path.name: path.stat().st_ino for path in out.iterdir() if path.is_dir()}
        assert len(left) == 1
        assert left.items() <= before.items(), "the folder of the job that runs is gone"
        running.kill()


def test_without_locks_no_folder_is_taken_from_a_job_that_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks here")

    monkeypatch.setattr("fcntl.flock", has_none)
    with WorkFolder(str(tmp_path / "out")) as first, WorkFolder(str(tmp_path / "out")):
        assert Path(first.path).is_dir()
