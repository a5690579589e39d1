"""Grain: TFRecord files as a data source, and a Loader's batches as a dataset."""

from tfrfast.grain import _installed  # noqa: F401  # first: it says how to install Grain
from tfrfast.grain.batches import IterDataset
from tfrfast.grain.source import Source

__all__ = ["IterDataset", "Source"]
