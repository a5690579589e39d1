"""Installs acceleration when TensorFlow is imported, and imports nothing before."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# The module of all datasets' base class. TensorFlow is half imported after this module has run.
_MODULE = "tensorflow.python.data.ops.dataset_ops"


def accelerate_when_imported() -> None:
    """Accelerates every dataset that this process iterates, from now on or from the import of
    TensorFlow on.
    """
    if "tensorflow" in sys.modules:
        from tfrfast.tensorflow import install

        install()
    elif not any(isinstance(each, _Waiting) for each in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


def stop_waiting() -> None:
    """Lets TensorFlow be imported without acceleration."""
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _Waiting)]


class _Waiting(importlib.abc.MetaPathFinder):
    """Finds one module like the other finders, and adds a step to the module's execution."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        stop_waiting()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_prepare(module: ModuleType) -> None:
                execute(module)
                _prepare(module)

            spec.loader.exec_module = execute_and_prepare  # type: ignore[method-assign]
        return spec


def _prepare(module: Any) -> None:
    """Installs acceleration when the first dataset is made, as that needs all of TensorFlow."""
    dataset_class = module.DatasetV2
    plain = dataset_class.__init__

    def install_first(self: Any, *arguments: Any, **named: Any) -> None:
        dataset_class.__init__ = plain
        from tfrfast.tensorflow import install

        install()
        dataset_class.__init__(self, *arguments, **named)

    dataset_class.__init__ = install_first
