"""Describes a Loader for a framework that will deliver the same batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrfast.features.compiled import CompiledFeatures
from tfrfast.order import Plan

__all__ = ["LoaderDescription"]


@dataclass(frozen=True)
class LoaderDescription:
    """The facts about a Loader and its current place, as `Loader.describe` returns them."""

    #: The shards, their sizes and record counts, and the Reader's options. From this text, the
    #: native code of any process opens the shards, and refuses changed ones.
    source: bytes
    #: True if damaged records are left out, so that batches may have fewer rows.
    skips_damage: bool
    #: The order of a whole epoch.
    plan: Plan
    #: The Loader's current epoch, and the rest of that epoch's plan.
    epoch: int
    rest: Plan
    #: The columns to decode; None keeps records as bytes.
    features: CompiledFeatures | None
    #: The first record number of each source of a Mixture.
    source_starts: npt.NDArray[np.int64]
    #: The requested number of threads; None leaves it open.
    threads: int | None
    #: Temporary files of lengths, which the plan names.
    files: list[Any] = field(default_factory=list)
