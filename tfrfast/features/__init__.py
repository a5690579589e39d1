"""Feature descriptions: kinds, compilation, inference and checks."""

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
