"""parse_example() of a dataset, by names or with everything that the records have."""

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_kinds import event

tf = pytest.importorskip("tensorflow")

SPECS = {"label": tfr.FixedLen((), "int64"), "year": tfr.FixedLen((), "int64", default=0)}


@pytest.fixture
def path(tmp_path: Path) -> str:
    with tfr.Writer(tmp_path / "data") as writer:
        for number in range(20):
            year = {"year": 1984} if number % 2 else {}
            writer.write_example({"label": number, "tags": [b"t"] * (number % 3), **year})
    return str(tmp_path / "data")


def labels_of(dataset: Any) -> list[int]:
    return [int(label) for batch in dataset for label in batch["label"]]


@pytest.mark.parametrize("features", [["label", "year"], "infer"])
def test_features_are_inferred_wherever_the_dataset_stands(path: str, features: Any) -> None:
    plain = tfr.TFRecordDataset([path]).batch(4)
    shuffled = tfr.TFRecordDataset([path]).shuffle(1, seed=3).batch(4)
    mixed = tfr.TFRecordDataset([path, path], num_parallel_reads=2).batch(4)
    mapped = tfr.TFRecordDataset([path]).map(lambda record: record).batch(4)
    for dataset in (plain, shuffled, mixed, mapped):
        parsed = dataset.parse_example(features)
        assert set(parsed.element_spec) == {"label", "year", "tags"} - (
            {"tags"} if features != "infer" else set()
        )
        explicit = dataset.parse_example(SPECS)
        assert labels_of(parsed) == labels_of(explicit)
        assert [batch["year"].numpy().tolist() for batch in parsed] == [
            batch["year"].numpy().tolist() for batch in explicit
        ]


def test_features_that_cannot_be_inferred(path: str, tmp_path: Path) -> None:
    dataset = tfr.TFRecordDataset([path]).batch(4)
    with pytest.raises(tfr.FeatureError, match="'lable' is required.*Did you mean 'label'"):
        dataset.parse_example(["lable"])
    with pytest.raises(TypeError, match="A single name goes into a list"):
        dataset.parse_example("label")

    with tfr.Writer(tmp_path / "events") as writer:
        writer.write_batch([event(number) for number in range(9)])
    with pytest.raises(tfr.FeatureError, match="Record 0 holds a tensorflow.Event"):
        tfr.TFRecordDataset([str(tmp_path / "events")]).batch(4).parse_example("infer")

    @tf.function
    def in_a_graph() -> Any:
        return next(iter(tfr.TFRecordDataset([path]).batch(4).parse_example("infer")))

    with pytest.raises(ValueError, match="only inferred eagerly"):
        in_a_graph()
