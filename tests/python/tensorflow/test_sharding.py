"""Several processes that read one dataset: each record once, wherever TensorFlow promises that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from data_service import free_ports
from example_files import write_examples
from tfrecord_model import rested

tf = pytest.importorskip("tensorflow")

from tensorflow_child import FEATURES  # noqa: E402

CHILD = str(Path(__file__).parents[2] / "support" / "strategy_child.py")
COUNTS = [21, 9, 13, 17]
COUNT = sum(COUNTS)
Chain = Callable[[Any], Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = write_examples(tmp_path_factory.mktemp("examples"), COUNTS)
    for file in files:
        rested(file)
    tfr.build_index(files, progress=False)
    return files


@pytest.fixture(scope="module")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The same files without indexes."""
    return write_examples(tmp_path_factory.mktemp("unknown"), COUNTS)


def number_of(record: Any) -> Any:
    return tf.io.parse_single_example(record, FEATURES)["id"]


def ids(batch: Any) -> Any:
    return batch["id"]


def parsed(dataset: Any) -> Any:
    return dataset.parse_example(FEATURES).map(ids)


CHAINS: dict[str, Chain] = {
    "in order": lambda source: source.map(number_of).batch(3),
    "batches in order": lambda source: parsed(source.batch(3)),
    "shuffled": lambda source: source.shuffle(100, seed=3).map(number_of).batch(4),
    "unseeded": lambda source: source.shuffle(100).map(number_of).batch(4),
    "shuffled batches": lambda source: parsed(source.shuffle(100, seed=3).batch(4)),
    "unseeded batches": lambda source: parsed(source.shuffle(100).batch(4)),
    "the same again": lambda source: parsed(
        source.shuffle(100, reshuffle_each_iteration=False).batch(4)
    ),
    "blocks": lambda source: parsed(source.shuffle(order=tfr.BlockShuffle(4, 2)).batch(4)),
    "prefetched": lambda source: parsed(source.shuffle(100).batch(4)).prefetch(2),
}


def sharded(dataset: Any, workers: int, worker: int, policy: str = "AUTO") -> Any:
    """Returns the share that `experimental_distribute_dataset` gives one of several processes."""
    from tensorflow.python.data.experimental.ops.distribute import _AutoShardDataset

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = getattr(
        tf.data.experimental.AutoShardPolicy, policy
    )
    return _AutoShardDataset(dataset.with_options(options), workers, worker)


def flat(dataset: Any) -> list[int]:
    return [int(number) for batch in dataset for number in batch.numpy().reshape(-1)]


def of_files(numbers: list[int]) -> list[int]:
    """Returns the files of these records."""
    ends = [sum(COUNTS[: i + 1]) for i in range(len(COUNTS))]
    return sorted({next(i for i, end in enumerate(ends) if number < end) for number in numbers})


@pytest.mark.parametrize("chain", CHAINS)
def test_each_worker_reads_its_own_files(files: list[str], chain: str) -> None:
    policy = "AUTO" if "batches" in chain else "FILE"
    shares = []
    for worker in range(2):  # each in a process of its own: with a seed of its own, if any
        dataset = CHAINS[chain](tfr.TFRecordDataset(files))
        shares.append(flat(sharded(dataset, 2, worker, policy)))
    assert [of_files(share) for share in shares] == [[0, 2], [1, 3]]
    assert sorted(shares[0] + shares[1]) == list(range(COUNT))
    if "order" in chain:
        assert shares == [sorted(share) for share in shares]


def test_windows_are_shared_by_file(files: list[str]) -> None:
    def windows() -> Any:
        numbers = tfr.TFRecordDataset(files).map(number_of)
        return numbers.window(3).flat_map(lambda window: window.batch(3))

    shares = [flat(sharded(windows(), 2, worker)) for worker in range(2)]
    assert [of_files(share) for share in shares] == [[0, 2], [1, 3]]
    assert sorted(shares[0] + shares[1]) == list(range(COUNT))


def test_what_follows_a_missing_file_is_counted_without_it(tmp_path: Path) -> None:
    files = write_examples(tmp_path, COUNTS)
    os.remove(files[0])
    share = sharded(tfr.TFRecordDataset(files).take(COUNT).map(number_of), 2, 0, "FILE")
    assert of_files(flat(share.ignore_errors())) == [2]


def test_a_share_is_read_to_its_end_from_the_files_that_it_began_with(tmp_path: Path) -> None:
    """The new file has as many bytes, and its records have the same places."""
    file = str(tmp_path / "shard.tfrecord")

    def write(letter: bytes) -> None:
        with tfr.Writer(f"{file}.new") as writer:
            for _ in range(2000):
                writer.write(letter * 1000)
        rested(f"{file}.new")
        os.replace(f"{file}.new", file)
        tfr.build_index([file], progress=False)

    write(b"a")
    dataset = sharded(tfr.TFRecordDataset(file).shuffle(2000, seed=1).batch(10), 2, 0, "FILE")
    first = iter(dataset)
    before = [next(first)]
    write(b"b")
    second = iter(dataset)
    after = [next(second)]
    before += first
    after += second
    letters = [
        {record[:1] for batch in each for record in batch.numpy()} for each in (before, after)
    ]
    assert letters == [{b"a"}, {b"b"}]
    assert [len(each) for each in (before, after)] == [100, 100]


@pytest.mark.parametrize("chain", ["in order", "batches in order", "unseeded", "blocks"])
def test_fewer_files_than_workers_are_shared_by_record(files: list[str], chain: str) -> None:
    shares = [
        flat(sharded(CHAINS[chain](tfr.TFRecordDataset(files)), 5, worker, "FILE"))
        for worker in range(5)
    ]
    assert sorted(sum(shares, [])) == list(range(COUNT))
    assert all(9 <= len(share) <= 15 for share in shares)


def test_the_share_of_a_stream_is_that_of_a_plan(files: list[str], unknown: list[str]) -> None:
    """One process may have an index while another process has none."""
    for worker in range(5):
        planned, stream = (
            flat(sharded(tfr.TFRecordDataset(each).map(number_of), 5, worker, "FILE"))
            for each in (files, unknown)
        )
        assert planned == stream


def listed(names: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(tf.reshape(names, [-1]))


def numbered(narrowed: Chain = lambda source: source, **options: Any) -> Any:
    return lambda read, files: narrowed(read(files, **options)).map(number_of)


#: Calls on the class mean a worker's own records: tf.data shards the class first.
SHARED: dict[str, Callable[[Any, list[str]], Any]] = {
    "interleave": lambda read, files: listed(files).interleave(read),
    "parallel interleave": lambda read, files: listed(files).interleave(read, 3, 1, 2),
    "flat_map": lambda read, files: listed(files).shuffle(9, seed=1).flat_map(read),
    "parallel_interleave": lambda read, files: listed(files).apply(
        tf.data.experimental.parallel_interleave(read, 2)
    ),
    "more inside": lambda read, files: listed(files).interleave(
        lambda name: read(name).skip(1).batch(2).unbatch(), 2
    ),
    "more after": lambda read, files: (
        listed(files).interleave(read, 2).shuffle(5, seed=1).repeat(2).take(90)
    ),
    "within": lambda read, files: listed(files).flat_map(lambda name: listed(name).flat_map(read)),
    "several names": lambda read, files: listed(files).batch(2).flat_map(read),
    "shuffled names": lambda read, files: read(listed(files).shuffle(9, seed=3)),
    "batches": lambda read, files: read(files).map(number_of).batch(3),
    "parallel": numbered(num_parallel_reads=2),
    "names": lambda read, files: read(listed(files)).map(number_of),
    "take": numbered(lambda source: source.take(11)),
    "skip": numbered(lambda source: source.skip(20)),
    "shard": numbered(lambda source: source.shard(3, 1).take(5)),
    "repeat": numbered(lambda source: source.skip(5).take(9).repeat(2)),
}


# AUTO is FILE where files are found, and otherwise DATA.
@pytest.mark.parametrize(
    ("chain", "policy"),
    [
        *((chain, "AUTO") for chain in SHARED),
        *(("interleave", policy) for policy in ("DATA", "OFF")),
        *((chain, "FILE") for chain in ("parallel", "names")),
    ],
)
def test_shares_are_tensorflows(unknown: list[str], chain: str, policy: str) -> None:
    for worker in range(2):
        ours, theirs = (
            list(sharded(SHARED[chain](each, unknown), 2, worker, policy).as_numpy_iterator())
            for each in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
        )
        np.testing.assert_equal(ours, theirs)
        assert ours


@pytest.mark.parametrize("name", ["take", "skip", "shard", "repeat"])
def test_batches_and_shuffles_share_the_same_records(files: list[str], name: str) -> None:
    def sharing(change: Chain) -> list[Any]:
        def read(names: list[str]) -> Any:
            return change(tfr.TFRecordDataset(names))

        return [sharded(SHARED[name](read, files), 2, worker) for worker in range(2)]

    plain = [flat(each) for each in sharing(lambda source: source)]
    mixed = [flat(each) for each in sharing(lambda source: source.shuffle(1, seed=1))]
    assert [*map(len, mixed)] == [*map(len, plain)]


def test_one_file_that_takes_turns_alone_is_shared_by_record(unknown: list[str]) -> None:
    source = tfr.TFRecordDataset(unknown[0], num_parallel_reads=2).map(number_of).batch(5)
    shares = [flat(sharded(source, 2, worker)) for worker in range(2)]
    assert shares == [list(range(0, COUNTS[0], 2)), list(range(1, COUNTS[0], 2))]


@pytest.mark.parametrize("policy", ["DATA", "OFF"])
def test_other_policies_do_what_they_say(files: list[str], policy: str) -> None:
    dataset = CHAINS["shuffled batches"](tfr.TFRecordDataset(files))
    whole = [
        batch.numpy().tolist() for batch in CHAINS["shuffled batches"](tfr.TFRecordDataset(files))
    ]
    for worker in range(2):
        got = [batch.numpy().tolist() for batch in sharded(dataset, 2, worker, policy)]
        dataset = CHAINS["shuffled batches"](tfr.TFRecordDataset(files))
        assert got == (whole if policy == "OFF" else whole[worker::2])


def test_a_hint_says_where(files: list[str]) -> None:
    hint = tf.data.experimental.SHARD_HINT
    shares = [
        flat(
            sharded(CHAINS[chain](tfr.TFRecordDataset(files)).shard(hint, hint), 2, worker, "HINT")
        )
        for chain in ("shuffled batches", "in order")
        for worker in range(2)
    ]
    assert sorted(shares[0] + shares[1]) == list(range(COUNT))
    assert sorted(shares[2] + shares[3]) == list(range(COUNT))


def test_epochs_and_iterations_differ(files: list[str]) -> None:
    epochs = sharded(parsed(tfr.TFRecordDataset(files).shuffle(1, seed=1).batch(4).repeat(2)), 2, 1)
    numbers = flat(epochs)
    first, second = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    assert first != second
    assert sorted(first) == sorted(second)
    iterations = sharded(CHAINS["shuffled batches"](tfr.TFRecordDataset(files)), 2, 1)
    first, second = flat(iterations), flat(iterations)
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_workers_checkpoint_is_restored(files: list[str], tmp_path: Path) -> None:
    def dataset() -> Any:
        return sharded(
            parsed(tfr.TFRecordDataset(files).shuffle(1, seed=1).batch(4).repeat(2)), 2, 1
        )

    iterator = iter(dataset())
    for _ in range(3):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    rest = flat(iterator)
    again = iter(dataset())
    tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
    assert flat(again) == rest


@pytest.mark.parametrize("chain", ["unseeded", "the same again", "unseeded batches"])
def test_a_checkpoint_holds_the_order_that_was_drawn(
    files: list[str], tmp_path: Path, chain: str
) -> None:
    iterator = iter(CHAINS[chain](tfr.TFRecordDataset(files)))
    seen = [next(iterator) for _ in range(3)]
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "saved"))
    another = iter(CHAINS[chain](tfr.TFRecordDataset(files)))
    tf.train.Checkpoint(iterator=another).read(path).assert_consumed()
    assert sorted(flat(seen) + flat(another)) == list(range(COUNT))


@pytest.mark.slow
@pytest.mark.newest
def test_two_processes_of_a_strategy_share_the_files(files: list[str]) -> None:
    addresses = [f"localhost:{port}" for port in free_ports(2)]
    started = []
    for index in range(2):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config), "no_grpc_proxy": "localhost"}
        command = [sys.executable, CHILD, *files]
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
    shares = [json.loads(process.communicate()[0]) for process in started]
    for library in ("theirs", "ours"):
        numbers = [share[library] for share in shares]
        assert [of_files(each) for each in numbers] == [[0, 2], [1, 3]]
        assert sorted(numbers[0] + numbers[1]) == list(range(COUNT))
