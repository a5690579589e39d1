"""Names with a scheme: URLs that tfrfast reads, and names of TensorFlow's filesystems."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import tensorflow as tf

from tfrfast.storage.remote.library import INSTALL
from tfrfast.storage.remote.urls import SCHEMES, is_url

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*://"


def has_scheme(name: bytes) -> bool:
    """True if only TensorFlow's own reader can read the name. Raises ModuleNotFoundError if it
    cannot.
    """
    if re.match(_SCHEME.encode(), name) is None:
        return False
    url = name.decode(errors="replace")
    if not is_url(url):
        return True
    if _reaches_urls():
        return False
    scheme = url.partition(":")[0]
    if scheme in tf.io.gfile.get_registered_schemes():
        return True
    raise ModuleNotFoundError(f"Reading {scheme}:// needs obstore: {INSTALL}", name="obstore")


def is_ours(name: bytes) -> bool:
    """True for a URL that tfrfast reads."""
    return is_url(name.decode(errors="replace")) and not has_scheme(name)


def any_has_scheme(symbolic: Any) -> Any:
    """True if TensorFlow must read any name in a symbolic vector."""
    theirs = tf.strings.regex_full_match(symbolic, f"{_SCHEME}(?s:.*)")
    if _reaches_urls():
        ours = tf.strings.regex_full_match(symbolic, f"({'|'.join(SCHEMES)})://(?s:.*)")
        theirs = tf.logical_and(theirs, tf.logical_not(ours))
    return tf.reduce_any(theirs)


def _reaches_urls() -> bool:
    return importlib.util.find_spec("obstore") is not None
