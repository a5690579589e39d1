"""TFRecord files as a dataset of Ray Data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from tfrfast.base.arguments import epoch_number
from tfrfast.columns.rows import row_numbers
from tfrfast.features import AnyFeatures
from tfrfast.loading.records import chosen_order, open_reader
from tfrfast.order import InOrder, Mixture, Order, Plan
from tfrfast.ray.nodes import check_nodes
from tfrfast.ray.parts import Columns
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths, absolute
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
    record: bool | str = False,
    shard: bool | str = False,
    text: Sequence[str] = (),
    sample: int | None = 1000,
    batch_size: int | None = None,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
    ray_options: Mapping[str, Any] | None = None,
    **reader_options: Any,
) -> Dataset:
    """The records as a `ray.data.Dataset`, read in ranges of about as many bytes each.

        dataset = tfrfast.ray.read("data/train-*", features={"label": tfr.FixedLen((), "int64")})
        dataset.groupby("label").count().show()

    Every record is read once, with its checksums compared. Where shards end does not matter: a
    large one is read by several tasks. The number of rows is known beforehand, and so is about
    their size. Columns that `select_columns` drops are not decoded.

    Ray hands on blocks as they are finished. With `records` or an order, it is told to keep their
    order, as `dataset.context.execution_options.preserve_order` says.

    Every node is asked beforehand whether it sees the same files, as for `tfrfast.ray.index`.
    Raises what `tfr.scan` raises. An error of a task is the same error, which Ray raises where the
    dataset is consumed.

    Args:
      source: a Reader, or anything that Reader takes; `reader_options` are passed on to it. Each
        node opens the files it needs by the same names. Or a Mixture, which is an order, too.
      features, columns, records, record, shard, text, sample, batch_size: as for `tfr.scan`.
      order: the records of this order, as a Loader gives them.
      epoch: which epoch of the order.
      override_num_blocks: the number of tasks. By default four for each processor of the cluster,
        or one for each 64 MiB if that is more, but none of less than 1 MiB.
      concurrency: as for `ray.data.read_datasource`.
      ray_options: what else that takes, such as `{"num_cpus": 2}`. A task starts a thread for each
        processor it is given.
    """
    import ray
    from ray.data import read_datasource

    from tfrfast.ray.datasource import RecordSource

    reader = open_reader(source, reader_options)
    numbers = None if records is None else row_numbers(records, len(reader), "Record")
    order = chosen_order(source, order, records)
    if numbers is not None:
        order = InOrder(indices=numbers)
    plan = None if order is None else Plan(order, 1, num_records=len(reader))
    settled = scanning.scan(
        reader,
        features=features,
        columns=columns,
        batch_size=batch_size,
        record=record,
        shard=shard,
        text=text,
        sample=sample,
        tensors=True,
    )
    wanted = Columns(
        settled.features, settled.columns, settled.batch_size, record, shard, tuple(text)
    )
    if not ray.is_initialized():
        ray.init()
    check_nodes(absolute(reader._paths), [], reader._options["storage"])
    chosen = RecordSource(reader, wanted, plan, epoch_number(epoch))
    dataset = read_datasource(
        chosen,
        override_num_blocks=override_num_blocks or chosen.usual_tasks(),
        concurrency=concurrency,
        **(ray_options or {}),
    )
    if order is not None:
        # The dataset and those made of it share a context of their own.
        dataset.context.execution_options.preserve_order = True
    return dataset
