"""Measures the iterations of a dataset: how long each part took, and how long training waited.

TensorFlow itself counts the time of each part of a running iterator, and the time between two
requests for elements, which is training's. The rest of the time from request to request is waiting.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

from tfrfast.base.tables import format_table
from tfrfast.loading.counters import Counters
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.reasons import reason_of

_LAST = "_tfrfast_clock"
_COUNTERS = "_tfrfast_counters"
_SECONDS_TO_THE_FIRST_LOOK = 0.05
_SECONDS_BETWEEN_LOOKS = 0.25
# No training has shorter steps. Noting all of them would take more than a hundredth of their time.
_LEAST_STEP = 2e-4
_LITTLE = 0.05
_WIDTH = 80
# The classes of nodes that work ahead of their consumer, in TensorFlow's model.proto.
_ASYNCHRONOUS = (2, 4, 6)


class Part(NamedTuple):
    """A call, as the op of its iterator, and as text."""

    op: str
    text: str


class MeasuredCalls(NamedTuple):
    """The calls that TensorFlow runs, from the last one on, and all that is fused before them."""

    calls: tuple[Part, ...]
    fused: str


class MeasuredIterator(internals.WatchedIterator):
    """An iterator that is measured."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset)
        #: None if this TensorFlow does not time its parts.
        self.clock: Clock | None = None
        if internals.ModelProto is not None:
            self._watch = self.clock = Clock(dataset)
            self.clock.iterator = weakref.ref(self)
            weakref.finalize(self, self.clock.look, self._resource, True).atexit = False


class Clock:
    """Measures one iteration. Looks at the iterator every quarter of a second, and at its end."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = weakref.ref(dataset)
        vars(dataset).setdefault(_LAST, self)
        self._counters = [*_counters_of(dataset)]
        self._count = 0
        #: The number and the time of the last request before the last look.
        self._looked: tuple[int, float] | None = None
        self._due = 0.0
        self.iterator: Any = None
        #: The parts by TensorFlow's numbers, from the last call on.
        self.nodes: dict[int, _Node] = {}
        #: The time from request to request, and how long training waited in it.
        self.seconds = self.waited = 0.0
        self.began = self.last = perf_counter()

    def __call__(self, resource: Any) -> None:
        """Notes a request for an element."""
        self.last = now = perf_counter()
        self._count += 1
        if now < self._due:
            return
        if self._looked is None:
            if self._count == 2:  # the first step also makes what later steps use
                self._looked, self._due = (2, now), now + _SECONDS_TO_THE_FIRST_LOOK
        else:
            self.look(resource)

    @property
    def has_parts(self) -> bool:
        """True if an iteration was measured, and the times of its parts."""
        return len(self.nodes) > 1  # the first stands for no call

    def update(self) -> None:
        """Looks at an iterator that still lives."""
        iterator = None if self.iterator is None else self.iterator()
        if iterator is not None:
            self.look(iterator._resource, True)

    def look(self, resource: Any, is_over: bool = False) -> None:
        """Adds the steps since the last look. A fault ends the measurement, not the iteration."""
        if self._looked is None or self._count == self._looked[0]:
            return
        try:
            self._add_steps(resource, self._looked, is_over)
        except Exception as error:
            self._looked = None  # no look follows
            reason_of(error, "measuring failed")

    def _add_steps(self, resource: Any, looked: tuple[int, float], is_over: bool) -> None:
        with internals.eager_mode():
            model = internals.model_of(resource)
        if model is None or not model.gap_times:
            return
        count, at = looked
        self._looked, self._due = (self._count, self.last), self.last + _SECONDS_BETWEEN_LOOKS
        new = self._count - count
        between = (self.last - at) / new
        if between < _LEAST_STEP and count > 2 and (iterator := self.iterator()) is not None:
            iterator._watch = None
        # A request of Keras may be for several steps.
        elements = model.nodes[model.output].num_elements
        steps = max(1, round(elements / (self._count if is_over else self._count - 1)))
        trained = [*model.gap_times][-new * steps :]  # the last 100 at most
        share = 1 - steps * sum(trained) / len(trained) / 1e6 / between
        waited = min(max(share, 0.0), 1.0) * (self.last - at)
        self.nodes = _nodes(model, self.nodes)
        self.seconds += self.last - at
        self.waited += waited
        for counters in self._counters:
            counters.consumer_waited_s += waited
        if (dataset := self._dataset()) is not None:
            vars(dataset)[_LAST] = self


def clock_of(dataset: Any) -> Clock | None:
    """Returns what was measured in the last iteration of a dataset; None if nothing was."""
    clock: Clock | None = vars(dataset).get(_LAST)
    if clock is not None:
        clock.update()
    return clock if clock is not None and clock.has_parts else None


def told(clock: Clock, parts: MeasuredCalls) -> tuple[str, list[str]]:
    """Returns what was measured: a sentence, and a table of the parts."""
    rows = _rows([*clock.nodes.values()][1:], parts)
    slowest = max(rows, key=lambda row: row.one_by_one)
    share, total = clock.waited / clock.seconds, clock.last - clock.began
    if share >= _LITTLE:
        sentence = f"Training waited {share:.0%} of the time, mostly for {slowest.text}."
    else:
        times = (1 - share) * total / max(_slowest_stage(clock.nodes.values()), 1e-9)
        often = f"{times:.1f}" if times < 100 else "more than 100"
        faster = f"{often} times as fast as" if times > 1 else "as fast as"
        sentence = f"Input is {faster} training, which waited {share:.0%} of the time."
    table = [
        (row.text, f"{row.seconds:.2f}", f"{row.at_once:.0f}", f"{row.one_by_one / total:.0%}")
        for row in rows
    ]
    table.append(("training", f"{(1 - share) * total:.2f}", "1", f"{1 - share:.0%}"))
    return sentence, format_table(["part", "seconds", "at once", "busy"], table, _WIDTH)


class _Row(NamedTuple):
    text: str
    seconds: float
    at_once: float
    #: The seconds, if as many calls as possible ran at the same time.
    one_by_one: float


class _Node(NamedTuple):
    """A part of an iterator, as TensorFlow knows it."""

    op: str
    seconds: float
    at_once: float
    is_ahead: bool
    """Whether it works ahead of its consumer, in threads of its own."""
    inputs: tuple[int, ...]


def _nodes(model: Any, before: dict[int, _Node]) -> dict[int, _Node]:
    """Returns the nodes of a model.

    A part forgets the parts before it at their end. A model that is read meanwhile may lack a part
    that it names.
    """
    now = {
        number: _Node(
            internals.in_words(node.name),
            node.processing_time / 1e9,
            next((each.value for each in node.parameters if each.name == "parallelism"), 1.0),
            node.node_class in _ASYNCHRONOUS,
            tuple(node.inputs) or (before[number].inputs if number in before else ()),
        )
        for number, node in model.nodes.items()
    }
    found, left = {}, [model.output]
    while left:
        number = left.pop()
        if node := now.get(number) or before.get(number):
            found[number] = node
            left += node.inputs
    return found


def _rows(nodes: list[_Node], parts: MeasuredCalls) -> list[_Row]:
    """Returns a row for each call that TensorFlow runs, and one for all that is fused."""
    rows: list[_Row] = []
    fused_with_next = ""
    for call in parts.calls:
        if fused_with_next == call.op:  # TensorFlow made one op of two calls
            rows[-1] = rows[-1]._replace(text=f"{call.text}, {rows[-1].text}")
            fused_with_next = ""
            continue
        at = next((i for i, node in enumerate(nodes) if _ends_in(node.op, call.op)), None)
        if at is None:
            continue
        fused_with_next = nodes[at].op.removesuffix(call.op).removesuffix("_and_")
        rows += [_row(node.op, [node]) for node in nodes[:at]]
        rows.append(_row(call.text, [nodes[at]]))
        nodes = nodes[at + 1 :]
    if nodes:
        rows.append(_row(parts.fused, nodes))
    return rows[::-1]


def _row(text: str, nodes: list[_Node]) -> _Row:
    return _Row(
        text,
        sum(node.seconds for node in nodes),
        max(node.at_once for node in nodes),
        sum(node.seconds / node.at_once for node in nodes),
    )


def _ends_in(op: str, call: str) -> bool:
    return op == call or op.endswith(f"_and_{call}")


def _slowest_stage(nodes: Iterable[_Node]) -> float:
    """Returns the seconds of the slowest part of the input that one thread does."""
    stages = [0.0]
    for node in nodes:
        stages[-1] += node.seconds / node.at_once
        if node.is_ahead:
            stages.append(0.0)
    return max(stages)


def count_waiting(dataset: Any, counters: Counters) -> None:
    """Lets the iterations of a dataset, and of all that is made of it, add to the counters."""
    vars(dataset)[_COUNTERS] = counters


def _counters_of(dataset: Any) -> Iterator[Counters]:
    if (counters := vars(dataset).get(_COUNTERS)) is not None:
        yield counters
    for each in internals.inputs_of(dataset):
        yield from _counters_of(each)
