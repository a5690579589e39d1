"""Readers in forked children and their children, and beside faulthandler."""

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from children import is_right_in_child, run_program
from tfrecord_model import write_shard

RECORDS = [b"%d" % i * 5 for i in range(5000)]


def test_children_of_children(tmp_path: Path, io: Any) -> None:
    reader = tfr.Reader(write_shard(tmp_path / "shard", RECORDS), io=io, threads=3)
    assert reader[:].tolist() == RECORDS

    def reads() -> bool:
        return reader[:].tolist() == RECORDS

    assert is_right_in_child(lambda: reads() and is_right_in_child(reads))


CUT = """
import faulthandler, functools, os, sys
# With all threads, faulthandler would walk the stacks of running threads, and sometimes crash.
enable = functools.partial(faulthandler.enable, all_threads=False)
if sys.argv[2] == "before":
    enable()
import tfrfast as tfr
import threading
reader = tfr.Reader(sys.argv[1], io="mmap")
if sys.argv[2] == "after":
    enable()
os.truncate(sys.argv[1], 4096)
def read():
    for number in range(4000, 4100):
        try:
            reader[number]
        except tfr.TruncatedRecordError:
            continue
        print("no error")
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
read()
if sys.argv[2] == "again":
    enable()
    read()
    faulthandler.disable()
    enable()
    read()
assert reader[0] == b"0" * 5
print("alive")
"""


@pytest.mark.parametrize("when", ["never", "before", "after", "again"])
def test_a_mapped_shard_is_cut_beside_faulthandler(tmp_path: Path, when: str) -> None:
    path = write_shard(tmp_path / "shard", RECORDS)
    done = run_program(CUT, path, when)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
    if when in ("never", "before"):
        assert "Fatal" not in done.stderr


def test_a_real_crash_is_still_reported(tmp_path: Path) -> None:
    code = """
        import faulthandler, os, resource, signal, sys
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable()
        import tfrfast as tfr
        reader = tfr.Reader(sys.argv[1], io="mmap")
        os.kill(os.getpid(), signal.SIGBUS)
    """
    done = run_program(code, write_shard(tmp_path / "shard", RECORDS))
    assert done.returncode < 0
    assert "Fatal Python error: Bus error" in done.stderr
