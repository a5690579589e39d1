"""The methods of tf.data that nothing can be planned of. What they return is ours all the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow.building import build_on_theirs
from tfrfast.tensorflow.history import Refusal, call_text
from tfrfast.tensorflow.lifting import internals
from tfrfast.tensorflow.remembering import ENDED, RememberingDataset

_ONE_BY_ONE = Refusal("it handles elements one by one", "batch() first, if batches will do")
_READ_BY_THEIRS = Refusal(
    "TensorFlow's own reader reads for it, so that it finds in each run what it has written"
)
_WRITTEN_AGAIN = Refusal(
    "it writes its files again in each run",
    "snapshot() of files on a disk, before shuffle(), and tf.data's other methods after it",
)
_OTHERS = {
    "bucket_by_sequence_length": _ONE_BY_ONE,
    "concatenate": Refusal("it joins two datasets", "one TFRecordDataset of all files"),
    "enumerate": _ONE_BY_ONE,
    "flat_map": _ONE_BY_ONE,
    "group_by_window": _ONE_BY_ONE,
    "ignore_errors": Refusal("it leaves out what fails", 'on_corruption="skip"'),
    "interleave": _ONE_BY_ONE,
    "ragged_batch": Refusal("it makes ragged batches", "batch() and parse_example()"),
    "rejection_resample": _ONE_BY_ONE,
    "scan": _ONE_BY_ONE,
    "sparse_batch": Refusal("it makes sparse batches", "batch() and parse_example()"),
    "take_while": _ONE_BY_ONE,
    "unbatch": Refusal("it makes single elements"),
    "unique": _ONE_BY_ONE,
    "window": _ONE_BY_ONE,
}


def _wrapped(method: str, refusal: Refusal) -> Callable[..., Any]:
    theirs = getattr(tf.data.Dataset, method)

    @functools.wraps(theirs)
    def call(self: RememberingDataset, *arguments: Any, **options: Any) -> Any:
        def again(dataset: Any) -> Any:
            return theirs(dataset, *arguments, **options)

        text = call_text(method, *arguments, **options)
        why = ENDED if self._pipeline is None else refusal
        given = (*arguments, *options.values())
        can_repeat = method != "ignore_errors" and not any(map(_is_called_or_read, given))
        return self._plain(
            again(self._saved_whole()), text, why, again=again if can_repeat else None
        )

    return call


def _is_called_or_read(argument: Any) -> bool:
    """Whether it is a function, which would be called again, or another dataset."""
    return callable(argument) or isinstance(argument, tf.data.Dataset)


class WithOtherMethods(RememberingDataset):
    """Has all of them."""

    def snapshot(self, *arguments: Any, **options: Any) -> Any:
        call, theirs = call_text("snapshot", *arguments, **options), _on_theirs(self)
        made = tf.data.Dataset.snapshot(
            self._saved_whole() if theirs is None else theirs, *arguments, **options
        )
        return self._plain(made, call, _WRITTEN_AGAIN if theirs is None else _READ_BY_THEIRS)


def _on_theirs(dataset: RememberingDataset) -> Any | None:
    """The same elements from TensorFlow's own reader, if build_on_theirs() can give them."""
    if dataset._pipeline is not None:
        return build_on_theirs(dataset._pipeline)
    if dataset._history.source == "tf.data.TFRecordDataset":
        return dataset
    if dataset._last_call is not None:
        again, before = dataset._last_call
        theirs = _on_theirs(before)
        return None if theirs is None else again(theirs)
    made = dataset._built
    if not internals.can_be_moved(made) or not isinstance(made._input_dataset, RememberingDataset):
        return None
    theirs = _on_theirs(made._input_dataset)
    return None if theirs is None else internals.moved(made, theirs)


for _method, _refusal in _OTHERS.items():
    if hasattr(tf.data.Dataset, _method):
        setattr(WithOtherMethods, _method, _wrapped(_method, _refusal))
