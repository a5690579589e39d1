"""obstore, which makes the requests."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
from typing import Any

#: Whether this process was forked from one that had used it. It has threads, which a child has not.
_is_inherited = False
_loaded: Any = None

INSTALL = "pip install obstore"


def obstore() -> Any:
    """The native module of obstore, which works in this process.

    Raises ModuleNotFoundError with the command that installs it.
    """
    global _loaded, _is_inherited
    if _loaded is None:
        try:
            module: Any = importlib.import_module("obstore._obstore")
        except ModuleNotFoundError as error:
            if error.name not in ("obstore", "obstore._obstore"):
                raise
            raise ModuleNotFoundError(
                f"Reading s3://, gs://, az://, hf:// and https:// needs obstore: {INSTALL}",
                name="obstore",
            ) from None
        _loaded = _own_copy(module) if _is_inherited else module
        _is_inherited = False
    return _loaded


def renew_in_child() -> None:
    """A forked child cannot use what its parent has used: its calls would wait forever."""
    global _loaded, _is_inherited
    _is_inherited = _is_inherited or _loaded is not None or "obstore._obstore" in sys.modules
    _loaded = None


def _own_copy(module: Any) -> Any:
    """The same library again, from a copy of its file: with threads and connections of its own."""
    descriptor, path = tempfile.mkstemp(suffix=os.path.basename(module.__file__))
    try:
        with open(module.__file__, "rb") as source, os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(source, copy)
        # It may put itself among the modules, where the parent's belongs.
        before = {name: each for name, each in sys.modules.items() if name.startswith("obstore")}
        spec = importlib.util.spec_from_file_location("obstore._obstore", path)
        assert spec is not None
        assert spec.loader is not None
        own = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(own)
        sys.modules.update(before)
        return own
    except (OSError, ImportError) as error:
        raise RuntimeError(
            "This process was forked from one that had read from a network, and cannot load a copy "
            f"of obstore ({error}). Start it with multiprocessing's 'spawn' or 'forkserver'."
        ) from error
    finally:
        os.unlink(path)
