"""TFRecord files as a dataset of Ray Data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from tfrfast.base.arguments import UNLIMITED, epoch_number, integer
from tfrfast.columns.rows import row_numbers
from tfrfast.features import AnyFeatures
from tfrfast.loading.records import chosen_order, open_reader
from tfrfast.order import InOrder, Mixture, Order, Plan
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths
from tfrfast.tables import scanning

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["read"]


def read(
    source: Reader | Mixture | Paths,
    *,
    features: AnyFeatures | None = None,
    columns: Sequence[str] | None = None,
    records: Any = None,
    order: Order | None = None,
    epoch: SupportsIndex = 0,
    record_column: bool | str = False,
    shard_column: bool | str = False,
    text: Sequence[str] = (),
    sample: int | None = 1000,
    batch_size: int | None = None,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
    ray_options: Mapping[str, Any] | None = None,
    **reader_options: Any,
) -> Dataset:
    """Returns the records as a `ray.data.Dataset`, read in ranges of about as many bytes each.

        dataset = tfrfast.ray.read("data/train-*", features={"label": tfr.FixedLen((), "int64")})
        dataset.groupby("label").count().show()

    Every record is read once, and its checksums are verified. Several tasks read a large shard. The
    number of rows is known beforehand, and their size approximately. Columns that `select_columns`
    drops are not decoded.

    Ray hands blocks on when they are finished. With `records` or an order,
    `dataset.context.execution_options.preserve_order` is set, and Ray keeps the order of blocks.

    Every node must see the same files under the same names. Raises the errors of `tfr.scan`.
    An error of a task is the same error, which Ray raises to the dataset's consumer.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it. Each
        node opens its files by the same names. Or a Mixture, which is an order, too.
      features, columns, records, record_column, shard_column, text, sample, batch_size: as for
        `tfr.scan`.
      order: the records of this order, as a Loader gives them.
      epoch: the epoch of the order.
      override_num_blocks: the number of tasks. By default four for each processor of the cluster,
        or one for each 64 MiB if that is more, but no task of less than 1 MiB.
      concurrency: as for `ray.data.read_datasource`.
      ray_options: other arguments of `ray.data.read_datasource`, such as `{"num_cpus": 2}`. A task
        starts a thread for each of its processors.
    """
    import ray
    from ray.data import read_datasource

    from tfrfast.ray.datasource import RecordSource

    reader = open_reader(source, reader_options)
    numbers = None if records is None else row_numbers(records, len(reader), "Record")
    order = chosen_order(source, order, records)
    if numbers is not None:
        order = InOrder(indices=numbers)
    if order is None and (number := epoch_number(epoch)):
        raise ValueError(f"Without an order, all epochs are the same: leave out epoch={number}.")
    if override_num_blocks is not None:
        override_num_blocks = integer("override_num_blocks", override_num_blocks, 1, UNLIMITED)
    plan = None if order is None else Plan(order, 1, num_records=len(reader))
    settled = scanning.scan(
        reader,
        features=features,
        columns=columns,
        batch_size=batch_size,
        record_column=record_column,
        shard_column=shard_column,
        text=text,
        sample=sample,
        tensors=True,
    )
    if not ray.is_initialized():
        ray.init()
    chosen = RecordSource(settled, plan, epoch_number(epoch))
    dataset = read_datasource(
        chosen,
        override_num_blocks=override_num_blocks or chosen.usual_tasks(),
        concurrency=concurrency,
        **(ray_options or {}),
    )
    if order is not None:
        # The dataset and its derived datasets share a context of their own.
        dataset.context.execution_options.preserve_order = True
    return dataset
