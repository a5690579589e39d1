"""TFRecord files as a random-access training format: indexed, verified, globally shuffled, fast.

A name's module is imported when the name is first used: `tfrfast --version` need not wait for
NumPy, and only a few names need TensorFlow.
"""

import _thread
import importlib
import os
import sys

__version__ = "1.0.0rc1"

# The public names of each module, as in `__init__.pyi`, which is for type checkers.
_NAMES = {
    "_native": "RecordBatch",
    "columns": "Batch Bytes Ragged Sparse",
    "errors": "CorruptRecordError FeatureError RecordError SlowPathWarning StaleIndexError "
    "TruncatedRecordError",
    "example.encoding": "encode_example encode_examples",
    "example.parsing": "infer_features parse_example parse_sequence_example",
    "features": (
        "Bounds FixedLen FixedLenSequence Image Scaled SerializedTensor SparseIndexed VarLen"
    ),
    "jobs.building_keys": "build_keys",
    "jobs.comparing.compare": "diff",
    "jobs.copying": "copy",
    "jobs.deleting.delete": "delete",
    "jobs.exporting": "export",
    "jobs.indexing.building": "build_index",
    "jobs.shuffling.shuffle": "shuffle",
    "jobs.statistics": "statistics",
    "jobs.verifying": "verify",
    "loading.loader": "Loader",
    "messages": "Message",
    "order": "BlockShuffle ByTokens InOrder Mixture Packed Plan Shuffle Weighted",
    "reader": "Reader",
    "steps.building": "build_steps",
    "steps.keep_ranges": "keep_ranges",
    "steps.later": "Later",
    "steps.one_of": "OneOf",
    "steps.steps": "Steps",
    "steps.window": "Window",
    "storage.disk_cache": "DiskCache",
    "tables.scanning": "scan",
    "tensorflow": "TFRecordDataset accelerate explain",
    "tfds_folder.tfds": "tfds",
    "writing.writer": "ShardedWriter Writer",
}
_MODULES = {name: f"tfrfast.{module}" for module, names in _NAMES.items() for name in names.split()}
# `import *` does not import TensorFlow.
__all__ = sorted(name for name, module in _MODULES.items() if module != "tfrfast.tensorflow")

# Held while a name's module is imported. A fork waits for the lock, because a child would wait
# forever for the import of a thread that it does not have. The wait is bounded, because the import
# may need a lock that the forking thread holds.
_importing = _thread.RLock()
_MAX_WAIT_S = 30


def _release_after_fork() -> None:
    if _importing._is_owned():  # type: ignore[attr-defined]
        _importing.release()


def _release_in_child() -> None:
    _release_after_fork()
    if not _importing._is_owned():  # type: ignore[attr-defined]
        _importing._at_fork_reinit()  # type: ignore[attr-defined]


os.register_at_fork(
    before=lambda: _importing.acquire(timeout=_MAX_WAIT_S),
    after_in_parent=_release_after_fork,
    after_in_child=_release_in_child,
)


def load_ipython_extension(_: object) -> None:
    """`%load_ext tfrfast`: from now on, accelerates every dataset that the notebook iterates."""
    from tfrfast.startup.waiting import accelerate_when_imported

    accelerate_when_imported()


def unload_ipython_extension(_: object) -> None:
    from tfrfast.startup.waiting import stop_waiting

    stop_waiting()
    if "tensorflow" in sys.modules:
        from tfrfast.tensorflow import uninstall

        uninstall()


def __getattr__(name: str) -> object:
    if name in _MODULES:
        with _importing:
            value: object = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("__"):  # `__main__` would run
        try:
            with _importing:
                # Adapters are imported at their first use, as in `tfr.torch.Loader`.
                return importlib.import_module(f"tfrfast.{name}")
        except ModuleNotFoundError as error:
            if error.name == "tfrfast._native":
                raise ModuleNotFoundError(
                    f"There is no native module beside {__file__}. If these are the sources, run "
                    "Python in another folder, where it finds the installed tfrfast. To install "
                    "it: pip install . in the folder of the sources.",
                    name=error.name,
                ) from None
            if error.name != f"tfrfast.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
