"""A finished dataset as a chain: a dataset of records, and the calls on it, also as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.shuffles import noted_order
from tfrfast.tensorflow.read.sources import AskedRecords, Records, records_of
from tfrfast.tensorflow.reasons import Refusal, RefusedError

_NO_FILES = Refusal("it reads no TFRecord files")


@dataclass(frozen=True)
class Chain:
    """A dataset of records, and the calls on it, in order."""

    dataset: Any
    records: Records | AskedRecords
    calls: tuple[Any, ...]

    @property
    def asked(self) -> bool:
        """True if the user asked tfrfast for the records by name."""
        return isinstance(self.records, AskedRecords)


@dataclass(frozen=True)
class Joined:
    """A call on datasets, some of which are chains. An input that is given twice is read once."""

    dataset: Any
    inputs: tuple[Tree, ...]


@dataclass(frozen=True)
class Unread:
    """A dataset that stays as it is."""

    dataset: Any
    why: Refusal
    #: The calls on a source that tfrfast was asked for by name, and does not plan.
    calls: tuple[Any, ...] = ()


Tree = Chain | Joined | Unread


def read(dataset: Any, unasked: bool) -> Tree:
    """Returns what a dataset is made of. Opens nothing.

    Unless `unasked`, only records that were asked for by name make a chain.
    """
    try:
        return _chain_of(dataset, unasked)
    except RefusedError as refused:
        why = refused.refusal
    inputs = nodes.inputs(dataset)
    if not inputs or not nodes.can_be_moved(dataset):
        return Unread(dataset, why)
    once = {each: read(each, unasked) for each in inputs}
    if all(isinstance(each, Unread) for each in once.values()):
        return Unread(dataset, why)
    return Joined(dataset, tuple(once[each] for each in inputs))


def _chain_of(dataset: Any, unasked: bool) -> Chain | Unread:
    """Returns the chain that ends with a dataset. Raises RefusedError if none exists."""
    last, deterministic = dataset, None
    why_not = _NO_FILES
    calls: list[Any] = []
    while True:
        if isinstance(dataset, AskedRecords):
            in_order = nodes.with_rebatch(calls[::-1])
            if dataset.source is None:
                return Unread(last, dataset.why, in_order)
            if all(map(nodes.can_be_moved, calls)):
                return Chain(last, dataset, in_order)
            return Unread(last, Refusal("TensorFlow's own reader reads for it"), in_order)
        if unasked:
            if deterministic is None:
                deterministic = last.options().deterministic is not False
            try:
                found = records_of(dataset, deterministic)
            except RefusedError as refused:
                found, why_not = None, refused.refusal
            if found is not None:
                return Chain(last, found, (*found.calls, *nodes.with_rebatch(calls[::-1])))
        before = nodes.before(dataset)
        if len(before) > 1 and why_not is _NO_FILES:
            raise RefusedError(
                f"{call_text(dataset)} joins datasets that gain nothing by themselves"
            )
        if len(before) != 1 or not nodes.method_of(dataset):
            raise RefusedError(why_not)
        calls += reversed(nodes.in_steps(dataset))
        (dataset,) = before


def call_text(dataset: Any) -> str:
    """Returns the call that made a dataset, approximately as written."""
    method = name_of(dataset)
    if method == "parse_example":
        return "parse_example({...})"
    if nodes.function_of(dataset) is not None:
        return f"{method}({nodes.function_name(dataset)})"
    shown = internals.maker_of(nodes.without_adapter(dataset)).shown
    values = [_text(nodes.attribute(dataset, name)) for name in shown]
    if method == "repeat" and values[0].startswith("-"):
        values = []
    if (noted := noted_order(dataset)) is not None:
        values = [] if noted.whole else values
        if noted.seeded:
            values.append(f"seed={_text(nodes.attribute(dataset, 'seed2'))}")
    elif _text(nodes.attribute(dataset, "drop_remainder")) == "True":
        values.append("drop_remainder=True")
    return f"{method}({', '.join(values)})"


def name_of(dataset: Any) -> str:
    """Returns the method that made a dataset or, for one of another library, its class in words."""
    return nodes.method_of(dataset) or internals.in_words(type(dataset).__name__)


def _text(given: Any) -> str:
    known: Any = None if given is None else tf.get_static_value(given)
    value = known.item() if getattr(known, "shape", None) == () else given
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return repr(value)
    return "[...]" if isinstance(value, (list, tuple)) else "..."
