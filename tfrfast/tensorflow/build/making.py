"""Functions with bodies of tfrfast, and datasets that such a function makes.

The functions are made in less time than by tf.function. No op in such a function needs an order,
and only ops that the results need are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals

# The functions of so many kinds of datasets are kept.
_MAX_KEPT = 64


class MadeDataset(tf.data.Dataset):  # type: ignore[misc]
    """A dataset that an op or a function of tfrfast has made of others."""

    def __init__(self, sources: list[Any], function: Any, variant: Any, spec: Any) -> None:
        self._sources = sources
        self._function = function  # lives as long as this does
        self._spec = spec
        super().__init__(variant)

    def _inputs(self) -> list[Any]:
        return self._sources

    @property
    def element_spec(self) -> Any:
        return self._spec


def made_once(make: Callable[..., Any], values: tuple[Any, ...], *given: Any) -> Any:
    """Returns the dataset make(*values, *given). Traces `make` once in a process for equal values.

    TensorFlow takes 0.5 ms or more for each op that makes a dataset eagerly, and tracing the
    functions of these ops takes longer. `make` is a function of a module, and depends only on its
    arguments: hashable values, and given tensors and datasets.
    """
    if not tf.executing_eagerly():
        return make(*values, *given)
    with tf.device("/cpu:0"):
        return _called(make, values, given)


def made_by_a_call(make: Callable[..., Any], *given: Any) -> Any:
    """Returns the dataset make(*given), like made_once(), in a function that is being traced, too.

    There, a call takes less time than a trace of all functions of `make`.
    """
    with tf.init_scope():
        is_eager = tf.executing_eagerly()
    return _called(make, (), given) if is_eager else make(*given)


def _called(make: Callable[..., Any], values: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
    specs = tuple(map(_spec_of, given))
    with tf.init_scope():
        function, spec = _traced_once(make, values, specs)
    sources = [each for each in given if isinstance(each, tf.data.Dataset)]
    (variant,) = tf.raw_ops.PartitionedCall(
        args=internals.flat_tensors(specs, given),
        Tout=[tf.variant],
        f=function,
        config_proto=_without_optimiser(),
    )
    return MadeDataset(sources, function, variant, spec)


def _spec_of(given: Any) -> Any:
    if isinstance(given, tf.data.Dataset):
        return tf.data.DatasetSpec(given.element_spec)
    return tf.TensorSpec(given.shape, given.dtype)


@functools.lru_cache(_MAX_KEPT)
def _traced_once(
    make: Callable[..., Any], values: tuple[Any, ...], specs: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Returns the function, and the spec of the dataset's elements."""
    spec = None

    def run(*given: Any) -> Any:
        nonlocal spec
        made = make(*values, *given)
        spec = made.element_spec
        return internals.variant_of(made)

    with tf.device(None):  # wherever the first such dataset was made
        return internals.traced(run, specs, {}), spec


@functools.cache
def _without_optimiser() -> bytes:
    """Returns a configuration of calls. TensorFlow's optimiser would take 40 ms at the first."""
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    text: bytes = config.SerializeToString()
    return text
