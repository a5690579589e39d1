"""The Loader: every record exactly once, in the plan's order, with any number of threads."""

from __future__ import annotations

import functools
import hashlib
import json
import pickle
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import in_threads, run_program
from orders import order_of
from record_files import flip_byte, frame_starts, write_shard

NUM_RECORDS = 761


def payload_of(number: int) -> bytes:
    return b"%d:" % number + bytes([number % 251]) * (number * 7 % 300)


def write_shards(folder: Path, sizes: list[int]) -> list[str]:
    numbers = iter(range(sum(sizes)))
    return [
        write_shard(folder / f"data-{shard}", [payload_of(next(numbers)) for _ in range(size)])
        for shard, size in enumerate(sizes)
    ]


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return write_shards(tmp_path, [300, 0, 200, 261])


@pytest.fixture
def reader(shards: list[str]) -> tfr.Reader:
    return tfr.Reader(shards, index="memory")


def received(loader: tfr.Loader) -> list[int]:
    """One epoch's record numbers. Checks that each comes with its own bytes."""
    numbers: list[int] = []
    for batch in loader:
        for row, number in enumerate(batch.indices.tolist()):
            assert batch[row] == payload_of(number)
            if batch.valid[row]:
                numbers.append(number)
    return numbers


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("prefetch", [1, 9])
@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_batches_are_the_plans_whatever_threads_prefetch_and_io(
    shards: list[str], shuffle: bool, threads: int, prefetch: int, io: str
) -> None:
    reader = tfr.Reader(shards, index="memory", io=io)
    loader = tfr.Loader(reader, 50, shuffle=shuffle, seed=3, threads=threads, prefetch=prefetch)
    plan = tfr.Plan(order_of(shuffle, 3), 50, num_records=len(reader))
    for epoch in range(3):
        assert loader.epoch == epoch
        for step, batch in enumerate(loader):
            np.testing.assert_array_equal(batch.indices, plan.indices(epoch, step))
            assert batch.tolist() == [payload_of(i) for i in batch.indices.tolist()]
        assert step == plan.steps - 1


def test_no_records_no_batches(tmp_path: Path) -> None:
    empty = write_shards(tmp_path, [0])
    loader = tfr.Loader(empty, 8, remainder="pad")
    assert len(loader) == 0
    assert list(loader) == []
    assert list(loader) == []


def test_every_batch_may_be_kept(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 10, threads=3)
    kept = [batch for _ in range(3) for batch in list(loader)]
    counts = Counter(number for batch in kept for number in batch.indices.tolist())
    assert set(counts.values()) == {3}
    assert all(batch.tolist() == [payload_of(i) for i in batch.indices.tolist()] for batch in kept)


def test_each_for_is_the_next_epoch_even_after_a_break(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 50)
    plan = tfr.Plan(tfr.Shuffle(), 50, num_records=len(reader))
    batch = next(iter(loader))
    np.testing.assert_array_equal(batch.indices, plan.indices(0, 0))
    assert (loader.epoch, loader.step) == (0, 1)
    first = next(iter(loader))
    np.testing.assert_array_equal(first.indices, plan.indices(1, 0))
    loader.set_epoch(7)
    np.testing.assert_array_equal(next(iter(loader)).indices, plan.indices(7, 0))


def test_soak_stops_and_resumes_deliver_each_record_once(shards: list[str]) -> None:
    """50 runs, each stopped and resumed at random with other threads, depths, worlds, batch sizes."""
    reader = tfr.Reader(shards, index="memory")
    expected = sorted(hashlib.sha256(payload_of(i)).digest() for i in range(NUM_RECORDS))
    dice = random.Random(0)
    for run in range(50):
        shuffle = dice.random() < 0.8
        digests: list[bytes] = []
        state = None
        while state is None or state["epoch"] == 0:
            world, batch_size = dice.choice([1, 2, 3, 8]), dice.choice([1, 7, 32, 300])
            global_steps = dice.randint(1, 12)
            states = []
            for rank in range(world):
                loader = tfr.Loader(
                    reader,
                    batch_size,
                    shuffle=shuffle,
                    seed=run,
                    world=world,
                    rank=rank,
                    threads=dice.randint(1, 4),
                    prefetch=dice.randint(1, 6),
                )
                if state is not None:
                    loader.load_state_dict(json.loads(json.dumps(state)))
                epoch = iter(loader)
                for _ in range(global_steps):
                    batch = next(epoch, None)
                    if batch is None:
                        break
                    digests += [hashlib.sha256(record).digest() for record in batch.tolist()]
                states.append(loader.state_dict())
                loader.close()
            state = states[0]
            assert len(json.dumps(state)) < 1024
        assert sorted(digests) == expected


def test_a_state_is_exact_for_what_was_received_not_for_what_was_read_ahead(
    reader: tfr.Reader,
) -> None:
    loader = tfr.Loader(reader, 10, threads=4, prefetch=20)
    epoch = iter(loader)
    for _ in range(3):
        next(epoch)
    time.sleep(0.05)  # lets the workers run ahead; the state must not count their batches
    assert loader.state_dict()["position"] == 30


def test_a_state_of_other_data_or_another_order_is_refused(
    reader: tfr.Reader, tmp_path: Path
) -> None:
    state = tfr.Loader(reader, 10, seed=1).state_dict()
    with pytest.raises(ValueError, match=r"seed=1.*but this loader's is .*seed=2"):
        tfr.Loader(reader, 10, seed=2).load_state_dict(state)
    (tmp_path / "other").mkdir()
    other = write_shards(tmp_path / "other", [300, 0, 261, 200])
    with pytest.raises(ValueError, match="fingerprint"):
        tfr.Loader(tfr.Reader(other, index="memory"), 10, seed=1).load_state_dict(state)
    with pytest.raises(ValueError, match="Not a Loader state"):
        tfr.Loader(reader, 10).load_state_dict({})
    with pytest.raises(ValueError, match="version 99"):
        tfr.Loader(reader, 10, seed=1).load_state_dict({**state, "version": 99})


def test_the_state_after_the_last_batch_continues_with_the_next_epoch(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 50)
    epoch = iter(loader)
    for _ in range(16):
        next(epoch)
    resumed = tfr.Loader(reader, 50)
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == []  # the first `for` finishes that epoch
    assert sorted(received(resumed)) == list(range(NUM_RECORDS))
    assert resumed.epoch == 2


def test_pickles_with_its_position(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 50, order=tfr.Shuffle(9, indices=np.arange(500)), world=2, rank=1)
    epoch = iter(loader)
    next(epoch)
    copy = pickle.loads(pickle.dumps(loader))
    assert [b.indices.tolist() for b in copy] == [b.indices.tolist() for b in epoch]


def test_a_damaged_record_raises_at_its_place_and_is_not_counted(
    shards: list[str],
) -> None:
    damaged = frame_starts([payload_of(300)])[1] + 12  # the payload of record 301
    flip_byte(shards[2], damaged)
    loader = tfr.Loader(
        tfr.Reader(shards, index="memory"), 50, shuffle=False, threads=3, prefetch=8
    )
    epoch = iter(loader)
    for step in range(6):
        assert next(epoch).indices[0] == step * 50
    for _ in range(3):
        with pytest.raises(tfr.CorruptRecordError, match=r"record 1 of .*\(record 301 of all\)"):
            next(epoch)
        assert loader.state_dict()["position"] == 300
    with open(shards[2], "r+b") as shard:
        shard.seek(damaged)
        shard.write(payload_of(301)[:1])
    assert next(epoch).indices[0] == 300  # the record is mended, and tried again
    lenient = tfr.Loader(
        tfr.Reader(shards, index="memory", on_corruption="skip"), 50, shuffle=False
    )
    assert received(lenient) == list(range(NUM_RECORDS))


def test_skipped_records_are_left_out_of_their_batch(shards: list[str]) -> None:
    flip_byte(shards[0], 12)
    reader = tfr.Reader(shards, index="memory", on_corruption="skip")
    loader = tfr.Loader(reader, 50, shuffle=False)
    assert received(loader) == list(range(1, NUM_RECORDS))
    assert [each.records for each in reader.skipped] == [1]
    last = list(tfr.Loader(reader, 50, shuffle=False, remainder="pad"))[-1]
    assert last.indices.tolist() == [*range(750, NUM_RECORDS), *range(1, 39)]  # without record 0
    assert last.valid.tolist() == [True] * 11 + [False] * 38


def test_stats_add_up(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 50, remainder="pad")
    batches = list(loader)
    stats = loader.stats()
    assert stats.records == NUM_RECORDS
    assert stats.batches == 16
    assert stats.bytes == sum(batch.data.nbytes for batch in batches)
    assert stats.consumer_waited_s >= 0


def test_slow_consumer_shows_in_the_workers_waiting(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 1, threads=1, prefetch=1)
    for _ in loader:
        time.sleep(0.005)
        stats = loader.stats()
        if stats.workers_waited_s > stats.consumer_waited_s:
            break  # sooner or later, however busy the machine is
    else:
        pytest.fail(f"{stats}")


def test_closing_the_reader_does_not_pull_it_from_under_the_workers(reader: tfr.Reader) -> None:
    loader = tfr.Loader(reader, 10, threads=2)
    epoch = iter(loader)
    next(epoch)
    reader.close()
    assert sum(len(batch) for batch in epoch) == NUM_RECORDS - 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads is 0, but must be from 1"),
        ({"prefetch": 0}, "prefetch is 0, but must be from 1"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"rank": 1}, "rank"),
        ({"remainder": "throw"}, "remainder"),
        ({"order": tfr.Shuffle(indices=[NUM_RECORDS])}, "761"),
    ],
)
def test_bad_arguments_are_refused(
    reader: tfr.Reader, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises((ValueError, IndexError), match=message):
        tfr.Loader(reader, **{"batch_size": 5, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"threads": 0}, {"prefetch": 0}, {"shuffle": 3}, {"seed": 2**64}]
)
def test_bad_arguments_are_refused_before_a_file_is_opened(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="|".join(wrong)):
        tfr.Loader("no such file", 5, **wrong)


@pytest.mark.parametrize("ending", ["pass", "sys.exit(0)", "del loader, epoch", "loader.close()"])
def test_the_interpreter_exits_cleanly_in_mid_epoch(shards: list[str], ending: str) -> None:
    done = run_program(
        f"""
        import sys, tfrfast as tfr
        loader = tfr.Loader(sys.argv[1:], 3, threads=4, prefetch=50)
        epoch = iter(loader)
        next(epoch)
        {ending}
        """,
        *shards,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_is_answered_while_waiting(tmp_path: Path) -> None:
    """Batches of a million rows, so that the consumer nearly always waits."""
    script = """
        import os, signal, sys, threading, tfrfast as tfr
        loader = tfr.Loader(sys.argv[1:], 1 << 20, threads=1, prefetch=1,
                            order=tfr.Shuffle(indices=[0] * (1 << 20)))
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            while True:
                for batch in loader:
                    del batch
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = run_program(script, *write_shards(tmp_path, [50]))
    assert done.stdout == "interrupted\n", done.stderr


def test_many_loaders_share_a_reader(reader: tfr.Reader) -> None:
    results: list[list[int]] = [[] for _ in range(6)]

    def consume(slot: int) -> None:
        results[slot] = received(tfr.Loader(reader, 13, seed=slot, threads=2))

    in_threads(functools.partial(consume, slot) for slot in range(len(results)))
    assert all(sorted(numbers) == list(range(NUM_RECORDS)) for numbers in results)
    assert len({tuple(numbers) for numbers in results}) == len(results)


def test_a_billion_records_need_no_memory_and_resume_at_once(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard", [b"x"] * 100_000)
    script = """
        import sys, time, tfrfast as tfr
        reader = tfr.Reader([sys.argv[1]] * 10_000)
        assert len(reader) == 10**9
        def anonymous_mb():
            for line in open("/proc/self/status"):
                if line.startswith("RssAnon"):
                    return int(line.split()[1]) / 1024
        loader = tfr.Loader(reader, 4096, threads=2)
        next(iter(loader))
        before = anonymous_mb()
        state = {**loader.state_dict(), "epoch": 3, "position": 5 * 10**8}
        began = time.process_time()  # this process's own, since others may keep the machine busy
        loader.load_state_dict(state)
        epoch = iter(loader)
        batch = next(epoch)
        restored_s = time.process_time() - began
        for _ in range(300):
            next(epoch)
        plan = tfr.Plan(tfr.Shuffle(), 4096, num_records=10**9, start=5 * 10**8)
        assert (batch.indices == plan.indices(3, 0)).all()
        print(restored_s < 4, anonymous_mb() - before < 64)
    """
    done = run_program(script, shard)
    assert done.stdout == "True True\n", done.stdout + done.stderr


def test_features_give_the_columns_of_the_plans_records(tmp_path: Path) -> None:
    rows = 500
    path = write_shard(tmp_path / "examples", [tfr.encode_example({"x": i}) for i in range(rows)])
    features = {"x": tfr.FixedLen((), "int64")}
    for remainder, steps in (("keep", 8), ("pad", 8), ("drop", 7)):
        loader = tfr.Loader(path, 64, features=features, seed=4, remainder=remainder, threads=3)
        plan = tfr.Plan(tfr.Shuffle(4), 64, num_records=rows, remainder=remainder)
        for epoch in range(2):
            batches = list(loader)
            assert len(batches) == steps
            for step, batch in enumerate(batches):
                indices, valid = plan.rows(epoch, step)
                np.testing.assert_array_equal(batch.indices, indices)
                np.testing.assert_array_equal(batch.valid, valid)
                np.testing.assert_array_equal(batch["x"], indices)
        copy = pickle.loads(pickle.dumps(loader))
        np.testing.assert_array_equal(next(iter(copy))["x"], plan.indices(2, 0))


def test_a_record_that_does_not_fit_the_features_is_named(tmp_path: Path) -> None:
    examples = [tfr.encode_example({"x": i}) for i in range(3)]
    path = write_shard(tmp_path / "examples", [*examples, b""])
    loader = tfr.Loader(path, 2, features={"x": tfr.FixedLen((), "int64")}, shuffle=False)
    epoch = iter(loader)
    np.testing.assert_array_equal(next(epoch)["x"], [0, 1])
    with pytest.raises(tfr.FeatureError, match=r"x.*is required but could not be found") as raised:
        next(epoch)
    assert (raised.value.path, raised.value.record) == (path, 3)
