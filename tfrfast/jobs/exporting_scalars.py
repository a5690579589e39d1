"""The scalars of TensorBoard's event files as a Parquet file, one row for each value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrfast._native import record_kind
from tfrfast.base.progress import ProgressBar
from tfrfast.columns import Batch
from tfrfast.jobs.exporting import Exported
from tfrfast.jobs.importing import pyarrow
from tfrfast.loading.loader import Loader
from tfrfast.messages import Message
from tfrfast.reader import Reader
from tfrfast.writing.publishing import publish
from tfrfast.writing.work_folder import WorkFolder

__all__ = ["export_scalars", "holds_events"]

_ROWS = 4096
# The number types of tensors, by TensorFlow's numbers, as `tensor_content` holds them.
_BFLOAT16, _HALF = 14, 19
_CONTENTS = {
    1: "<f4",
    2: "<f8",
    _BFLOAT16: "<u2",
    _HALF: "<f2",
    6: "<i1",
    5: "<i2",
    3: "<i4",
    9: "<i8",
    4: "<u1",
    17: "<u2",
    22: "<u4",
    23: "<u8",
    10: "?",
}
# The lists of numbers. `half_val` has the bits of two types.
_LISTS = ("float_val", "double_val", "int_val", "int64_val", "uint32_val", "uint64_val", "bool_val")


def holds_events(reader: Reader) -> bool:
    """True if the first record that is not skipped is an event."""
    return record_kind(next(iter(reader), b"")).endswith(" tensorflow.Event")


def export_scalars(
    reader: Reader, out: str, *, overwrite: bool = False, progress: bool | None = None
) -> Exported:
    """Writes step, wall time, tag and value of all scalars, in the order of the files.

    A scalar is a `simple_value`, or a tensor with a single number, of the plugin "scalars" or of
    none. Events without scalars have no rows. With several files, "file" names the file of a row.
    """
    arrow = pyarrow()
    if os.path.lexists(out) and not overwrite:
        raise FileExistsError(f"{out!r} exists. Pass overwrite=True to replace it.")
    event = Message.event()
    tensor = "summary.value.tensor"
    paths = {
        "step": "step",
        "wall_time": "wall_time",
        "tag": "summary.value.tag",
        "simple": "summary.value.simple_value",
        "plugin": "summary.value.metadata.plugin_data.plugin_name",
        "dtype": f"{tensor}.dtype",
        "dims": f"{tensor}.tensor_shape.dim.size",
        "content": f"{tensor}.tensor_content",
    }
    features = {
        **event.features(paths),
        **event.features({name: f"{tensor}.{name}" for name in (*_LISTS, "half_val")}),
        "is_simple": event.has(paths["simple"]),
        "is_tensor": event.has(tensor),
    }
    fields = [
        ("step", arrow.int64()),
        ("wall_time", arrow.float64()),
        ("tag", arrow.string()),
        ("value", arrow.float64()),
    ]
    shards = [shard.path for shard in reader.shards]
    starts = np.cumsum([0, *(shard.num_records for shard in reader.shards)])
    if len(shards) > 1:
        fields.append(("file", arrow.string()))
        for shard in shards:
            try:
                shard.encode()
            except UnicodeEncodeError:
                raise ValueError(
                    f"{shard!r} is not UTF-8, and a column of strings can hold nothing else. "
                    "Rename the file, or export it alone."
                ) from None
    schema = arrow.schema(fields)
    seen = 0
    with WorkFolder(out) as work, ProgressBar("Exporting", progress, "events") as bar:
        made = work.inside("scalars")
        # PyArrow opens no file whose name is not UTF-8.
        with open(made, "xb") as file, arrow.parquet.ParquetWriter(file, schema) as writer:
            for batch in Loader(reader, _ROWS, features=features, shuffle=False):
                rows, tags, values = _scalars(batch)
                columns = {
                    "step": batch["step"][rows],
                    "wall_time": batch["wall_time"][rows],
                    "tag": [tag.decode() for tag in tags],
                    "value": values,
                }
                if len(shards) > 1:
                    numbers = np.searchsorted(starts, batch.indices[rows], side="right") - 1
                    columns["file"] = [shards[number] for number in numbers.tolist()]
                writer.write_table(arrow.table(columns, schema=schema))
                seen += len(batch.indices)
                bar.update(seen, len(reader))
        publish([made], [out], overwrite=overwrite)
    return Exported([out], seen, os.path.getsize(out), reader.skipped)


def _scalars(batch: Batch | Mapping[str, Any]) -> tuple[Any, list[bytes], Any]:
    """Returns the row, the tag and the number of each scalar."""
    of_value: dict[str, Any] = {
        name: column.values for name, column in batch.items() if name not in ("step", "wall_time")
    }
    tags: Any = batch["tag"]
    count = len(tags.values)
    rows = np.repeat(np.arange(len(tags)), tags.row_lengths)
    is_known = of_value["is_simple"].copy()
    values = np.zeros(count)
    values[is_known] = of_value["simple"][is_known]
    is_single = of_value["is_tensor"] & (of_value["dims"].row_lengths == 0)
    is_single &= np.array(
        [each in (b"", b"scalars") for each in of_value["plugin"].tolist()], np.bool_
    )

    def take(chosen: Any, numbers: Any) -> None:
        values[chosen] = numbers
        is_known[chosen] = True

    def take_bits(chosen: Any, bits: Any, number: int) -> None:
        numbers = bits.view(_CONTENTS[number])
        if number == _BFLOAT16:  # the upper half of a float
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        take(chosen, numbers)

    for name in _LISTS:
        numbers = of_value[name]
        chosen = is_single & (numbers.row_lengths == 1) & ~is_known
        take(chosen, numbers.values[numbers.row_splits[:-1][chosen]])
    halves = of_value["half_val"]
    for number in (_HALF, _BFLOAT16):
        chosen = is_single & (of_value["dtype"] == number) & (halves.row_lengths == 1) & ~is_known
        bits = halves.values[halves.row_splits[:-1][chosen]].astype("<u2")
        take_bits(chosen, bits, number)
    content = of_value["content"]
    for number, kind in _CONTENTS.items():
        size = np.dtype(kind).itemsize
        chosen = is_single & (of_value["dtype"] == number) & ~is_known
        chosen &= np.diff(content.offsets) == size
        places = content.offsets[:-1][chosen][:, None] + np.arange(size)
        take_bits(chosen, np.ascontiguousarray(content.data[places]).reshape(-1), number)
    return rows[is_known], tags.values[np.flatnonzero(is_known)].tolist(), values[is_known]
