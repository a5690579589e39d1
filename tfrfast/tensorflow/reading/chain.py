"""A finished dataset as a chain: a dataset of records, and the calls on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfrfast.tensorflow.history import Refusal
from tfrfast.tensorflow.reading import nodes
from tfrfast.tensorflow.reading.calls import call_of
from tfrfast.tensorflow.reading.sources import Records, records_of


@dataclass(frozen=True)
class Chain:
    """A dataset of records, and the calls on it, in order."""

    source: Any
    records: Records
    calls: tuple[Any, ...]


def chain_of(dataset: Any) -> Chain | Refusal:
    """Returns the chain that ends with a dataset, or the reason why none exists. Opens nothing."""
    deterministic = dataset.options().deterministic is not False
    why_not = Refusal("it reads no TFRecord files")
    calls: list[Any] = []
    while True:
        found = records_of(dataset, deterministic)
        if isinstance(found, Records):
            return Chain(dataset, found, (*found.calls, *reversed(calls)))
        why_not = found or why_not
        before = nodes.before(dataset)
        if len(before) > 1:
            return Refusal(f"{call_of(dataset)} joins datasets that gain nothing by themselves")
        if len(before) != 1 or not nodes.kind(dataset):
            return why_not
        calls += reversed(nodes.in_steps(dataset))
        (dataset,) = before
