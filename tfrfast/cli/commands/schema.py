"""Infer the features of tf.train.Examples from the first records. Print them as a table, and as the
Python code that parses them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import numpy as np

from tfrfast._native import RecordBatch
from tfrfast.base.contents import contents_of
from tfrfast.base.sizes import counted
from tfrfast.cli.common import (
    add_common,
    add_steps,
    print_json,
    print_table,
)
from tfrfast.cli.messages import add_message, code_of, message_of
from tfrfast.cli.shown_batches import shown_batches
from tfrfast.cli.shown_records import ShownRecords
from tfrfast.columns import Bytes
from tfrfast.features import FixedLen, VarLen
from tfrfast.features.inference import specs_of
from tfrfast.messages import Message

_OPENED = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, progress=False, on_corruption=True)
    add_steps(parser, "infer the features of the steps of episodes")
    add_message(parser)
    parser.add_argument("--sample", type=int, default=1000, help="records to examine (1000)")


def run(options: argparse.Namespace) -> int:
    if options.sample < 1:
        raise ValueError(f"--sample must be at least 1, not {options.sample}.")
    message = message_of(options)
    if message is not None:
        return _show_message(message, options)
    with ShownRecords(options) as records:
        survey = records.survey(records.between(0, options.sample))
        holds = _contents(records.batches(records.between(0, _OPENED)))
        status = records.status()
    features, looked_at = specs_of(survey), survey.num_records
    rows = [(name, *_describe(spec)) for name, spec in sorted(features.items())]
    if options.json:
        facts: dict[str, dict[str, object]] = {}
        for name, kind, dtype, shape, default in rows:
            facts[name] = {"kind": kind, "dtype": dtype, "shape": shape}
            if default is not None:
                facts[name]["default"] = default
            if name in holds:
                facts[name]["holds"] = holds[name]
        print_json({"records_looked_at": looked_at, "features": facts})
        return status
    if not features:
        print(f"No features in the first {counted(looked_at, 'records')}.")
        return status
    print_table(
        ["feature", "kind", "dtype", "shape", "default", "holds"],
        [
            (
                name,
                kind,
                dtype,
                "" if shape is None else shape,
                "" if default is None else default,
                holds.get(name, ""),
            )
            for name, kind, dtype, shape, default in rows
        ],
    )
    print("\nfeatures = {")
    for name, spec in sorted(features.items()):
        print(f"    {name!r}: {_line(spec, holds.get(name, ''))}")
    print("}")
    return status


def _contents(batches: Iterable[RecordBatch]) -> dict[str, str]:
    """Returns what the byte strings of features hold, if they all hold the same, and no text."""
    found: dict[str, set[str]] = {}
    for piece in shown_batches(batches, None):
        for name, column in piece.columns.items():
            if isinstance(column.values, Bytes):
                found.setdefault(name, set()).update(
                    contents_of(value).form for value in column.values.tolist()
                )
    shared = {name: {form.partition(" ")[0] for form in forms} for name, forms in found.items()}
    return {
        name: forms.pop() if len(forms) == 1 else shared[name].pop()
        for name, forms in found.items()
        if len(shared[name]) == 1 and "" not in shared[name]
    }


def _line(spec: FixedLen | VarLen, holds: str) -> str:
    """Returns a spec for Python. An encoded picture becomes pixels."""
    form = holds.partition(" ")[0]
    if form in ("JPEG", "PNG") and isinstance(spec, FixedLen) and spec.shape == ():
        return f"tfr.Image(),  # {holds}; as it is stored: {_as_python(spec)}"
    return f"{_as_python(spec)},{f'  # {holds}' if holds else ''}"


def _show_message(message: Message, options: argparse.Namespace) -> int:
    """Shows all fields of a message, which its descriptor has."""
    features = message.features()
    if options.json:
        facts = {
            path: {"dtype": each.dtype, "levels": each.levels} for path, each in features.items()
        }
        print_json({"message": message.name, "features": facts})
        return 0
    print_table(
        ["field", "dtype", "levels of rows"],
        [(path, each.dtype, each.levels) for path, each in features.items()],
    )
    print(f"\nmessage = {code_of(options)}")
    print("features = {")
    for path in features:
        print(f"    {path!r}: message[{path!r}],")
    print("}")
    return 0


def _describe(
    spec: FixedLen | VarLen,
) -> tuple[str, str, list[int] | None, int | float | str | None]:
    if isinstance(spec, FixedLen):
        shape = list(np.atleast_1d(spec.shape).astype(int).tolist())
        default = spec.default.decode() if isinstance(spec.default, bytes) else spec.default
        return "fixed", str(spec.dtype), shape, default
    return "variable", str(spec.dtype), None, None


def _as_python(spec: FixedLen | VarLen) -> str:
    if isinstance(spec, FixedLen):
        default = "" if spec.default is None else f", default={spec.default!r}"
        return f'tfr.FixedLen({spec.shape!r}, "{spec.dtype}"{default})'
    return f'tfr.VarLen("{spec.dtype}")'
