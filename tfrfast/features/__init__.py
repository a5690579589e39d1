"""Feature descriptions: their kinds, and how they are read, compiled, inferred and checked."""

from tfrfast.features.kinds import (
    AnyFeatures,
    Features,
    FeatureSpec,
    FixedLen,
    FixedLenSequence,
    Partition,
    SparseIndexed,
    VarLen,
)

__all__ = [
    "AnyFeatures",
    "FeatureSpec",
    "Features",
    "FixedLen",
    "FixedLenSequence",
    "Partition",
    "SparseIndexed",
    "VarLen",
]
