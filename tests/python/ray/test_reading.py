"""Ray reads a Reader's records, in the same order, each record once, and raises our errors."""

from __future__ import annotations

import importlib.util
import mmap
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import some_example
from mixed_files import mixture_of, write_sets
from orders import shuffled
from record_files import flip_payload_byte, write_shard
from step_files import FEATURES as STEP_FEATURES
from step_files import numbers_in, open_steps
from table_data import FEATURES, expected_row

tray = pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)

COUNT = 1500
ID = {"id": FEATURES["id"]}


@pytest.fixture
def in_order(local_ray: Any) -> Iterator[None]:
    """Makes Ray keep the order of blocks, which is not its default."""
    from ray.data import DataContext

    options = DataContext.get_current().execution_options
    options.preserve_order = True
    yield
    options.preserve_order = False


def ids(dataset: Any) -> list[int]:
    return [row["id"] for row in dataset.take_all()]


def source_of(paths: Any, features: Any = None, **options: Any) -> Any:
    """Returns the source that `read` hands to Ray."""
    from tfrfast.ray.datasource import RecordSource

    order = options.pop("order", None)
    reader = tfr.Reader(paths, **options)
    plan = None if order is None else tfr.Plan(order, 1, num_records=len(reader))
    scan = tfr.scan(reader, features=features or ID, batch_size=100, tensors=True)
    return RecordSource(scan, plan, 0)


@pytest.mark.parametrize("blocks", [1, 7])
def test_rows_are_those_of_the_records(in_order: None, shards: list[str], blocks: int) -> None:
    dataset = tray.read(
        shards,
        features=FEATURES,
        record_column=True,
        shard_column="file",
        override_num_blocks=blocks,
    )
    assert dataset.count() == COUNT
    rows = dataset.take_all()
    files = [path for path, count in zip(shards, [700, 1, 799], strict=True) for _ in range(count)]
    for number, row in enumerate(rows):
        expected = {**expected_row(number), "record": number, "file": files[number]}
        found = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in row.items()
        }
        assert found == expected
    assert len(rows) == COUNT


@pytest.mark.parametrize("order", [None, tfr.Shuffle(2)])
def test_steps_are_read(in_order: None, tmp_path: Path, monkeypatch: Any, order: Any) -> None:
    monkeypatch.chdir(tmp_path)  # Ray's workers are in another folder
    one, two = open_steps(Path("one")), open_steps(Path("two"), (5, 8), 100)
    mixture = tfr.Mixture({"one": (one, 1), "two": (two, 1)})
    expected = [
        int(n) for n in tfr.Plan(order or tfr.InOrder(), 1, num_records=100).records_at(0, 0, 100)
    ]
    found = tray.read(one, features=STEP_FEATURES, order=order, override_num_blocks=4)
    assert numbers_in(found.to_pandas()) == expected
    joined = tray.read(mixture.reader, features=STEP_FEATURES, override_num_blocks=3)
    assert numbers_in(joined.to_pandas()) == list(range(113))


def test_types_and_size_are_known_before_anything_runs(local_ray: Any, shards: list[str]) -> None:
    import pyarrow as pa

    dataset = tray.read(shards, features=FEATURES)
    schema = dataset.schema(fetch_if_missing=False)
    assert schema.names == list(FEATURES)
    kinds = dict(zip(schema.names, schema.base_schema.types, strict=True))
    assert kinds["name"] == pa.binary()
    assert kinds["words"] == pa.list_(pa.binary())
    assert kinds["numbers"] == pa.list_(pa.int64())
    assert tuple(kinds["dense"].shape) == (3,)
    assert tuple(kinds["raw"].shape) == (2, 2)
    size = dataset.size_bytes()
    real = dataset.materialize().size_bytes()
    assert real / 2 < size < real * 2
    batch = next(iter(dataset.iter_batches(batch_size=10)))
    assert batch["dense"].shape == (10, 3)
    assert batch["raw"].dtype == np.int16


def test_a_shuffle_is_that_of_a_loader(local_ray: Any, shards: list[str]) -> None:
    for epoch, some in [(0, None), (3, np.arange(1400, 2, -3))]:
        order = tfr.Shuffle(5, indices=some)
        loader = tfr.Loader(shards, 100, order=order, features=ID)
        loader.set_epoch(epoch)
        expected = [number for batch in loader for number in batch["id"].tolist()]
        dataset = tray.read(shards, features=ID, order=order, epoch=epoch, override_num_blocks=4)
        assert ids(dataset) == expected


def test_records_are_read_in_the_order_given(local_ray: Any, shards: list[str]) -> None:
    some = np.array([1499, 3, 3, 700, 0])
    assert ids(tray.read(shards, features=ID, records=some, override_num_blocks=3)) == some.tolist()
    assert ids(tray.read(shards, features=ID, records=slice(0))) == []


def test_columns_that_are_dropped_are_not_decoded(in_order: None, tmp_path: Path) -> None:
    records = [tfr.encode_example({"id": number, "name": b"x"}) for number in range(20)]
    path = write_shard(tmp_path / "data", records)
    wrong = {**ID, "name": tfr.FixedLen((), "int64")}
    with pytest.raises(tfr.FeatureError, match="name"):
        tray.read(path, features=wrong).take_all()
    # The wrong type is allowed only for a column that is not decoded.
    assert ids(tray.read(path, features=wrong, columns=["id"])) == list(range(20))
    if source_of(path).supports_projection_pushdown():  # Ray 2.40 does not
        assert ids(tray.read(path, features=wrong).select_columns(["id"])) == list(range(20))
        with pytest.raises(ValueError, match="no column 'nothing'"):
            tray.read(path, features=ID).select_columns(["id", "nothing"]).take_all()


def test_damage_is_our_error_and_may_be_left_out(
    in_order: None, shards: list[str], tmp_path: Path
) -> None:
    copies = [shutil.copy(path, tmp_path) for path in shards]
    flip_payload_byte(copies[0], [some_example(number) for number in range(700)], 600)
    dataset = tray.read(copies, features=ID, override_num_blocks=4)
    assert dataset.count() == COUNT
    with pytest.raises(tfr.CorruptRecordError, match="record 600") as caught:
        dataset.take_all()
    assert copies[0] in str(caught.value)
    rest = tray.read(copies, features=ID, override_num_blocks=4, on_corruption="skip")
    assert ids(rest) == [number for number in range(COUNT) if number != 600]
    assert rest.count() == COUNT - 1


def test_images_are_read_as_they_are_stored(tmp_path: Path) -> None:
    write_shard(tmp_path / "a", [tfr.encode_example({"image": b"jpeg"})])
    with pytest.raises(
        ValueError, match=r'Scan the encoded image with tfr.FixedLen\(\(\), "bytes"'
    ):
        tray.read(str(tmp_path / "a"), features={"image": tfr.Image((8, 8), crop="random")})


def test_a_shard_that_was_written_again_is_refused(local_ray: Any, tmp_path: Path) -> None:
    path = write_shard(tmp_path / "data", [some_example(number) for number in range(20)])
    dataset = tray.read(path, features=ID)
    write_shard(tmp_path / "data", [some_example(number) for number in range(21)])
    with pytest.raises(tfr.StaleIndexError, match="20 in .* where this job was begun"):
        dataset.take_all()


def test_parts_are_small_and_read_without_ray(shards: list[str]) -> None:
    numbers = np.arange(COUNT)[::-1].copy()
    for source, limit, expected in [
        (source_of(shards), 3000, range(COUNT)),
        (source_of(shards, order=tfr.Shuffle(5)), 3000, shuffled(COUNT, 5).tolist()),
        (
            source_of(shards, order=tfr.InOrder(indices=numbers)),
            3000 + 8 * COUNT // 6,
            range(COUNT - 1, -1, -1),
        ),
    ]:
        parts = [pickle.dumps(part) for part in source.parts(7)]
        assert len(parts) == 7
        assert max(map(len, parts)) < limit
        read = [part.read(part.rows, 1) for part in map(pickle.loads, parts)]
        found = [row for tables in read for table in tables for row in table["id"].to_pylist()]
        assert found == list(expected)


@pytest.mark.parametrize("some", [None, [3, 1, 1, 0]])
@pytest.mark.parametrize("kind", [None, tfr.Shuffle, tfr.InOrder])
def test_more_tasks_than_records_lose_none(tmp_path: Path, kind: Any, some: Any) -> None:
    order = None if kind is None else kind(indices=some)
    path = write_shard(tmp_path / "data", [some_example(number) for number in range(4)])
    for count in (1, 3, 4, 5, 10, 100):
        parts = list(source_of(path, order=order).parts(count))
        tables = [table for part in parts for table in part.read(part.rows, 1)]
        found = [row for table in tables for row in table["id"].to_pylist()]
        assert sorted(found) == ([0, 1, 1, 3] if order is not None and some else [0, 1, 2, 3])
        assert len(parts) == min(count, 4)


def test_batches_beyond_2_gib_become_several_blocks() -> None:
    import pyarrow as pa

    from tfrfast.ray.blocks import blocks

    size, count = 500 << 20, 6
    data = pa.py_buffer(mmap.mmap(-1, count * size))  # untouched pages
    offsets = np.arange(count + 1, dtype=np.int64) * size
    strings = pa.Array.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(offsets), data], null_count=0
    )
    numbers = pa.Array.from_buffers(pa.uint8(), count * size, [None, data], null_count=0)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), numbers)
    small = pa.array(
        [[b"a"], None, [], [b"b", b"c"], None, [b"d"]], pa.large_list(pa.large_binary())
    )
    batch = pa.record_batch({"s": strings, "l": lists, "small": small})
    tables = list(blocks(batch, {}))
    assert [len(table) for table in tables] == [3, 3]
    assert tables[0].schema.types == [pa.binary(), pa.list_(pa.uint8()), pa.list_(pa.binary())]
    words = [row for table in tables for row in table["small"].to_pylist()]
    assert words == small.to_pylist()
    assert tables[1]["s"].chunk(0).buffers()[2].size == 3 * size


def test_other_versions_of_ray_may_pass_other_keywords(shards: list[str]) -> None:
    source = source_of(shards)
    tasks = source.get_read_tasks(4, something_new=1)
    assert sum(task.metadata.num_rows for task in tasks) == COUNT
    assert sorted({path for task in tasks for path in task.metadata.input_files}) == shards
    few = source.get_read_tasks(4, per_task_row_limit=2, data_context=None)
    if hasattr(few[0], "per_task_row_limit"):  # Ray 2.40 has no limits
        assert [sum(len(table) for table in task()) for task in few] == [2, 2, 2, 2]


def test_nothing_is_read_of_sets_without_records(in_order: None, tmp_path: Path) -> None:
    path = write_shard(tmp_path / "data", [])
    assert tray.read(path, features=ID).take_all() == []


def test_arguments_without_a_meaning_are_refused(local_ray: Any, shards: list[str]) -> None:
    with pytest.raises(ValueError, match="leave out epoch=3"):
        tray.read(shards, features=ID, epoch=3)
    with pytest.raises(ValueError, match="override_num_blocks"):
        tray.read(shards, features=ID, override_num_blocks=0)


def test_a_mixture_keeps_its_weights(local_ray: Any, tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    dataset = tray.read(mixture, features=ID, record_column=True, epoch=2, override_num_blocks=3)
    expected = tfr.Plan(mixture, 200).indices(2, 0).tolist()
    assert [row["record"] for row in dataset.take_all()] == expected
    with pytest.raises(TypeError, match="give it indices instead"):
        tray.read(mixture, features=ID, records=[1])


if importlib.util.find_spec("tensorflow"):

    def test_ray_itself_reads_the_same(in_order: None, tmp_path: Path) -> None:
        import ray

        records = [
            tfr.encode_example({"id": number, "dense": [number, 0.5], "name": b"%d" % number})
            for number in range(50)
        ]
        write_shard(tmp_path / "data.tfrecords", records)
        theirs = ray.data.read_tfrecords(str(tmp_path / "data.tfrecords")).take_all()
        features = {
            "id": tfr.FixedLen((), "int64"),
            "dense": tfr.VarLen("float32"),
            "name": tfr.FixedLen((), "bytes"),
        }
        ours = tray.read(tmp_path / "data.tfrecords", features=features).take_all()
        assert ours == theirs

    @pytest.mark.parametrize("name", ["id", "dense", "name", "numbers"])
    def test_rays_tensorflow_datasets_take_every_column(
        local_ray: Any, tmp_path: Path, name: str
    ) -> None:
        import ray

        records = [
            tfr.encode_example({"id": n, "dense": [n, 1.5], "name": b"%d" % n, "numbers": [1] * n})
            for n in range(1, 9)
        ]
        path = write_shard(tmp_path / "data", records)
        features = {**ID, "dense": tfr.FixedLen((2,), "float32"), "name": FEATURES["name"]}
        features["numbers"] = tfr.VarLen("int64")
        dataset = tray.read(path, features=features)
        tensors = next(iter(dataset.to_tf(name, "id", batch_size=8)))[0]
        expected = tfr.parse_example(records, features)[name].tolist()
        assert (tensors.to_list() if name == "numbers" else tensors.numpy().tolist()) == expected
        assert ray.is_initialized()
