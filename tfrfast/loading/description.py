"""What another framework needs to know of a Loader in order to deliver the same batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfrfast.features.compiled import CompiledFeatures
from tfrfast.order import Plan

__all__ = ["LoaderDescription"]


@dataclass(frozen=True)
class LoaderDescription:
    """A Loader as values, from where it stands. `Loader.describe` makes it."""

    #: The shards, their sizes and record counts, and how the Reader reads them. The native code of
    #: any process opens them by it, and refuses shards that have changed.
    source: bytes
    #: Whether damaged records are left out, so that batches may have fewer rows.
    skips_damage: bool
    #: The order of a whole epoch.
    plan: Plan
    #: The epoch that the Loader stands in, and the rest of its plan.
    epoch: int
    rest: Plan
    #: What records are decoded into; None leaves them bytes.
    features: CompiledFeatures | None
    #: Where the record numbers of each source of a Mixture begin.
    source_starts: npt.NDArray[np.int64]
    #: How many threads were asked for; None leaves it open.
    threads: int | None
