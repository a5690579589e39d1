"""Explains the treatment of each call of a tf.data pipeline that begins with a TFRecordDataset.

On request, the end of the program reports the treatment of each dataset.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import tensorflow as tf

from tfrfast.base.tables import html_table
from tfrfast.tensorflow import internals
from tfrfast.tensorflow.compiling import Compiled, compiled, gainful
from tfrfast.tensorflow.plan.planner import ChainPlan
from tfrfast.tensorflow.read import nodes
from tfrfast.tensorflow.read.calls import method_of
from tfrfast.tensorflow.read.chain import Unread
from tfrfast.tensorflow.read.sources import AskedRecords, description_of
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

_REPORT = "TFRFAST_EXPLAIN"
_PLACE = "_tfrfast_built_at"
_NOT_THE_USERS = ("tensorflow", "tfrfast", "keras", "importlib", "contextlib", "functools")
_told: dict[str, str] = {}
_begun = False


@dataclass(frozen=True)
class Explanation:
    """The treatment of each call, in order."""

    steps: tuple[Step, ...]
    _text: str

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

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
    return Explanation(steps, "\n".join(lines))


def text_of(dataset: Any) -> str:
    """Returns the treatment of each call of a dataset, as lines."""
    return "\n".join(line for part in _walk(dataset) for line in _lines(part))


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
    call = method_of(dataset)
    for function in internals.functions_of(dataset):
        if _reads(function.function.graph):
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


def _reads(graph: Any) -> bool:
    """True if a function, or a function that it calls, has ops of tfrfast."""
    nodes = graph.as_graph_def()
    functions = (each.node_def for each in nodes.library.function)
    return any(
        node.op.startswith("Tfrfast") for group in (nodes.node, *functions) for node in group
    )


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
    plain = internals.Dataset.__init__

    def note_line(self: Any, *arguments: Any, **named: Any) -> None:
        vars(self)[_PLACE] = _users_line()
        plain(self, *arguments, **named)

    internals.Dataset.__init__ = note_line
    atexit.register(_tell)


def report(dataset: Any, faster: Any, why_not: str) -> None:
    """Notes a dataset's treatment before its iteration. `faster` is None without acceleration."""
    if not _begun:
        return
    place = vars(dataset).get(_PLACE, "a dataset")
    text = f"  TensorFlow's: {why_not or 'nothing is gained'}\n" if faster is None else ""
    try:
        text += text_of(dataset if faster is None else faster)
    except Exception as error:  # a failing report must not end the program
        text += f"  not explained: {error}"
    _told.setdefault(place, text)


def _users_line() -> str:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in _NOT_THE_USERS:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "a dataset"


def _tell() -> None:
    lines = [f"{place}\n{text}" for place, text in _told.items()]
    if lines and sys.stderr is not None:
        print("tfrfast: the treatment of each dataset", *lines, sep="\n", file=sys.stderr)
