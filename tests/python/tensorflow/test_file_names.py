"""The names that TFRecordDataset takes: patterns, and datasets of names."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements
from record_files import write_shard, write_shards

tf = pytest.importorskip("tensorflow")

COUNTS = [7, 0, 12, 1]
Names = tf.data.Dataset


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write_shards(tmp_path, COUNTS)


def written(files: Any) -> list[bytes]:
    return elements(tf.data.TFRecordDataset(files))


class TestPatterns:
    def test_give_the_files_that_they_match(self, tmp_path: Path, files: list[str]) -> None:
        assert elements(tfr.TFRecordDataset(str(tmp_path / "data-*"))) == written(files)
        assert elements(tfr.TFRecordDataset(tmp_path)) == written(files)
        assert elements(tfr.TFRecordDataset(f"{tmp_path}/")) == written(files)
        assert elements(tfr.TFRecordDataset(tmp_path / "data-00[02]")) == written(files[::2])
        assert elements(tfr.TFRecordDataset(tf.constant(str(tmp_path / "*")))) == written(files)
        among = [files[3], str(tmp_path / "data-00[12]"), files[0]]
        assert elements(tfr.TFRecordDataset(among)) == written([files[i] for i in (3, 1, 2, 0)])

    def test_can_be_planned(self, tmp_path: Path, files: list[str]) -> None:
        pattern = str(tmp_path / "data-*")
        assert sorted(elements(tfr.TFRecordDataset(pattern).shuffle(1))) == sorted(written(files))
        assert tfr.TFRecordDataset(pattern).cardinality().numpy() == sum(COUNTS)

    def test_without_a_match_are_not_found(self, tmp_path: Path) -> None:
        with pytest.raises(tf.errors.NotFoundError, match=r"pattern '.*trian-\*'.*spelling"):
            tfr.TFRecordDataset(str(tmp_path / "trian-*"))

    def test_in_a_graph(self, tmp_path: Path, files: list[str]) -> None:
        @tf.function
        def count() -> Any:
            dataset = tfr.TFRecordDataset(str(tmp_path / "data-*"))
            return dataset.reduce(tf.constant(0), lambda total, _: total + 1)

        assert count().numpy() == sum(COUNTS)

    def test_of_tensorflows_filesystems(self, tmp_path: Path, files: list[str]) -> None:
        assert elements(tfr.TFRecordDataset(f"file://{tmp_path}/data-*")) == written(files)
        with pytest.raises(tf.errors.NotFoundError, match=r"trian-\*"):
            tfr.TFRecordDataset(f"file://{tmp_path}/trian-*")
        with pytest.raises(tf.errors.OpError):  # as before, at the reading
            elements(tfr.TFRecordDataset("nosuch://bucket/data-*"))

    def test_names_that_are_no_text(self, tmp_path: Path) -> None:
        name = os.fsencode(tmp_path) + b"/caf\xe9-1"
        Path(os.fsdecode(name)).write_bytes(
            Path(write_shard(tmp_path / "plain", [b"x"])).read_bytes()
        )
        assert elements(tfr.TFRecordDataset(os.fsencode(tmp_path) + b"/caf*")) == [b"x"]


class TestDatasetsOfNames:
    @pytest.mark.parametrize(
        "chain",
        [
            lambda files: Names.from_tensor_slices(files),
            lambda files: Names.from_tensors(files[2]),
            lambda files: Names.from_tensor_slices(files).skip(1).take(2).repeat(2).prefetch(1),
            lambda files: Names.from_tensor_slices(files).shard(2, 1),
            lambda files: Names.from_tensors(files[3]).concatenate(Names.from_tensors(files[0])),
            lambda files: Names.from_tensor_slices(files).take(0),
            lambda files: Names.list_files(files[0][:-1] + "*", shuffle=False),
        ],
    )
    def test_that_are_known_are_planned(self, files: list[str], chain: Any) -> None:
        expected = written(chain(files))
        streaming = tfr.TFRecordDataset(chain(files))
        assert elements(streaming) == expected
        assert elements(streaming.take(3)) == expected[:3]
        tfr.Reader(files).close()
        planned = tfr.TFRecordDataset(chain(files))
        assert planned.cardinality().numpy() == len(expected)
        assert elements(planned.skip(2).batch(4).unbatch()) == expected[2:]
        shuffled = tfr.TFRecordDataset(chain(files)).shuffle(1, seed=1)
        assert tfr.explain(shuffled).steps[-1].fused
        assert Counter(elements(shuffled)) == Counter(expected)

    @pytest.mark.parametrize("seed", [None, 3])
    def test_in_a_random_order_are_planned_for_a_shuffle_only(
        self, files: list[str], seed: int | None
    ) -> None:
        tfr.Reader(files).close()
        names = Names.list_files(files[0][:-1] + "*", seed=seed)
        dataset = tfr.TFRecordDataset(names)
        assert dataset.cardinality() == sum(COUNTS)
        orders: set[tuple[bytes, ...]] = set()
        for _ in range(20):
            orders.add(tuple(elements(dataset)))
            if len(orders) > 2:
                break
        assert len(orders) > 1  # each iteration has another order of files
        assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(written(files)))}
        shuffled = dataset.shuffle(1)
        assert tfr.explain(shuffled).steps[-1].fused
        assert sorted(elements(shuffled)) == sorted(written(files))
        assert shuffled.cardinality().numpy() == sum(COUNTS)

    def test_in_a_random_order_keep_the_seed_of_their_shuffle(self, files: list[str]) -> None:
        def orders(reader: Any) -> list[list[bytes]]:
            dataset = reader(Names.from_tensor_slices(files).shuffle(4, seed=3))
            return [elements(dataset) for _ in range(3)]

        assert orders(tfr.TFRecordDataset) == orders(tf.data.TFRecordDataset)

    def test_in_a_random_order_give_planned_batches(self, files: list[str]) -> None:
        """Shards of whole files, in another order in each iteration."""
        names = Names.from_tensor_slices(files).shuffle(4, seed=3)
        batches = tfr.TFRecordDataset(names).batch(3)
        assert tfr.explain(batches).steps[-1].fused
        orders = [[record for batch in elements(batches) for record in batch] for _ in range(9)]
        whole = [written([file]) for file in files]
        for order in orders:
            assert sorted(order) == sorted(written(files))
            for records in filter(None, whole):
                first = order.index(records[0])
                assert order[first : first + len(records)] == records
        assert len({*map(tuple, orders)}) > 1
        again = tfr.TFRecordDataset(Names.from_tensor_slices(files).shuffle(4, seed=3)).batch(3)
        assert [record for batch in elements(again) for record in batch] == orders[0]

    def test_a_part_of_files_in_a_random_order_is_not_planned(self, files: list[str]) -> None:
        dataset = tfr.TFRecordDataset(Names.from_tensor_slices(files).shuffle(4)).take(5)
        shuffled = dataset.shuffle(5)
        take, shuffle = tfr.explain(shuffled).steps
        assert take.fused
        assert not shuffle.fused
        assert "each iteration shuffles other records" in shuffle.why
        assert len(elements(shuffled)) == 5

    @pytest.mark.parametrize(
        "chain",
        [
            lambda names: names.map(lambda name: name),
            lambda names: names.shuffle(4).take(2),
            lambda names: names.repeat(),
            lambda names: names.filter(lambda _: True),
        ],
    )
    def test_others_stream(self, files: list[str], chain: Any) -> None:
        tfr.Reader(files).close()
        dataset = tfr.TFRecordDataset(chain(Names.from_tensor_slices(files)))
        assert ": streaming" in str(tfr.explain(dataset))
        assert not tfr.explain(dataset.shuffle(2)).steps[-1].fused
