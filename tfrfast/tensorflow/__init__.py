"""The tf.data source. Importing this loads the ops of its graphs, which every process needs."""

from tfrfast.tensorflow.accelerating import accelerate, install, uninstall
from tfrfast.tensorflow.dataset import TFRecordDataset
from tfrfast.tensorflow.explaining import Explanation, explain

__all__ = [
    "Explanation",
    "TFRecordDataset",
    "accelerate",
    "explain",
    "install",
    "uninstall",
]
