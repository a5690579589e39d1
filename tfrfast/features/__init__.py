"""Feature descriptions: kinds, compilation, inference and checks."""

from tfrfast.features.kinds import (
    AnyFeatures,
    Bounds,
    Features,
    FeatureSpec,
    FixedLen,
    FixedLenSequence,
    Image,
    Partition,
    Scaled,
    SerializedTensor,
    SparseIndexed,
    VarLen,
)

__all__ = [
    "AnyFeatures",
    "Bounds",
    "FeatureSpec",
    "Features",
    "FixedLen",
    "FixedLenSequence",
    "Image",
    "Partition",
    "Scaled",
    "SerializedTensor",
    "SparseIndexed",
    "VarLen",
]
