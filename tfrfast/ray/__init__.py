"""Ray: TFRecord files as datasets, and work on many shards as Ray's tasks."""

from tfrfast.ray import _installed  # noqa: F401  # first: it says how to install Ray
from tfrfast.ray.jobs import copy, export, index, keys, steps, verify
from tfrfast.ray.reading import read
from tfrfast.ray.writing import write

__all__ = ["copy", "export", "index", "keys", "read", "steps", "verify", "write"]
