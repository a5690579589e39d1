"""`tfrfast schema`: infers the features of a data set's Examples."""

from __future__ import annotations

import argparse

import numpy as np

from tfrfast.base.sizes import counted
from tfrfast.cli.common import (
    Subparsers,
    add_command,
    add_steps,
    print_json,
    print_table,
)
from tfrfast.cli.shown_records import ShownRecords
from tfrfast.features import FixedLen, VarLen
from tfrfast.features.inference import specs_of


def add_parser(subparsers: Subparsers, help: str) -> None:
    parser = add_command(
        subparsers,
        "schema",
        run,
        help=help,
        description="Infer the features of tf.train.Examples from the first records. Print them as "
        "a table, and as the Python code that parses them.",
        progress=False,
        on_corruption=True,
    )
    add_steps(parser, "infer the features of the steps of episodes")
    parser.add_argument("--sample", type=int, default=1000, help="records to examine (1000)")


def run(options: argparse.Namespace) -> int:
    if options.sample < 1:
        raise ValueError(f"--sample must be at least 1, not {options.sample}.")
    with ShownRecords(options) as records:
        survey = records.survey(records.between(0, options.sample))
        status = records.status()
    features, looked_at = specs_of(survey), survey.num_records
    rows = [(name, *_describe(spec)) for name, spec in sorted(features.items())]
    if options.json:
        facts: dict[str, dict[str, object]] = {
            name: {"kind": kind, "dtype": dtype, "shape": shape}
            | ({} if default is None else {"default": default})
            for name, kind, dtype, shape, default in rows
        }
        print_json({"records_looked_at": looked_at, "features": facts})
        return status
    if not features:
        print(f"No features in the first {counted(looked_at, 'records')}.")
        return status
    print_table(
        ["feature", "kind", "dtype", "shape", "default"],
        [
            (name, kind, dtype, "" if shape is None else shape, "" if default is None else default)
            for name, kind, dtype, shape, default in rows
        ],
    )
    print("\nfeatures = {")
    for name, spec in sorted(features.items()):
        print(f"    {name!r}: {_as_python(spec)},")
    print("}")
    return status


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
