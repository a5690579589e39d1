"""Ray: TFRecord files as datasets, and an executor for the jobs of tfrfast."""

from tfrfast.ray import _installed  # noqa: F401  # first: it says how to install Ray
from tfrfast.ray.executor import RayExecutor
from tfrfast.ray.reading import read
from tfrfast.ray.writing import write

__all__ = ["RayExecutor", "read", "write"]
