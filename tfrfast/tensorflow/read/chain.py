"""A finished dataset as a chain: a dataset of records, and the calls on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.calls import call_of
from tfrfast.tensorflow.read.sources import AskedRecords, Records, records_of
from tfrfast.tensorflow.reasons import Refusal


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
    found = _chain_of(dataset, unasked)
    if not isinstance(found, Refusal):
        return found
    inputs = nodes.inputs(dataset)
    if not inputs or not nodes.can_be_moved(dataset):
        return Unread(dataset, found)
    once = {each: read(each, unasked) for each in inputs}
    if all(isinstance(each, Unread) for each in once.values()):
        return Unread(dataset, found)
    return Joined(dataset, tuple(once[each] for each in inputs))


def _chain_of(dataset: Any, unasked: bool) -> Chain | Unread | Refusal:
    """Returns the chain that ends with a dataset, or the reason why none exists."""
    last, deterministic = dataset, None
    why_not = Refusal("it reads no TFRecord files")
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
            found = records_of(dataset, deterministic)
            if isinstance(found, Records):
                return Chain(last, found, (*found.calls, *nodes.with_rebatch(calls[::-1])))
            why_not = found or why_not
        before = nodes.before(dataset)
        if len(before) > 1:
            return Refusal(f"{call_of(dataset)} joins datasets that gain nothing by themselves")
        if len(before) != 1 or not nodes.kind(dataset):
            return why_not
        calls += reversed(nodes.in_steps(dataset))
        (dataset,) = before
