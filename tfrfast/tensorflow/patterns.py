"""Glob patterns among file names."""

from __future__ import annotations

import glob
import os

import tensorflow as tf

from tfrfast.storage.paths import expand_paths, natural_key, reach
from tfrfast.storage.remote.options import Storage
from tfrfast.tensorflow.schemes import has_scheme, is_ours


def expand_patterns(names: list[bytes], storage: Storage) -> list[bytes]:
    """Returns the names, with each pattern replaced by its matches. An existing name is not a
    pattern.

    Raises NotFoundError for a pattern without a match, and ValueError for a URL that names no
    object. `storage` holds the options of URLs, from now on.
    """
    found = [found for name in names for found in _expanded(name, storage)]
    if urls := [os.fsdecode(name) for name in found if is_ours(name)]:
        reach(urls, storage)
    return found


def _expanded(name: bytes, storage: Storage) -> list[bytes]:
    if not glob.has_magic(name) or b"\0" in name:
        return [name]
    if has_scheme(name):
        return _expanded_remotely(name)
    try:
        return [os.fsencode(each) for each in expand_paths(name, storage)]
    except FileNotFoundError as error:
        raise tf.errors.NotFoundError(None, None, f"{error.strerror}.") from None
    except PermissionError as error:
        raise tf.errors.PermissionDeniedError(None, None, str(error)) from None


def _expanded_remotely(name: bytes) -> list[bytes]:
    try:
        if tf.io.gfile.exists(name):
            return [name]
        found = tf.io.gfile.glob(name.decode())
    except (tf.errors.OpError, UnicodeDecodeError):
        return [name]  # reading raises the error
    if not found:
        message = (
            f"No shard matches the pattern {name.decode()!r}. Check the folder and the spelling."
        )
        raise tf.errors.NotFoundError(None, None, message)
    return [each.encode() for each in sorted(found, key=natural_key)]
