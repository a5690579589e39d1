"""Feature descriptions: kinds, compilation, inference and checks."""

from tfrfast.features.kinds import (
    AnyFeatures,
    Features,
    FeatureSpec,
    FixedLen,
    FixedLenSequence,
    Image,
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
    "Image",
    "Partition",
    "SparseIndexed",
    "VarLen",
]
