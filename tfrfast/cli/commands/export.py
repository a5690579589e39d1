"""Write the features of tf.train.Examples, or the fields of other messages, to a Parquet file,
which appears when it is complete. Event files of TensorBoard become a table of their scalars. Takes
PyArrow.
"""

from __future__ import annotations

import argparse

from tfrfast.cli.common import add_columns, add_common, names, print_json, print_written
from tfrfast.cli.damage import left_out
from tfrfast.cli.messages import add_message, message_features, message_of
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.exporting import Exported, export
from tfrfast.jobs.exporting_scalars import export_scalars, holds_events
from tfrfast.reader import Reader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, on_corruption=True)
    parser.add_argument("--out", required=True, metavar="OUT.parquet", help="the new file")
    parser.add_argument(
        "--num-shards",
        type=int,
        metavar="N",
        help="write many files: out.parquet makes out-00000-of-00008.parquet",
    )
    add_columns(parser, "only these features, in this order")
    parser.add_argument(
        "--text",
        metavar="A,B",
        type=names,
        default=[],
        help="features that hold text, and become strings",
    )
    parser.add_argument("--record", action="store_true", help="add a column of record numbers")
    parser.add_argument("--overwrite", action="store_true", help="replace files of these names")
    add_message(parser)
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    columns = options.columns
    message = message_of(options)
    if message is None and columns is None:
        with Reader(options.paths, on_corruption=options.on_corruption) as reader:
            if holds_events(reader):
                return _tell(options, _scalars(reader, options), "events")
    features = None if message is None else message_features(message, columns)
    if options.record and columns is not None:
        columns.append("record")
    made = export(
        options.paths,
        options.out,
        num_shards=options.num_shards,
        features=features,
        columns=columns,
        record_column=options.record,
        text=options.text,
        overwrite=options.overwrite,
        progress=options.progress,
        on_corruption=options.on_corruption,
        executor=executor_of(options),
    )
    return _tell(options, made, "records")


def _scalars(reader: Reader, options: argparse.Namespace) -> Exported:
    if options.num_shards is not None or options.record or options.text or options.ray is not None:
        raise ValueError(
            "Scalars of event files go into one file, as step, wall time, tag and value. For other "
            "columns: --message tensorflow.Event."
        )
    return export_scalars(
        reader, options.out, overwrite=options.overwrite, progress=options.progress
    )


def _tell(options: argparse.Namespace, made: Exported, what: str) -> int:
    if options.json:
        print_json(made)
    else:
        print_written(made, what, "files")
    return left_out(made.skipped)
