"""Writers that die at any moment leave whole shards or none. TFRFAST_KILLS is their number."""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest

import tfrfast as tfr

KILLS = int(os.environ.get("TFRFAST_KILLS", "15"))
MAX_SECONDS = 0.06


def write_for_ever(data: Path, generation: int, progress: int) -> None:
    """Replaces `data/shard` and a set of shards again and again. Prints a line when all exist."""
    step = 0
    while True:
        step += 1
        content = [b"%d %d %d" % (generation, step, i) * 20 for i in range(200 + step)]
        content.append(b"%d" % (len(content) + 1))
        with tfr.Writer(data / "shard", overwrite=True, sync=step % 2 == 0) as writer:
            writer.write_batch(content)
        with tfr.ShardedWriter(data / "set", num_shards=3, overwrite=True, sync=False) as writers:
            writers.write_batch(content)
        if step == 1:
            os.write(progress, b"written")


def can_make_unnamed_files(folder: Path) -> bool:
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return False
    return True


def kill_a_writer(data: Path, generation: int, has_written: bool) -> None:
    """Kills a writer some time after its beginning, or after it has written everything once."""
    progress, childs_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(data, generation, childs_end)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(childs_end)
    if has_written:
        os.read(progress, 1)
    time.sleep(random.Random(generation).uniform(0, MAX_SECONDS))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(progress)
    assert os.WIFSIGNALED(status), "the writer ended by itself"


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_a_killed_writer_leaves_whole_shards_or_none(tmp_path: Path) -> None:
    has_unnamed_files = can_make_unnamed_files(tmp_path)
    for generation in range(KILLS):
        # Two writers for each folder: the first makes shards, the second replaces them.
        data = tmp_path / f"data-{generation // 2}"
        data.mkdir(exist_ok=True)
        has_written = generation % 4 != 0
        kill_a_writer(data, generation, has_written)
        names = os.listdir(data)
        assert "shard" in names or not has_written
        for name in names:
            if name.startswith(".tmp-") and not has_unnamed_files:
                continue
            with tfr.Reader(data / name) as reader:
                records = list(reader)
            if name == "shard":
                assert int(records[-1]) == len(records)
                generations = {record.split()[0] for record in records[:-1]}
                assert len(generations) == 1
