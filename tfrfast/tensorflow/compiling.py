"""Reads, plans and builds a dataset of TensorFlow's."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.build.pipelines import build
from tfrfast.tensorflow.plan.call_rules import LEAVES_OUT
from tfrfast.tensorflow.plan.planner import ChainPlan, check_buffers, plan, why_no_gain
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.chain import Chain, Joined, Tree, Unread, read
from tfrfast.tensorflow.read.shuffles import decide, reshuffled
from tfrfast.tensorflow.reasons import Refusal, reason_of

_SHARED = Refusal(
    "its datasets share a shuffle(), to which tfrfast does not give several orders",
    "a shuffle() of its own for each dataset",
)
_CACHED = Refusal(
    "a cache() in memory keeps one order of a shuffle() for all datasets that are made of it",
    "cache() before shuffle()",
)


@dataclass(frozen=True)
class Compiled:
    """A dataset that runs, and why it runs as it does."""

    dataset: Any
    #: The plan of a chain; None if the dataset is TensorFlow's, or a call on several datasets.
    plan: ChainPlan | None = None
    #: The datasets of a call on several.
    inputs: tuple[Compiled, ...] = ()
    #: Why a chain that was to be planned is TensorFlow's.
    why_not: Refusal | None = None
    #: The planned files, as they were.
    files: dict[bytes, tuple[int, ...]] = field(default_factory=dict)

    @property
    def is_current(self) -> bool:
        """True if the planned files are the same files still."""
        same = all(_facts(name) == facts for name, facts in self.files.items())
        return same and all(each.is_current for each in self.inputs)


def gainful(dataset: Any) -> Tree:
    """Returns what is to be compiled of a dataset that nobody asked tfrfast for by name.

    Opens no file. It is Unread, with the reason, if planning gains nothing.
    """
    try:
        return _gainful(read(dataset, unasked=True))
    except Exception as error:
        return Unread(dataset, reason_of(error, "reading it failed"))


def _gainful(tree: Tree) -> Tree:
    dataset = tree.dataset
    if isinstance(tree, Unread):
        return tree
    if isinstance(tree, Chain):
        why_not = _CACHED if _keeps_a_shuffle(tree.calls) else why_no_gain(tree.calls)
        return tree if why_not is None else Unread(dataset, why_not)
    if nodes.is_memory_cache(dataset) and reshuffled(dataset):
        return Unread(dataset, _CACHED)
    inputs = _of_each(_gainful, tree.inputs)
    if all(isinstance(each, Unread) for each in inputs):
        whys = (each.why for each in inputs if isinstance(each, Unread))
        joins = Refusal("it joins datasets that gain nothing by themselves")
        return Unread(dataset, next((why for why in whys if why in (_SHARED, _CACHED)), joins))
    shuffles = [each for given in {*nodes.inputs(dataset)} for each in reshuffled(given)]
    if len(shuffles) > len({*shuffles}):
        return Unread(dataset, _SHARED)
    return Joined(dataset, inputs)


def _of_each(make: Callable[[Tree], Any], inputs: tuple[Tree, ...]) -> tuple[Any, ...]:
    """Returns what is made of the inputs: once of an input that is given twice."""
    made = {key: make(each) for key, each in {id(each): each for each in inputs}.items()}
    return tuple(made[id(each)] for each in inputs)


def _keeps_a_shuffle(calls: tuple[Any, ...]) -> bool:
    """True if a cache in memory keeps an order of records that differs by iteration.

    Each planned dataset would fill a cache of its own, so that parts of one cache would overlap.
    """
    caches = filter(nodes.is_memory_cache, calls)
    return any(not reshuffled(cache).isdisjoint(calls) for cache in caches)


def compiled(tree: Tree, why_unlifted: str = "") -> Compiled:
    """Plans and builds. Opens files if an index is needed. With `why_unlifted`, no function is
    lifted.
    """
    if isinstance(tree, Unread):
        check_buffers(tree.calls, tree.why)
        return Compiled(tree.dataset)
    if isinstance(tree, Joined):
        check_buffers([tree.dataset], None)
        if nodes.method_of(tree.dataset) == "ignore_errors":
            why_unlifted = LEAVES_OUT.why
        inputs = _of_each(lambda each: compiled(each, why_unlifted), tree.inputs)
        moved = nodes.moved(tree.dataset, [each.dataset for each in inputs])
        return Compiled(moved, inputs=inputs)
    return _by_name(tree, why_unlifted) if tree.asked else _unasked(tree, why_unlifted)


def _by_name(chain: Chain, why_unlifted: str) -> Compiled:
    found = plan(chain, why_unlifted)
    try:
        return built(found)
    except Exception as error:
        if found.pipeline.lifted is None:
            raise
        return built(plan(chain, reason_of(error, "its parse was not lifted").why))


def _unasked(chain: Chain, why_unlifted: str) -> Compiled:
    """After any failure before the first element, TensorFlow's own dataset takes over."""
    made: Compiled | Refusal
    try:
        made = built(plan(chain, why_unlifted))
    except Exception as error:
        made = reason_of(error, "planning failed")
    shuffles = [call for call in chain.calls if nodes.method_of(call) == "shuffle"]
    agreed = decide(shuffles, isinstance(made, Compiled))
    if isinstance(made, Refusal):
        return Compiled(chain.dataset, why_not=made)
    other = Refusal("another dataset of the same shuffle() is TensorFlow's")
    return made if agreed else Compiled(chain.dataset, why_not=other)


def built(found: ChainPlan) -> Compiled:
    """Builds a plan."""
    dataset = build(found.pipeline)
    for call in found.rest:
        dataset = nodes.moved(call, [dataset])
    _ = internals.variant_of(dataset)  # which builds it
    source = found.pipeline.source
    names = (source.names.known or []) if source.plan is not None else []
    files = {name: _facts(name) for name in names if b"://" not in name}
    return Compiled(dataset, found, files=files)


def _facts(name: bytes) -> tuple[int, ...]:
    """Returns what tells whether a file is still the same."""
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
