"""seqio from PyPI, unedited: its datasets are accelerated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

seqio = pytest.importorskip("seqio")
tf = pytest.importorskip("tensorflow")
adapter = pytest.importorskip("tfrfast.tensorflow")

ROWS = 200
LENGTH = 8


def cast(dataset: Any) -> Any:
    return dataset.map(lambda row: {key: tf.cast(row[key], tf.int32) for key in row})


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A task over three shards of token ids, of lengths 1 to 12."""
    folder = tmp_path_factory.mktemp("tokens")
    for shard in range(3):
        with tfr.Writer(folder / f"train-{shard}") as writer:
            for row in range(shard, ROWS, 3):
                tokens = np.full(1 + row % 12, 2 + row)
                writer.write(tfr.encode_example({"targets": tokens}))
    targets = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    return seqio.Task(
        "rows",
        source=seqio.TFExampleDataSource({"train": str(folder / "train-*")}, {"targets": targets}),
        preprocessors=[cast, seqio.preprocessors.append_eos],
        output_features={"targets": seqio.Feature(seqio.PassThroughVocabulary(ROWS + 2, eos_id=1))},
    )


def batches(task: Any, shuffle: bool) -> Any:
    lengths = {"targets": LENGTH}
    rows = task.get_dataset(sequence_length=lengths, split="train", shuffle=shuffle, seed=1)
    converted = seqio.LMFeatureConverter(pack=False)(rows, task_feature_lengths=lengths)
    return converted.batch(16)


@pytest.fixture(params=["plain", "installed"])
def tokens(request: pytest.FixtureRequest, task: Any) -> Iterator[Any]:
    """The tokens of an epoch, as TensorFlow and as tfrfast reads them."""
    if request.param == "installed":
        adapter.install()

    def read(shuffle: bool) -> Any:
        found = [batch["decoder_target_tokens"] for batch in batches(task, shuffle)]
        return np.concatenate(found)

    yield read
    adapter.uninstall()


def test_rows_are_trimmed_and_padded_in_order(tokens: Any) -> None:
    rows = tokens(shuffle=False)
    assert rows.shape == (ROWS, LENGTH)
    first_of_shards = [2 + shard + 3 * row for shard in range(3) for row in range(16)]
    assert rows[:48, 0].tolist() == first_of_shards
    assert rows[4].tolist() == [14, 1, *[0] * 6]


def test_every_row_is_shuffled_once(tokens: Any) -> None:
    assert sorted(tokens(shuffle=True)[:, 0].tolist()) == list(range(2, ROWS + 2))
