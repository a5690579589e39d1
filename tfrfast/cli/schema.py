"""`tfrfast schema`: infers what the Examples of a data set hold."""

from __future__ import annotations

import argparse

import numpy as np

from tfrfast.cli._common import Subparsers, add_command, print_json, print_table
from tfrfast.example import infer_features
from tfrfast.features import FixedLen, VarLen
from tfrfast.reader import Reader


def add_parser(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "schema",
        run,
        help="infer the features of Examples",
        description="Infer the features of tf.train.Examples from the first records. Print them as a "
        "table, and as the Python code that parses them.",
        progress=False,
    )
    parser.add_argument("--sample", type=int, default=1000, help="records to examine (1000)")


def run(options: argparse.Namespace) -> int:
    if options.sample < 1:
        raise ValueError(f"--sample must be at least 1, not {options.sample}.")
    with Reader(options.paths) as reader:
        features = infer_features(reader, options.sample)
        looked_at = min(options.sample, len(reader))
    rows = [(name, *_describe(spec)) for name, spec in sorted(features.items())]
    if options.json:
        print_json(
            {
                "records_looked_at": looked_at,
                "features": {
                    name: {"kind": kind, "dtype": dtype, "shape": shape}
                    | ({} if default is None else {"default": default})
                    for name, kind, dtype, shape, default in rows
                },
            }
        )
        return 0
    if not features:
        print(f"No features in the first {looked_at} records: are they tf.train.Examples?")
        return 0
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
