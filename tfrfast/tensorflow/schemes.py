"""Names that belong to one of TensorFlow's filesystems, such as gs://."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*://"


def has_scheme(name: bytes) -> bool:
    return re.match(_SCHEME.encode(), name) is not None


def any_has_scheme(symbolic: Any) -> Any:
    """The same for a symbolic vector of names."""
    return tf.reduce_any(tf.strings.regex_full_match(symbolic, f"{_SCHEME}(?s:.*)"))
