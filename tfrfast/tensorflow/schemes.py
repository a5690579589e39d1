"""Names with a scheme: URLs that tfrfast reads, and names of TensorFlow's filesystems."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import tensorflow as tf

from tfrfast.storage.remote.library import INSTALL
from tfrfast.storage.remote.urls import is_object
from tfrfast.storage.schemes import ANY_SCHEME, SCHEMES, has_any_scheme, is_url


def has_scheme(name: bytes) -> bool:
    """True if only TensorFlow's own reader can read the name. Raises ModuleNotFoundError if it
    cannot.
    """
    url = name.decode(errors="replace")
    if not is_url(url):
        return has_any_scheme(url)
    if _can_read(url):
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
    theirs = tf.strings.regex_full_match(symbolic, f"{ANY_SCHEME}(?s:.*)")
    if schemes := [re.escape(each) for each in SCHEMES if _can_read(f"{each}://")]:
        ours = tf.strings.regex_full_match(symbolic, f"({'|'.join(schemes)})://(?s:.*)")
        theirs = tf.logical_and(theirs, tf.logical_not(ours))
    return tf.reduce_any(theirs)


def _can_read(url: str) -> bool:
    return not is_object(url) or importlib.util.find_spec("obstore") is not None
