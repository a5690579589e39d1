"""PyTorch: a loader, datasets and a sampler over TFRecord files. Nothing here needs TensorFlow."""

from tfrfast.torch import _installed  # noqa: F401  # first: it says how to install PyTorch
from tfrfast.torch.batch import Batch, Ragged
from tfrfast.torch.dataset import Dataset, collate
from tfrfast.torch.iterable import IterableDataset
from tfrfast.torch.loader import Loader
from tfrfast.torch.sampler import BatchSampler

__all__ = ["Batch", "BatchSampler", "Dataset", "IterableDataset", "Loader", "Ragged", "collate"]
