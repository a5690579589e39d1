"""The tf.data source. Importing this loads the ops of its graphs, which every process needs."""

from tfrfast.tensorflow.accelerating import accelerate
from tfrfast.tensorflow.batched_features import make_batched_features_dataset
from tfrfast.tensorflow.dataset import TFRecordDataset
from tfrfast.tensorflow.explaining import Explanation, explain
from tfrfast.tensorflow.installing import install, uninstall

__all__ = [
    "Explanation",
    "TFRecordDataset",
    "accelerate",
    "explain",
    "install",
    "make_batched_features_dataset",
    "uninstall",
]
