"""One call reads several small batches, which the results do not show."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import plain, some_example, write_examples
from record_files import flip_payload_byte

tf = pytest.importorskip("tensorflow")

from tfrfast.storage.remote.options import Storage  # noqa: E402
from tfrfast.tensorflow import source as sources  # noqa: E402
from tfrfast.tensorflow.build import batches, pipelines  # noqa: E402
from tfrfast.tensorflow.read.file_names import FileNames  # noqa: E402
from tfrfast.tensorflow.source import mean_record_bytes  # noqa: E402

pytestmark = pytest.mark.newest

FEATURES = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "name": tf.io.FixedLenFeature([], tf.string),
    "words": tf.io.RaggedFeature(tf.string),
    "numbers": tf.io.VarLenFeature(tf.int64),
}
COUNTS = [300, 103]
DAMAGED = 150  # in the first shard
EXPECTED = (
    f"Corrupt payload: record {DAMAGED} of",
    "No such file",
    "is truncated: record",
    "is corrupt: the length of record 0",
)
Chain = Callable[[Any], Any]

ORDERS: dict[str, Chain] = {
    "file order": lambda source: source,
    "shuffled": lambda source: source.shuffle(1, seed=3),
}
CHAINS: dict[str, Chain] = {
    "strings": lambda source: source.batch(3),
    "columns": lambda source: source.batch(3).parse_example(FEATURES),
    "part": lambda source: source.skip(20).take(380).batch(3),
    "batches of each epoch": lambda source: source.batch(3).repeat(2),
    "batches across epochs": lambda source: source.repeat(2).batch(3),
}

orders = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
chains = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("groups"), COUNTS)


@pytest.fixture
def damaged(tmp_path: Path) -> list[str]:
    paths = write_examples(tmp_path, COUNTS)
    flip_payload_byte(paths[0], list(map(some_example, range(COUNTS[0]))), DAMAGED)
    return paths


def made(files: list[str], order: Chain, chain: Chain) -> Any:
    return chain(order(tfr.TFRecordDataset(files)))


def group_of(dataset: Any) -> int:
    """Returns the number of batches that one call reads."""
    return pipelines._unread_batches(dataset._work.plan.pipeline)._group


def outcomes(dataset: Any) -> list[Any]:
    """Returns the elements, and "error" for each error, to the end of the dataset."""
    return outcomes_of(iter(dataset))


def outcomes_of(iterator: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append(plain(next(iterator)))
        except StopIteration:
            return found
        except (tf.errors.DataLossError, tf.errors.NotFoundError) as error:
            assert any(each in error.message for each in EXPECTED)
            found.append("error")


@orders
@chains
def test_they_are_what_batches_alone_are(
    files: list[str], order: Chain, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(files, order, chain)
    assert group_of(dataset) > 1
    grouped = outcomes(dataset)
    monkeypatch.setattr(batches, "_MAX_GROUP", 1)
    alone = made(files, order, chain)
    assert group_of(alone) == 1
    assert grouped == outcomes(alone)
    assert len(grouped) > 100


@orders
@chains
def test_damage_hits_one_batch_of_a_group(
    damaged: list[str], order: Chain, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped = outcomes(made(damaged, order, chain))
    monkeypatch.setattr(batches, "_MAX_GROUP", 1)
    assert grouped == outcomes(made(damaged, order, chain))
    assert grouped.count("error") in (1, 2)  # one an epoch


def cut_short(path: str) -> None:
    os.truncate(path, os.path.getsize(path) * 2 // 3)


def with_a_bad_header(path: str) -> None:
    with open(path, "r+b") as file:
        file.seek(2)  # of the first record's length
        file.write(b"\1")


@pytest.mark.parametrize(
    ("spoil", "name", "symbolic"),
    [
        (os.remove, "strings", False),
        (os.remove, "strings", True),
        (os.remove, "columns", False),
        (cut_short, "part", False),
        (with_a_bad_header, "batches of each epoch", False),
        (cut_short, "batches across epochs", True),
    ],
)
def test_what_cannot_be_found_takes_no_batch_with_it(
    spoil: Callable[[str], None],
    name: str,
    symbolic: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = write_examples(tmp_path, [300, 100, 103])
    spoil(paths[1])
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = symbolic

    def ours() -> Any:
        return CHAINS[name](tfr.TFRecordDataset(paths)).with_options(options)

    assert group_of(ours()) > 1
    grouped, ignoring = outcomes(ours()), outcomes(ours().ignore_errors())
    if name != "columns":
        before = grouped.index("error")
        assert before > 90
        theirs = CHAINS[name](tf.data.TFRecordDataset(paths))
        assert grouped[:before] == [plain(each) for each in theirs.take(before)]
    monkeypatch.setattr(batches, "_MAX_GROUP", 1)
    assert group_of(ours()) == 1
    assert grouped == outcomes(ours())
    assert ignoring == outcomes(ours().ignore_errors()) == [e for e in grouped if e != "error"]


@orders
@pytest.mark.parametrize("chain", [CHAINS["strings"], CHAINS["columns"]])
@pytest.mark.parametrize("symbolic", [False, True], ids=["explicit", "symbolic"])
def test_checkpoints_inside_a_group(
    files: list[str], order: Chain, chain: Chain, symbolic: bool, tmp_path: Path
) -> None:
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = symbolic
    dataset = made(files, order, chain).with_options(options)
    for position in (5, 131):
        iterator = iter(dataset)
        for _ in range(position):
            next(iterator)
        path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / str(position)))
        resumed = iter(dataset)
        tf.train.Checkpoint(iterator=resumed).read(path)
        assert outcomes_of(resumed) == outcomes_of(iterator) != []


def test_the_size_of_records_is_estimated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    monkeypatch.setattr(sources, "mean_record_bytes", lambda *of: looked.append(of) or 9)
    found = sources.Source(FileNames(None, None, [b"a"]), False, "", Storage(None))
    assert (found.record_bytes, found.record_bytes) == (9, 9)
    assert len(looked) == 1


def test_the_size_of_records_is_estimated_where_it_can_be(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "records") as writer:
        writer.write_batch([b"12", b"1234"])
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it
    (tmp_path / "empty").touch()

    def size_of(*names: str, compression: str = "") -> int | None:
        return mean_record_bytes([os.fsencode(tmp_path / name) for name in names], compression)

    assert size_of("records") == size_of("pipe", "empty", "missing", "records", "other") == 3
    for compression in ("GZIP", "ZLIB"):
        with tf.io.TFRecordWriter(str(tmp_path / compression), compression) as writer:
            writer.write(b"1" * 1_000_000)
            writer.write(b"")
        found = size_of(compression, compression=compression)
        assert found == 1_000_000  # the second record is not in the sample
        assert size_of("records", compression=compression) is None
    for name in ("pipe", "empty", "missing", "."):
        assert size_of(name) is None
    assert size_of() is None
