"""`tfr.shuffle(on_corruption="skip")`: the good records of damaged shards, shuffled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from orders import shuffled
from tfrfast.jobs.shuffling import good_records, job
from tfrfast.jobs.shuffling.job import ShuffleJob

SMALL_MEMORY = 16 << 20


def write_damaged(folder: Path) -> list[str]:
    """Three shards of about 5 MB: the last two have bad payloads, a bad length and a torn end."""
    random = np.random.default_rng(0)
    folder.mkdir()
    paths = [str(folder / f"part-{shard}") for shard in range(3)]
    for shard, path in enumerate(paths):
        with tfr.Writer(path, index=False) as writer:
            for number, size in enumerate(random.integers(0, 10_000, 1000).tolist()):
                writer.write(b"%d-%d " % (shard, number) + bytes(size))
        if shard:
            with tfr.Reader(path, index="memory") as reader:
                places = [reader.locate(number).offset for number in (5, 500, 900)]
            data = bytearray(Path(path).read_bytes())
            for place, byte in zip(places, (12, 0, 13), strict=True):
                data[place + byte] ^= 1
            Path(path).write_bytes(data[:-3])
    return paths


def good_records_of(paths: list[str]) -> list[bytes]:
    return [r for path in paths for r in tfr.Reader(path, index="memory", on_corruption="skip")]


def in_order(records: list[bytes], seed: int) -> list[bytes]:
    keys = shuffled(2**62, seed, last=len(records))
    return [records[i] for i in np.argsort(keys)]


@pytest.mark.parametrize("max_memory", [SMALL_MEMORY, 1 << 30])
def test_the_good_records_come_in_the_order_of_the_seed(tmp_path: Path, max_memory: int) -> None:
    paths = write_damaged(tmp_path / "in")
    with pytest.raises(
        tfr.RecordError, match='leave damaged records out with on_corruption="skip"'
    ):
        tfr.shuffle(paths, tmp_path / "out/x", num_shards=2, max_memory=max_memory)
    made = tfr.shuffle(
        paths, tmp_path / "out/x", num_shards=2, max_memory=max_memory, seed=3, on_corruption="skip"
    )
    good = good_records_of(paths)
    assert len(good) == made.num_records == 3000 - 2 * 4
    assert list(tfr.Reader(made.paths)) == in_order(good, 3)
    assert [each.path for each in made.skipped] == [paths[1]] * 4 + [paths[2]] * 4
    assert [each.records for each in made.skipped[:4]].count(1) >= 2


@pytest.mark.parametrize("steps", [1, 6, 9])
def test_an_interruption_loses_neither_records_nor_the_list_of_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    paths = write_damaged(tmp_path / "in")
    arguments: dict[str, Any] = {"max_memory": SMALL_MEMORY, "on_corruption": "skip"}
    whole = tfr.shuffle(paths, tmp_path / "whole/x", num_shards=2, **arguments)
    monkeypatch.setattr(job, "_STEP_BYTES", 1 << 20)
    monkeypatch.setattr(job, "_CHECKPOINT_BYTES", 1)
    monkeypatch.setattr(good_records, "_MAX_PIECE_BYTES", 1 << 18)
    advance = ShuffleJob._advance
    left = steps

    def interrupted(self: Any, newly: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        advance(self, newly)

    monkeypatch.setattr(ShuffleJob, "_advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tfr.shuffle(paths, tmp_path / "out/x", num_shards=2, **arguments)
    made = tfr.shuffle(paths, tmp_path / "out/x", num_shards=2, **arguments)
    assert list(tfr.Reader(made.paths)) == list(tfr.Reader(whole.paths))
    assert made.skipped == whole.skipped


def test_a_word_that_is_no_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='must be "raise" or "skip"'):
        tfr.shuffle("in", tmp_path / "x", num_shards=1, on_corruption="ignore")  # type: ignore[arg-type]
