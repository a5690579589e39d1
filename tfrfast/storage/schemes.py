"""The schemes of URLs, which name objects. The core has the same list in `storage.cpp`."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Object stores, which sign requests and take uploads in parts.
BUCKETS = ("s3", "gs", "az")
SCHEMES = (*BUCKETS, "hf", "https", "http")
_KNOWN = "|".join(SCHEMES)
_URL = re.compile(f"({_KNOWN})://")
_CUT_URL = re.compile(f"({_KNOWN}):/[^/]")
#: The beginning of every URL, as a regular expression for Python and for TensorFlow.
ANY_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*://"
_ANY_URL = re.compile(ANY_SCHEME)


def is_url(name: str) -> bool:
    """True if `name` is the URL of an object."""
    return _URL.match(name) is not None


def is_cut_url(name: str) -> bool:
    """True if `name` was a URL before pathlib dropped a slash."""
    return _CUT_URL.match(name) is not None


def has_any_scheme(name: str) -> bool:
    """True if `name` has a scheme, known or not."""
    return _ANY_URL.match(name) is not None


def in_words(schemes: Sequence[str]) -> str:
    *others, last = [f"{scheme}://" for scheme in schemes]
    return f"{', '.join(others)} and {last}"
