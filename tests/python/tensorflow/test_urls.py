"""Objects on a network as TFRecordDataset reads them: like files, element for element."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interrupted_child
import tfrfast as tfr
from example_files import plain, write_examples
from patience import PATIENCE_S
from range_server import OLD, RangeServer, Seen, Trouble, fails_at_first, range_server
from record_files import flip_payload_byte, some_records, write_shard, write_shards
from tfrfast.storage.remote import client

tf = pytest.importorskip("tensorflow")
pytest.importorskip("obstore", reason="needs obstore")

COUNTS = [60, 0, 90]


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with range_server() as running:
        yield running


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return write_shards(tmp_path, COUNTS, longest=3000)


@pytest.fixture
def urls(server: RangeServer, shards: list[str]) -> list[str]:
    for shard in shards:
        server.put(f"set/{Path(shard).name}", Path(shard).read_bytes())
    return [f"{server.url}/set/{Path(shard).name}" for shard in shards]


def values(dataset: Any) -> list[Any]:
    return [np.asarray(element.numpy()).tolist() for element in dataset]


PIPELINES = {
    "records": lambda data: data,
    "batches": lambda data: data.batch(32, drop_remainder=True),
    "a part": lambda data: data.skip(50).take(30).batch(7),
    "every third": lambda data: data.shard(3, 1).batch(8),
    "shuffled": lambda data: data.shuffle(1, seed=3).repeat(2).batch(16),
    "blocks": lambda data: data.shuffle(seed=1, order=tfr.BlockShuffle(16, 4)).batch(16),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_elements_are_those_of_the_files(urls: list[str], shards: list[str], name: str) -> None:
    make = PIPELINES[name]
    here, there = (make(tfr.TFRecordDataset(names)) for names in (shards, urls))
    for _ in range(2):  # the second time there are indexes
        assert values(there) == values(here)
    assert values(make(tfr.TFRecordDataset(urls))) == values(make(tfr.TFRecordDataset(shards)))


def test_a_request_a_record_is_said_once(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrfast.loading import shuffle_costs
    from tfrfast.tensorflow import reasons

    monkeypatch.setattr(shuffle_costs, "_shared", lambda records, *_: records)
    reasons._told.discard("requests")
    (shard,) = write_shards(tmp_path, [12_000], longest=5)
    server.put("set/small", Path(shard).read_bytes())
    url = f"{server.url}/set/small"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.explain(tfr.TFRecordDataset(url).batch(10))
        tfr.explain(tfr.TFRecordDataset(url).shuffle(1, order=tfr.BlockShuffle(100, 4)).batch(10))
        tfr.explain(tfr.TFRecordDataset(shard).shuffle(1))
        cache = tfr.DiskCache(tmp_path / "cache", "1G")
        tfr.explain(tfr.TFRecordDataset(url, cache=cache).shuffle(1))
    with pytest.warns(tfr.SlowPathWarning, match="about 12,000 requests an epoch") as said:
        tfr.explain(tfr.TFRecordDataset(url).shuffle(1))
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.explain(tfr.TFRecordDataset(url).shuffle(1))


def test_columns_in_any_order_take_few_requests(server: RangeServer, tmp_path: Path) -> None:
    files = write_examples(tmp_path, [60, 90])
    for path in files:
        server.put(f"set/{Path(path).name}", Path(path).read_bytes())
    there = [f"{server.url}/set/{Path(path).name}" for path in files]
    features = {"id": tfr.FixedLen([], np.int64), "words": tfr.VarLen(bytes)}

    def shuffled(names: list[str]) -> Any:
        return tfr.TFRecordDataset(names).shuffle(1, seed=3).batch(50).parse_example(features)

    def loaded(names: list[str]) -> Any:
        loader = tfr.Loader(tfr.Reader(names), 50, seed=3, features=features)
        return loader.to_tf_dataset()

    tfr.build_index(there)
    for make in (shuffled, loaded):
        expected = [plain(each) for each in make(files)]
        data = make(there)
        server.forget()
        assert [plain(each) for each in data] == expected
        # Three batches of two shards each, without the headers that reveal the compression.
        assert len([each for each in server.reads() if each.end - each.begin > 12]) <= 6


def test_plain_datasets_are_not_planned_by_an_index_in_the_users_cache(urls: list[str]) -> None:
    plain = tf.data.TFRecordDataset(urls).shuffle(9, seed=1).batch(16)
    tfr.Reader(urls).close()  # leaves an index beside the objects
    assert "no index beside" in tfr.explain(tfr.accelerate(plain)).steps[0].why


def test_plain_datasets_are_planned_by_indexes_beside_the_files(
    server: RangeServer, shards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION"):
        monkeypatch.setenv(f"AWS_{name}", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for shard in shards:
        server.put(f"bucket/set/{Path(shard).name}", Path(shard).read_bytes())
    urls = [f"s3://bucket/set/{Path(shard).name}" for shard in shards]
    tfr.build_index(urls, publish=True)
    there, here = (
        tf.data.Dataset.from_tensor_slices(names).interleave(tf.data.TFRecordDataset, 2)
        for names in (urls, shards)
    )
    assert values(tfr.accelerate(there.batch(16))) == values(here.batch(16))
    mixed = values(tfr.accelerate(there.shuffle(9).batch(16)).unbatch())
    assert sorted(mixed) == sorted(values(here)) != mixed


def test_files_in_another_order(urls: list[str], shards: list[str]) -> None:
    for make in (
        lambda names: tfr.TFRecordDataset(names, num_parallel_reads=2),
        lambda names: tfr.TFRecordDataset(
            tf.data.Dataset.from_tensor_slices(names).map(tf.identity)
        ),
        lambda names: tf.data.Dataset.from_tensor_slices(names).flat_map(tfr.TFRecordDataset),
    ):
        assert values(make(urls)) == values(make(shards))


def test_a_bucket_and_its_options(server: RangeServer, shards: list[str]) -> None:
    for shard in shards:
        server.put(f"bucket/set/{Path(shard).name}", Path(shard).read_bytes())
    storage = {
        "endpoint": server.url,
        "region": "us-east-1",
        "access_key_id": "A-KEY",
        "secret_access_key": "VERY-SECRET",
    }
    there = tfr.TFRecordDataset("s3://bucket/set/data-*", storage=storage).batch(50)
    assert values(there) == values(tfr.TFRecordDataset(shards).batch(50))
    graph = there._variant_tensor
    text = tf.raw_ops.DatasetToGraphV2(input_dataset=graph).numpy()
    assert server.url.encode() in text
    assert b"SECRET" not in text
    assert b"A-KEY" not in text


def test_secrets_are_for_names_that_are_known(urls: list[str]) -> None:
    @tf.function  # type: ignore[untyped-decorator]
    def read(names: Any) -> Any:
        return tfr.TFRecordDataset(names, storage={"token": "secret-token"}).cardinality()

    with pytest.raises(ValueError, match="which servers may see the secrets"):
        read(tf.constant(urls))


def test_an_iterator_goes_on_in_the_middle(urls: list[str], tmp_path: Path) -> None:
    for make in (PIPELINES["shuffled"], PIPELINES["batches"]):
        expected = values(make(tfr.TFRecordDataset(urls)))
        it = iter(make(tfr.TFRecordDataset(urls)))
        got = values([next(it), next(it)])
        path = tf.train.Checkpoint(it=it).write(str(tmp_path / "checkpoint"))
        onward = iter(make(tfr.TFRecordDataset(urls)))
        tf.train.Checkpoint(it=onward).read(path)
        assert got + values(onward) == expected


def test_batches_of_a_loader(urls: list[str], shards: list[str]) -> None:
    here = tfr.Loader(shards, 16, seed=2).to_tf_dataset()
    there = tfr.Loader(tfr.Reader(urls), 16, seed=2).to_tf_dataset()
    assert values(there) == values(here)


def test_damage_is_the_same_as_in_files(
    server: RangeServer, urls: list[str], shards: list[str]
) -> None:
    flip_payload_byte(shards[2], some_records(90, 2, 3000), 7)
    server.put("set/data-002", Path(shards[2]).read_bytes())
    messages = []
    for names in (shards, urls):
        with pytest.raises(tf.errors.DataLossError) as caught:
            values(tfr.TFRecordDataset(names))
        messages.append(caught.value.message)
    assert messages[1] == messages[0].replace(shards[2], urls[2])
    skipping = [tfr.TFRecordDataset(names, on_corruption="skip") for names in (shards, urls)]
    assert values(skipping[0]) == values(skipping[1])


def test_requests_that_fail(server: RangeServer, urls: list[str], shards: list[str]) -> None:
    expected = values(tfr.TFRecordDataset(shards).batch(20))
    data = tfr.TFRecordDataset(urls, storage={"retries": 2}).batch(20)
    server.trouble = fails_at_first(2, status=503)
    assert values(data) == expected
    server.trouble = lambda seen, _: Trouble(403) if seen.begin is not None else None
    with pytest.raises(tf.errors.OpError, match="Check the credentials"):
        values(tfr.TFRecordDataset(urls, storage={"retries": 0}).batch(20))


@pytest.mark.parametrize("form", ["strings", "columns"])
@pytest.mark.parametrize("name", ["batches", "shuffled"])
def test_what_could_not_be_read_is_not_made_up(
    server: RangeServer, tmp_path: Path, name: str, form: str
) -> None:
    """After failed requests, a batch has only the records that came."""
    records = [tfr.encode_example({"raw": bytes([i]) * 20_000}) for i in range(64)]
    shard = write_shard(tmp_path / "shard", records)
    server.put("set/some", Path(shard).read_bytes())
    url = f"{server.url}/set/some"
    tfr.build_index(url)
    middle = Path(shard).stat().st_size // 64 * 20

    def fails_in_the_middle(seen: Seen, _: int) -> Trouble | None:
        if seen.begin is None or seen.end is None or not seen.begin <= middle < seen.end:
            return None
        return Trouble(403)

    data = PIPELINES[name](tfr.TFRecordDataset(url, storage={"retries": 0}))
    server.trouble = fails_in_the_middle
    if form == "columns":
        data = data.parse_example({"raw": tfr.FixedLen([], bytes)})
        got = [each for batch in data.ignore_errors() for each in batch["raw"].numpy()]
        assert set(got) <= {bytes([i]) * 20_000 for i in range(64)}
    else:
        got = [each for batch in data.ignore_errors() for each in batch.numpy()]
        assert set(got) <= set(records)
    assert len(got) < 128


def test_an_object_that_is_missing_or_replaced(
    server: RangeServer, urls: list[str], shards: list[str]
) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="There is no object"):
        values(tfr.TFRecordDataset([*urls, f"{server.url}/set/none"]))
    data = tfr.TFRecordDataset(urls)
    before = values(data)
    server.put("set/data-002", Path(shards[0]).read_bytes(), OLD + 5)
    # As with files: in file order, an iteration reads the objects that exist when it begins.
    assert values(data) == before[:60] * 2
    shuffled = data.shuffle(1, seed=1)
    values(shuffled)
    server.put("set/data-002", Path(shards[2]).read_bytes(), OLD + 9)
    with pytest.raises(tf.errors.FailedPreconditionError, match="replaced by another object"):
        values(shuffled)


def test_large_requests_in_file_order(server: RangeServer, tmp_path: Path) -> None:
    (shard,) = write_shards(tmp_path, [3000], longest=4000)
    server.put("set/large", Path(shard).read_bytes())
    url = f"{server.url}/set/large"
    tfr.build_index(url)
    data = tfr.TFRecordDataset(url).batch(32)
    for _ in range(2):
        server.forget()
        assert values(data) == values(tfr.TFRecordDataset(shard).batch(32))
        ranges = [(each.begin, each.end) for each in server.reads()]
        assert len(ranges) < 15  # of 94 batches
        assert sum(end - begin for begin, end in ranges) < 1.1 * Path(shard).stat().st_size


def test_the_next_shards_are_asked_for_before_they_are_reached(
    server: RangeServer, tmp_path: Path
) -> None:
    shards = write_shards(tmp_path, [50] * 12, longest=4000)
    for shard in shards:
        server.put(f"set/{Path(shard).name}", Path(shard).read_bytes())
    urls = [f"{server.url}/set/{Path(shard).name}" for shard in shards]
    tfr.build_index(urls)
    there = iter(tfr.TFRecordDataset(urls).batch(5))

    def asked_for() -> list[int]:  # without the headers that reveal the compression of shards
        return [n for each in server.reads() if (n := each.end - each.begin) > 12]

    server.forget()
    first = next(there).numpy().tolist()
    end = time.monotonic() + PATIENCE_S
    while len(asked_for()) < 4:  # as many bytes ahead as were walked
        assert time.monotonic() < end
        time.sleep(0.01)
    got = [first, *values(there)]
    assert sum(asked_for()) == sum(Path(shard).stat().st_size for shard in shards)
    assert got == values(tfr.TFRecordDataset(shards).batch(5))

    server.forget()
    few = values(tfr.TFRecordDataset(urls).take(60).batch(5))
    assert few == got[:12]
    wanted = sum(len(record) + 16 for batch in few for record in batch)
    assert sum(asked_for()) == wanted


def test_an_iterator_that_is_collected_where_requests_are_made(
    server: RangeServer, tmp_path: Path
) -> None:
    """The iterator's end waits for the reads of its threads."""
    (shard,) = write_shards(tmp_path, [3000], longest=4000)
    server.put("set/large", Path(shard).read_bytes())
    data = tfr.TFRecordDataset(f"{server.url}/set/large").shuffle(1, seed=1).batch(8).prefetch(4)
    is_over = threading.Event()

    def collect() -> None:
        gc.collect()
        is_over.set()

    def abandon() -> None:
        holder: list[Any] = [iter(data)]
        holder.append(holder)
        next(holder[0])

    stuck = client.use_client()
    server.delay_s = 0.3
    gc.collect()
    gc.disable()
    try:
        abandon()
        stuck._loop.call_soon_threadsafe(collect)
        is_in_time = is_over.wait(PATIENCE_S)
    finally:
        gc.enable()
        if not is_over.is_set():
            stuck.end()
    assert is_in_time
    server.delay_s = 0
    assert len(values(data)) == 375


LOADING = """
import sys
import tensorflow as tf
import tfrfast.tensorflow
print(tf.saved_model.load(sys.argv[1]).read().numpy())
"""


def test_another_process_makes_requests_of_its_own(urls: list[str], tmp_path: Path) -> None:
    """A graph names the URLs. A process that runs the graph has its own client."""

    class Module(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[])  # type: ignore[untyped-decorator]
        def read(self) -> Any:
            data = tfr.TFRecordDataset(urls, storage={"timeout": 20})
            return data.shuffle(1, seed=1).reduce(tf.constant(0), lambda count, _: count + 1)

    tf.saved_model.save(Module(), str(tmp_path / "saved"))
    command = [sys.executable, "-c", LOADING, str(tmp_path / "saved")]
    child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == [str(sum(COUNTS))]


@pytest.mark.parametrize("way", ["file order", "shuffled", "loader", "names in the graph"])
def test_ctrl_c_ends_a_wait_for_the_network(server: RangeServer, urls: list[str], way: str) -> None:
    child = subprocess.Popen(
        [sys.executable, interrupted_child.__file__, urls[0], way],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "open\n"
    server.trouble = lambda *_: Trouble(silent=True)
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "reading\n"
    while not server.running:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE_S)  # a request alone would take an hour
    assert child.returncode == 0, err
    assert out == "interrupted\n"


def test_what_comes_is_kept_in_a_cache(
    server: RangeServer, urls: list[str], shards: list[str], tmp_path: Path
) -> None:
    cache = tfr.DiskCache(tmp_path / "cache", "1G")
    tfr.build_index(urls)
    for make in (PIPELINES["records"], lambda data: data.shuffle(1000, seed=1).batch(16)):
        here = make(tfr.TFRecordDataset(shards))
        there = make(tfr.TFRecordDataset(urls, cache=cache))
        for _ in range(2):
            assert values(there) == values(here)
    # Building the indexes has fetched all bytes once, and all epochs together once more. Opening
    # reads the beginning of an object.
    size = sum(Path(shard).stat().st_size for shard in shards)
    assert sum((each.end or 0) - (each.begin or 0) for each in server.reads()) <= 2 * size + 1000
    reader = tfr.Reader(urls, cache=cache)
    assert list(reader) == list(tfr.Reader(shards))
    reader.close()
    server.forget()
    assert list(tfr.Reader(urls, cache=cache)) == list(tfr.Reader(shards))
