"""Records that claim more bytes than any memory has, in tf.data: an error at their place."""

from __future__ import annotations

import pytest

import tfrfast as tfr
from example_files import elements
from huge_files import HUGE, huge_files

tf = pytest.importorskip("tensorflow")

pytestmark = pytest.mark.newest

NO_ROOM = "more than memory can hold"


@pytest.mark.parametrize("indexed", [False, True])
def test_a_stream_goes_on_behind_it(indexed: bool) -> None:
    with huge_files([[b"before", 1 << 43, b"after"]]) as (path,):
        if indexed:
            tfr.Reader(path).close()
        dataset = tfr.TFRecordDataset(path)
        records = iter(dataset)
        assert next(records).numpy() == b"before"
        with pytest.raises(tf.errors.ResourceExhaustedError, match=NO_ROOM):
            next(records)
        assert elements(dataset.ignore_errors()) == [b"before", b"after"]


@pytest.mark.parametrize(("indexed", "parsed"), [(False, True), (True, False)])
def test_a_batch_whose_sum_wraps_is_an_error(indexed: bool, parsed: bool) -> None:
    with huge_files([[HUGE]] * 4) as paths:
        if indexed:
            tfr.Reader(paths).close()
        dataset = tfr.TFRecordDataset(paths).batch(4)
        if parsed:
            dataset = dataset.parse_example({"x": tfr.FixedLen([], "int64")})
        with pytest.raises(tf.errors.ResourceExhaustedError, match=NO_ROOM):
            elements(dataset)


def test_a_loaders_dataset_raises_it() -> None:
    with huge_files([[HUGE]] * 4) as paths:
        loader = tfr.Loader(tfr.Reader(paths), 4, shuffle=False)
        with pytest.raises(tf.errors.ResourceExhaustedError, match=NO_ROOM):
            elements(loader.to_tf_dataset())
