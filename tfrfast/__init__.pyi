"""The public names, each with the module that is imported when it is first used."""

from tfrfast._native import RecordBatch as RecordBatch
from tfrfast.columns import Batch as Batch
from tfrfast.columns import Bytes as Bytes
from tfrfast.columns import Ragged as Ragged
from tfrfast.columns import Sparse as Sparse
from tfrfast.errors import CorruptRecordError as CorruptRecordError
from tfrfast.errors import FeatureError as FeatureError
from tfrfast.errors import RecordError as RecordError
from tfrfast.errors import SlowPathWarning as SlowPathWarning
from tfrfast.errors import StaleIndexError as StaleIndexError
from tfrfast.errors import TruncatedRecordError as TruncatedRecordError
from tfrfast.example.encoding import encode_example as encode_example
from tfrfast.example.encoding import encode_examples as encode_examples
from tfrfast.example.parsing import infer_features as infer_features
from tfrfast.example.parsing import parse_example as parse_example
from tfrfast.example.parsing import parse_sequence_example as parse_sequence_example
from tfrfast.features import FixedLen as FixedLen
from tfrfast.features import FixedLenSequence as FixedLenSequence
from tfrfast.features import Image as Image
from tfrfast.features import SparseIndexed as SparseIndexed
from tfrfast.features import VarLen as VarLen
from tfrfast.jobs.building_keys import build_keys as build_keys
from tfrfast.jobs.copying import copy as copy
from tfrfast.jobs.exporting import export as export
from tfrfast.jobs.indexing.building import build_index as build_index
from tfrfast.jobs.shuffling.shuffle import shuffle as shuffle
from tfrfast.jobs.statistics import statistics as statistics
from tfrfast.jobs.verifying import verify as verify
from tfrfast.loading.loader import Loader as Loader
from tfrfast.order import BlockShuffle as BlockShuffle
from tfrfast.order import ByTokens as ByTokens
from tfrfast.order import InOrder as InOrder
from tfrfast.order import Mixture as Mixture
from tfrfast.order import Packed as Packed
from tfrfast.order import Plan as Plan
from tfrfast.order import Shuffle as Shuffle
from tfrfast.order import Weighted as Weighted
from tfrfast.reader import Reader as Reader
from tfrfast.steps.building import build_steps as build_steps
from tfrfast.steps.later import Later as Later
from tfrfast.steps.steps import Steps as Steps
from tfrfast.steps.window import Window as Window
from tfrfast.storage.disk_cache import DiskCache as DiskCache
from tfrfast.tables.scanning import scan as scan
from tfrfast.tensorflow import TFRecordDataset as TFRecordDataset
from tfrfast.tensorflow import accelerate as accelerate
from tfrfast.tensorflow import explain as explain
from tfrfast.tfds_folder.tfds import tfds as tfds
from tfrfast.writing.writer import ShardedWriter as ShardedWriter
from tfrfast.writing.writer import Writer as Writer

__version__: str

def load_ipython_extension(ipython: object) -> None: ...
def unload_ipython_extension(ipython: object) -> None: ...
