"""obstore, which makes the requests."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
from typing import Any

#: True if this process was forked from a process that had used obstore, whose threads a child
#: lacks.
_is_inherited = False
_loaded: Any = None

INSTALL = "pip install obstore"


def obstore() -> Any:
    """Returns the native module of obstore that works in this process.

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
    """Called in a forked child, where calls of the parent's library would wait forever."""
    global _loaded, _is_inherited
    _is_inherited = _is_inherited or _loaded is not None or "obstore._obstore" in sys.modules
    _loaded = None


def _own_copy(module: Any) -> Any:
    """Loads the same library from a copy of its file, with threads and connections of its own."""
    descriptor, path = tempfile.mkstemp(suffix=os.path.basename(module.__file__))
    try:
        with open(module.__file__, "rb") as source, os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(source, copy)
        # The copy may register itself as a module in the place of the parent's.
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
