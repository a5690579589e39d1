"""Shuffled objects on a network: requests for later batches run ahead."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from patience import PATIENCE_S
from range_server import RangeServer, Trouble, fails_at_first, range_server
from record_files import HEADER, flip_byte, write_shard

tf = pytest.importorskip("tensorflow")
pytest.importorskip("obstore", reason="needs obstore")

# Records are so long that no request holds two records, and so many that simultaneous calls do not
# read all of them.
RECORD_BYTES, COUNT, ROWS = 66_000, 400, 2
FEATURES = {"id": tfr.FixedLen([], np.int64), "raw": tfr.FixedLen([], bytes)}


def record(number: int) -> bytes:
    return tfr.encode_example(
        {"id": number, "raw": number.to_bytes(2, "little") * (RECORD_BYTES // 2)}
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("ahead")
    half = COUNT // 2
    return [
        write_shard(folder / f"part-{i}", map(record, range(i * half, (i + 1) * half)))
        for i in range(2)
    ]


@pytest.fixture
def server(files: list[str]) -> Iterator[RangeServer]:
    with range_server() as running:
        for path in files:
            running.put(f"set/{Path(path).name}", Path(path).read_bytes())
        yield running


@pytest.fixture
def urls(server: RangeServer, files: list[str]) -> list[str]:
    found = [f"{server.url}/set/{Path(path).name}" for path in files]
    tfr.build_index(found)
    return found


Make = Callable[[list[str]], Any]


def opened(names: list[str]) -> Any:
    return tfr.TFRecordDataset(names, "GZIP" if names[0].endswith(".gz") else None)


def shuffled(names: list[str]) -> Any:
    return opened(names).shuffle(1, seed=3)


def loaded(names: list[str], **options: Any) -> Any:
    return tfr.Loader(tfr.Reader(names), ROWS, seed=3, **options).to_tf_dataset()


def parsed(serialized: Any) -> Any:
    kinds = {"id": tf.int64, "raw": tf.string}
    spec = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
    return tf.io.parse_single_example(serialized, spec)


FORMS: dict[str, Make] = {
    "strings": lambda names: shuffled(names).batch(ROWS),
    "records": shuffled,
    "full": lambda names: shuffled(names).batch(ROWS, drop_remainder=True),
    "columns": lambda names: shuffled(names).batch(ROWS).parse_example(FEATURES),
    "lifted": lambda names: shuffled(names).map(parsed).batch(ROWS),
    "blocks": lambda names: (
        opened(names).shuffle(seed=1, order=tfr.BlockShuffle(4, 40)).batch(ROWS)
    ),
    "loaded": loaded,
    "loaded columns": lambda names: loaded(names, features=FEATURES),
}


def asked_for(server: RangeServer) -> int:
    """Returns the number of requested records. Neighbours share a request. Opening reads few bytes."""
    return sum((each.end or 0) - (each.begin or 0) for each in server.reads()) // RECORD_BYTES


def plain(part: Any) -> Any:
    return np.asarray(part).tolist()


def values(dataset: Any) -> list[Any]:
    return [tf.nest.map_structure(plain, each) for each in dataset.as_numpy_iterator()]


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("form", FORMS)
def test_the_next_batches_are_asked_for_before_they_are_needed(
    server: RangeServer, urls: list[str], files: list[str], form: str
) -> None:
    there = iter(FORMS[form](urls).as_numpy_iterator())
    server.forget()
    first = next(there)
    # More batches than the calls that may run at once can read.
    wait_until(lambda: asked_for(server) == COUNT)
    got = [first, *there]
    here = list(FORMS[form](files).as_numpy_iterator())
    tf.nest.map_structure(np.testing.assert_array_equal, got, here)
    assert asked_for(server) == COUNT


@pytest.mark.parametrize("form", ["strings", "columns", "loaded"])
def test_compressed_shards_are_asked_for_once_and_early(
    server: RangeServer, tmp_path: Path, form: str
) -> None:
    random = np.random.default_rng(5)
    # Five spans in each shard. Noise does not compress, so requests for spans are not joined.
    whole = [
        tfr.encode_example({"id": n, "raw": random.bytes(RECORD_BYTES)}) for n in range(2 * 80)
    ]
    files, urls = [], []
    for i in range(2):
        files.append(str(tmp_path / f"part-{i}.gz"))
        with tfr.Writer(files[-1], compression="GZIP") as writer:
            for each in whole[80 * i : 80 * (i + 1)]:
                writer.write(each)
        server.put(f"packed/part-{i}.gz", Path(files[-1]).read_bytes())
        urls.append(f"{server.url}/packed/part-{i}.gz")
    in_all = sum(Path(each).stat().st_size for each in files)
    server.forget()
    tfr.build_index(urls)
    # Requests are large, although the inflater takes small pieces.
    assert len(server.reads()) <= 2 * 4

    def asked() -> int:
        return sum((each.end or 0) - (each.begin or 0) + 1 for each in server.reads())

    there = iter(FORMS[form](urls).as_numpy_iterator())
    server.forget()
    first = next(there)
    wait_until(lambda: asked() > 0.95 * in_all)
    got = [first, *there]
    here = list(FORMS[form](files).as_numpy_iterator())
    tf.nest.map_structure(np.testing.assert_array_equal, got, here)
    assert asked() < 1.05 * in_all


def test_the_next_epochs_of_a_part(server: RangeServer, urls: list[str], files: list[str]) -> None:
    def make(names: list[str]) -> Any:
        return tfr.TFRecordDataset(names).shard(4, 1).shuffle(1, seed=3).repeat(3).batch(ROWS)

    data = make(urls)
    server.forget()
    assert values(data) == values(make(files))
    # All epochs are announced at once, so that one request for a record serves them all.
    assert asked_for(server) == COUNT // 4


def test_an_iterator_that_goes_on_in_the_middle(
    server: RangeServer, urls: list[str], files: list[str], tmp_path: Path
) -> None:
    rest = COUNT - 150 * ROWS
    for form in ("columns", "loaded"):
        make = FORMS[form]
        expected = values(make(files))
        begun = iter(make(urls))
        for _ in range(150):
            next(begun)
        path = tf.train.Checkpoint(it=begun).write(str(tmp_path / "checkpoint"))
        del begun
        gc.collect()
        wait_until(lambda: server.running == 0)
        server.forget()
        onward = iter(make(urls))
        tf.train.Checkpoint(it=onward).read(path)
        got = [next(onward)]
        # One call reads up to 8 batches, and reads them again if the first batches are late.
        wait_until(lambda: asked_for(server) >= rest)
        got += onward
        assert [tf.nest.map_structure(plain, each) for each in got] == expected[150:]
        assert asked_for(server) < rest + 8 * ROWS


def test_what_is_not_taken_is_given_back(server: RangeServer, tmp_path: Path) -> None:
    """Announces more bytes than the limit on all announcements, a third at a time."""
    long = write_shard(tmp_path / "long", [bytes([i]) * (1 << 20) for i in range(90)])
    server.put("set/long", Path(long).read_bytes())
    url = f"{server.url}/set/long"
    tfr.build_index(url)
    data = tfr.TFRecordDataset(url).shuffle(1, seed=1).batch(1)
    for end in ("dropped", "taken", "restored", "dropped", "failed"):
        server.forget()
        if end == "taken":
            assert len(values(data.take(2))) == 2
            continue
        there = iter(data)
        next(there)
        wait_until(
            lambda: sum((each.end or 0) - (each.begin or 0) for each in server.reads()) >= 85 << 20
        )
        if end == "restored":
            path = tf.train.Checkpoint(it=there).write(str(tmp_path / "checkpoint"))
            for _ in range(10):
                next(there)
            tf.train.Checkpoint(it=there).read(path)
            assert len(list(there)) == 89
        if end == "failed":
            server.trouble = lambda seen, _: Trouble(403)
            gc.collect()
            with pytest.raises(tf.errors.OpError, match="credentials"):
                list(iter(tfr.TFRecordDataset(url, storage={"retries": 0}).shuffle(1).batch(1)))
            server.trouble = lambda seen, _: None
        del there
        gc.collect()
    assert len(values(data)) == 90


def test_what_is_read_in_file_order_is_given_back(server: RangeServer, tmp_path: Path) -> None:
    """Reads more bytes than the limit, and announces for iterators that are dropped."""
    long = write_shard(tmp_path / "long", [bytes([i]) * (1 << 20) for i in range(90)])
    server.put("set/long", Path(long).read_bytes())
    url = f"{server.url}/set/long"
    tfr.build_index(url)
    dropped = [tfr.TFRecordDataset(url).batch(1) for _ in range(10)]
    for each in dropped:
        next(iter(each))
    gc.collect()
    server.forget()
    there = iter(tfr.TFRecordDataset([url] * 4).batch(1))
    for _ in range(335):
        next(there)
    # The rest is requested before it is needed, for more calls than run at once.
    wait_until(
        lambda: sum((each.end or 0) - (each.begin or 0) for each in server.reads()) >= 360 << 20
    )
    assert len(list(there)) == 25


def test_damage_and_failing_requests(server: RangeServer, tmp_path: Path) -> None:
    count = 60
    path = write_shard(tmp_path / "damaged", map(record, range(count)))
    frame = Path(path).stat().st_size // count
    for number in (20, 21, 47):
        flip_byte(path, number * frame + HEADER + 100)
    server.put("set/damaged", Path(path).read_bytes())
    url = f"{server.url}/set/damaged"
    tfr.build_index(url)

    def make(name: str, parses: bool, how: str = "raise") -> Any:
        data = tfr.TFRecordDataset(name, on_corruption=how).shuffle(1, seed=3).batch(7)
        return data.parse_example(FEATURES) if parses else data

    for parses in (False, True):
        there = make(url, parses, "skip")
        server.forget()
        assert values(there) == values(make(path, parses, "skip"))
        # Damaged records cause no second request for other records.
        assert asked_for(server) == count
        messages = []
        for name in (path, url):
            with pytest.raises(tf.errors.DataLossError) as caught:
                values(make(name, parses))
            messages.append(caught.value.message.replace(url, path))
        assert messages[0] == messages[1]
        left = [values(make(name, parses).ignore_errors()) for name in (path, url)]
        assert left[0] == left[1]
    server.trouble = fails_at_first(1, status=503)
    assert values(make(url, True, "skip")) == values(make(path, True, "skip"))


def test_what_a_cache_has_is_not_asked_for(
    server: RangeServer, urls: list[str], files: list[str], tmp_path: Path
) -> None:
    cache = tfr.DiskCache(tmp_path / "cache", "1G")
    expected = values(shuffled(files).batch(8))
    make = lambda: tfr.TFRecordDataset(urls, cache=cache).shuffle(1, seed=3).batch(8)  # noqa: E731
    there = iter(make())
    for _ in range(10):
        next(there)
    del there
    gc.collect()
    assert values(make()) == expected
    server.forget()
    assert values(make()) == expected
    assert server.reads() == []
