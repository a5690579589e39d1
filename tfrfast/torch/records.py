"""Records by number, decoded into tensors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tfrfast import _native
from tfrfast.base.arguments import Int64Array
from tfrfast.columns import Batch as Columns
from tfrfast.loading import records
from tfrfast.torch.batch import Batch, as_tensors

__all__ = ["Records"]


class Records(records.Records):
    """Reads records, and decodes them into tensors."""

    def read(  # type: ignore[override]
        self,
        numbers: Int64Array,
        valid: npt.NDArray[np.bool_] | None = None,
        draws: records.Draws | None = None,
        epoch: int = 0,
    ) -> _native.RecordBatch | Batch:
        batch = super().read(numbers, valid, draws, epoch)
        return as_tensors(batch) if isinstance(batch, Columns) else batch
