"""Explains the treatment of each call of a tf.data pipeline that begins with a TFRecordDataset.

On request, the end of the program reports the treatment of each dataset.
"""

from __future__ import annotations

import atexit
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, TextIO

import tensorflow as tf

from tfrfast.base.tables import html_table, terminal_width
from tfrfast.tensorflow import internals, measuring
from tfrfast.tensorflow.compiling import Compiled, compiled, gainful
from tfrfast.tensorflow.plan.planner import ChainPlan
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.chain import Unread, call_text, name_of
from tfrfast.tensorflow.read.sources import AskedRecords, description_of
from tfrfast.tensorflow.read.user_functions import nodes_of
from tfrfast.tensorflow.reasons import Refusal, Step
from tfrfast.tensorflow.saving import holds_positions, what_prevents

_WIDTH = 30
_READ_BY_THEIRS = Refusal(
    "TensorFlow's own reader reads for it, so that it finds in each run what it has written"
)
_WRITTEN_AGAIN = Refusal(
    "it writes its files again in each run",
    "snapshot() of files on a disk, before shuffle(), and tf.data's other methods after it",
)
_AND = "and"
_SINGLY = "its function reads each file on its own, record by record"


@dataclass
class _Entry:
    """What the report says of all datasets that one line has built alike."""

    place: str
    text: str
    parts: measuring.MeasuredCalls | None
    count: int = 0
    #: The last iteration of such a dataset.
    clock: measuring.Clock | None = None


_REPORT = "TFRFAST_EXPLAIN"
_PLACE = "_tfrfast_built_at"
_NOT_THE_USERS = ("tensorflow", "tfrfast", "keras", "importlib", "contextlib", "functools")
_ENTRY = "_tfrfast_entry"
#: By the place, the text and the parts, so that a program may make datasets without end.
_entries: dict[tuple[str, str, measuring.MeasuredCalls | None], _Entry] = {}
_begun = False


@dataclass(frozen=True)
class Explanation:
    """The treatment of each call, in order."""

    steps: tuple[Step, ...]
    _text: str

    def __str__(self) -> str:
        return _wrapped(self._text, sys.stdout)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(
            self._text.partition("\n")[0],
            ["call", "becomes", "why", "write instead"],
            [
                (each.call, "fused" if each.fused else "tf.data", each.why, each.instead)
                for each in self.steps
            ],
        )


def explain(dataset: Any) -> Explanation:
    """Explains the treatment of each call of a tf.data pipeline, for a notebook, a prompt or
    `print`.

        print(tfr.explain(tfr.TFRecordDataset(files).map(parse).shuffle(10_000).batch(64)))

    Fused calls are read at once, in C++ threads. Each other call comes with the reason, and with a
    remedy. `dataset` is any dataset that tf.data made of a dataset of tfrfast. Readers inside
    functions, for example of interleave(), are found too.

    After an epoch, or during one, the first line says whether training waited, and for which part,
    and a table gives the seconds of each part.

    Prints nothing. Each of the result's `steps` has `call`, `fused`, `why` and `instead`.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(f"explain() takes a tf.data.Dataset, not {type(dataset).__name__}.")
    parts = list(_walk(dataset))
    steps = tuple(part for part in parts if isinstance(part, Step))
    lines = [line for part in parts for line in _lines(part)]
    headings = [part for part in parts if isinstance(part, str) and part != _AND]
    if not headings and not any(step.why == _SINGLY for step in steps):
        lines = ["No tfr.TFRecordDataset is in it, so that all of it is tf.data."]
        tree = gainful(dataset)
        if isinstance(tree, Unread):
            lines.append(f"tfr.accelerate(dataset) gains nothing: {tree.why.why}.")
        else:
            parts = list(_parts_of(compiled(tree)))
            lines.append("tfr.accelerate(dataset) would be:")
            lines += [line for part in parts for line in _lines(part)]
            steps = tuple(part for part in parts if isinstance(part, Step))
    if holds_positions(dataset):
        why = what_prevents(dataset)
        held = f"all that is read ahead: {why}" if why else "positions alone"
        lines.append(f"Checkpoints of its iterators hold {held}.")
    if (clock := measuring.clock_of(dataset)) is not None:
        sentence, table = measuring.told(clock, _calls_of(dataset))
        lines = [sentence, *lines, *table]
    return Explanation(steps, "\n".join(lines))


def _calls_of(dataset: Any) -> measuring.MeasuredCalls:
    """Returns what the parts of an iterator are."""
    made = dataset._work if hasattr(type(dataset), "_work") else Compiled(dataset)
    if made.plan is not None:
        pipeline = made.plan.pipeline
        of_each = pipeline.record_calls[len(pipeline.lifted_calls) :]
        theirs = [_part_of(call) for call in (*of_each, *made.plan.rest)]
        also = [each.text for each in theirs]
        ours = [step.call for step in made.plan.steps if step.fused and step.call not in also]
        return measuring.MeasuredCalls(tuple(reversed(theirs)), ", ".join(["reading", *ours]))
    dataset, fused = made.dataset, ""
    calls: list[measuring.Part] = []
    while len(inputs := nodes.inputs(dataset)) == 1:
        if description := description_of(dataset):
            fused = description.partition(":")[0]
            break
        if hasattr(type(inputs[0]), "_work"):
            before = _calls_of(inputs[0])
            return measuring.MeasuredCalls((*calls, _part_of(dataset), *before.calls), before.fused)
        calls.append(_part_of(dataset))
        dataset = inputs[0]
    return measuring.MeasuredCalls(tuple(calls), fused or name_of(dataset))


def _part_of(call: Any) -> measuring.Part:
    return measuring.Part(name_of(call), call_text(call))


def _walk(dataset: Any) -> Iterator[Step | str]:
    """Yields headings, and the steps under each, from the source on."""
    if hasattr(type(dataset), "_work"):
        yield from _parts_of(dataset._work)
    elif isinstance(dataset, AskedRecords):
        yield "tf.data.TFRecordDataset: streaming"
        if dataset.why.why:
            yield Step("TFRecordDataset(...)", False, *dataset.why, ends_plan=True)
    elif description := description_of(dataset):
        yield description
    else:
        yield from _joined(map(_walk, nodes.before(dataset)), dataset)


def _parts_of(made: Compiled) -> Iterator[Step | str]:
    if made.plan is not None:
        yield f"{made.plan.counted.source.description}: {_state_of(made.plan)}"
        yield from made.plan.steps
    elif made.why_not is not None:
        yield "tf.data: TensorFlow does all the work"
        yield Step("accelerate()", False, *made.why_not, ends_plan=True)
    elif made.inputs:
        yield from _joined(map(_parts_of, made.inputs), made.dataset)
    else:
        yield from _walk(made.dataset)


def _joined(inputs: Iterable[Iterator[Step | str]], dataset: Any) -> Iterator[Step | str]:
    """Yields the parts of the inputs, and the call on them."""
    for number, parts in enumerate(inputs):
        if number:
            yield _AND
        yield from parts
    if not nodes.is_helper(dataset):
        yield _step_of(dataset)


def _state_of(plan: ChainPlan) -> str:
    """Returns the state of a plan, for a heading. The calls' lines give the reasons."""
    state = "planned" if plan.pipeline.sequence is not None else "streaming"
    end = next((step for step in plan.steps if step.ends_plan), None)
    return state if end is None else f"{state}, TensorFlow does the work from {end.call} on"


def _step_of(dataset: Any) -> Step:
    """Returns a dataset of TensorFlow's as a call."""
    call = name_of(dataset)
    for function in internals.functions_of(dataset):
        graph = function.function.graph
        if any(node.op.startswith("Tfrfast") for node in nodes_of(graph)):
            return Step(
                call,
                fused=False,
                why=_SINGLY,
                instead="tfr.TFRecordDataset(files), with num_parallel_reads to mix files",
                ends_plan=True,
            )
    if call == "snapshot":
        is_planned = any(hasattr(type(each), "_work") for each in internals.inputs_of(dataset))
        return Step(call, False, *(_WRITTEN_AGAIN if is_planned else _READ_BY_THEIRS))
    return Step(call, fused=False)


def _lines(part: Step | str) -> Iterator[str]:
    if isinstance(part, str):
        yield part
        return
    what = "fused" if part.fused else "tf.data"
    yield f"  {part.call:<{_WIDTH}} {what}" + (f": {part.why}" if part.why else "")
    if part.instead:
        yield f"  {'':<{_WIDTH}} instead: {part.instead}"


def begin_report() -> None:
    """Lets datasets keep the line that built them from now on, if a report is requested."""
    global _begun
    if _begun or os.environ.get(_REPORT) != "1":
        return
    _begun = True
    plain, plain_iter = internals.Dataset.__init__, internals.Dataset.__iter__

    def note_line(self: Any, *arguments: Any, **named: Any) -> None:
        vars(self)[_PLACE] = _users_line()
        plain(self, *arguments, **named)

    def measured(self: Any) -> Any:
        if not tf.executing_eagerly():
            return plain_iter(self)
        made = measuring.MeasuredIterator(self)
        if (entry := vars(self).get(_ENTRY)) is not None and made.clock is not None:
            entry.clock = made.clock
        return made

    internals.Dataset.__init__ = note_line
    internals.Dataset.__iter__ = measured
    atexit.register(_tell)


def report(dataset: Any, faster: Any, why_not: str) -> None:
    """Notes a dataset's treatment before its iteration. `faster` is None without acceleration."""
    if not _begun:
        return
    place, parts = vars(dataset).get(_PLACE, "a dataset"), None
    text = f"  TensorFlow's: {why_not or 'nothing is gained'}\n" if faster is None else ""
    try:
        iterated = dataset if faster is None else faster
        text += "\n".join(line for part in _walk(iterated) for line in _lines(part))
        parts = _calls_of(iterated)
    except Exception as error:  # a failing report must not end the program
        text += f"  not explained: {error}"
    entry = _entries.setdefault((place, text, parts), _Entry(place, text, parts))
    entry.count += 1
    vars(dataset)[_ENTRY] = entry


def _users_line() -> str:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _NOT_THE_USERS:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "a dataset"


def _tell() -> None:
    if not _entries or sys.stderr is None:
        return
    texts = map(_text_of_entry, [*_entries.values()])  # other threads may add some
    text = "\n".join(["tfrfast: the treatment of each dataset", *texts])
    print(_wrapped(text, sys.stderr), file=sys.stderr)


def _text_of_entry(entry: _Entry) -> str:
    place = entry.place if entry.count == 1 else f"{entry.place} ({entry.count:,} datasets)"
    lines = [place, entry.text]
    if entry.clock is not None and entry.parts is not None:
        entry.clock.update()
        if entry.clock.has_parts:
            sentence, table = measuring.told(entry.clock, entry.parts)
            lines = [place, f"  {sentence}", entry.text, *(f"  {line}" for line in table)]
    return "\n".join(lines)


def _wrapped(text: str, stream: TextIO) -> str:
    """Returns lines that fit a terminal. Text after a call continues under its beginning."""
    if (width := terminal_width(stream)) is None:
        return text
    lines = []
    for line in text.splitlines():
        is_of_a_call = line.startswith("  ") and ": " in line
        later = " " * (_WIDTH + 3) if is_of_a_call and width > 2 * _WIDTH else "  "
        lines += textwrap.wrap(line, width, subsequent_indent=later, drop_whitespace=True) or [line]
    return "\n".join(lines)
