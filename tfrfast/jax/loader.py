"""A Loader's batches as arrays on devices, copied ahead."""

from __future__ import annotations

from functools import partial
from typing import Any, SupportsIndex

from tfrfast.base.arguments import integer
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.columns import Batch
from tfrfast.jax.placing import place, place_columns
from tfrfast.loading.loader import BatchLoader
from tfrfast.loading.loader import Loader as ColumnLoader
from tfrfast.order import Packed

__all__ = ["Loader"]


class Loader(BatchLoader):
    """Iterates over the batches of a `tfrfast.Loader` as device arrays, one epoch a `for` loop.

        rows = NamedSharding(jax.make_mesh((jax.device_count(),), ("rows",)), PartitionSpec("rows"))
        columns = tfr.Loader("data/train-*", 256, features=["image", "label"], remainder="drop",
                             rank=jax.process_index(), world=jax.process_count())
        for batch in tfrfast.jax.Loader(columns, rows):
            state = train_step(state, batch["image"], batch["label"])

    Args:
      loader: the source of the batches, from its current place. The loader does not move.
      sharding: the sharding of each column over devices. The rows of this process become its part
        of global arrays. None puts all columns on the default device.
      ahead: the number of batches that are copied ahead.

    Batches of a `Packed` are dicts of arrays: the features, and `ids_segment_ids` and
    `ids_positions` of each packed feature. Features with a value for each record cannot be sharded.

    Other batches are pytrees, with `indices`, `valid` and the arrays of `crops` on the devices,
    too. Byte strings and pictures of any size stay in host memory. Integers that do not fit in 32
    bits raise OverflowError unless `jax_enable_x64` is on.
    """

    @explains_arguments
    def __init__(
        self, loader: ColumnLoader, sharding: Any = None, *, ahead: SupportsIndex = 1
    ) -> None:
        if loader.features is None and loader.transform is None:
            raise ValueError("The Loader decodes nothing: give it features.")
        is_sharded = sharding is not None and sharding.num_devices > 1
        if is_sharded and loader.plan.remainder == "keep":
            raise ValueError(
                'A sharding needs batches of one shape: give the Loader remainder="drop" to train, '
                'or "pad" to evaluate.'
            )
        packs = isinstance(loader.plan.batching, Packed)
        if is_sharded and loader.plan.batch_size is None:
            raise ValueError(
                "A sharding needs batches of one shape, and a ByTokens makes batches of as many "
                "rows as fit. Leave the sharding out, or give the Loader a number of rows."
            )
        if is_sharded and loader.transform is None:
            _check_sharded(loader)
        loader._copy_to(self)
        self._sharding = sharding
        rows = loader.plan.batch_size if is_sharded else None
        placed = _placed_dict if packs else partial(_placed, rows=rows)
        work = partial(placed, sharding=sharding)
        self._deliver_through(work, ahead=integer("ahead", ahead, 0, 2**31 - 1))

    _begins_late = True
    _kept = ("_sharding", "_delivery")

    def __repr__(self) -> str:
        return f"Loader({super().__repr__()}, {self._sharding!r})"


def _check_sharded(loader: ColumnLoader) -> None:
    batching = loader.plan.batching
    if not isinstance(batching, Packed):
        return
    packed = sum(batching._features or (), ())
    for name in loader.features or {}:
        if name not in packed:
            raise ValueError(
                f"Feature {name!r} has values for each record, of which packed rows hold any "
                "number, so it cannot be sharded. Leave it out of features, or leave the sharding "
                "out."
            )


def _placed_dict(batch: Any, sharding: Any) -> dict[str, Any]:
    columns = batch.as_dict() if isinstance(batch, Batch) else batch
    if not isinstance(columns, dict):
        raise TypeError(f"transform must return a Batch or a dict, not {type(batch).__name__}.")
    return place_columns(columns, sharding)


def _placed(batch: Any, sharding: Any, rows: int | None) -> Batch:
    """`rows` is the number that the batch must have, on each process alike."""
    if not isinstance(batch, Batch):
        raise TypeError(
            "transform must return the Batch it was given, in which it may replace "
            f"columns, not {type(batch).__name__}."
        )
    if rows is not None and len(batch.valid) != rows:
        raise ValueError(
            f"A batch has {len(batch.valid)} rows of {rows}, and a sharding needs batches of one "
            "shape: damaged records were left out. Copy the good records to new shards with "
            "tfr.copy."
        )
    return place(batch, sharding)
