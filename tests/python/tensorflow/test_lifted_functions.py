"""Random functions with a parse in them: our dataset gives the same results as TensorFlow's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

import tfrfast as tfr
from example_files import plain, write_examples

tf = pytest.importorskip("tensorflow")

from random_functions import Steps, done, random_steps  # noqa: E402
from row_by_row import as_written  # noqa: E402

FEATURES: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "name": tf.io.FixedLenFeature([], tf.string),
    "missing": tf.io.FixedLenFeature([], tf.float32, 0.5),
}
COUNTS = [7, 0, 4]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), COUNTS)


def until_error(dataset: Any) -> tuple[list[str], Any]:
    """Returns the elements before the first error, and the class of the error."""
    found: list[str] = []
    try:
        for element in dataset:
            found.append(repr(plain(element)))
    except (tf.errors.OpError, UnicodeDecodeError) as error:  # the message may quote any bytes
        return found, type(error)
    return found, None


@pytest.mark.filterwarnings("ignore::tfrfast.SlowPathWarning")
@settings(max_examples=8, deadline=None)
@given(random_steps())
def test_random_functions_give_what_they_give_row_by_row(files: list[str], steps: Steps) -> None:
    tfr.Reader(files).close()  # leaves indexes, so that the records can be planned

    @tf.autograph.experimental.do_not_convert
    def function(record: Any) -> Any:
        row = tf.io.parse_single_example(record, FEATURES)
        return tuple(done(steps, [row[name] for name in FEATURES]))

    theirs = as_written(tf.data.TFRecordDataset(files), function).batch(4)
    ours = tfr.TFRecordDataset(files).map(function).batch(4)
    assert ours.element_spec == theirs.element_spec
    assert until_error(ours) == until_error(theirs)
