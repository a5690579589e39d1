"""The schemes of names. The core's table of storages is the only list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tfrfast import _native

_IS_WRITTEN = _native.schemes()
SCHEMES = tuple(_IS_WRITTEN)
_KNOWN = "|".join(map(re.escape, SCHEMES))
_URL = re.compile(f"({_KNOWN})://")
_CUT_URL = re.compile(f"({_KNOWN}):/[^/]")
#: The beginning of every URL, as a regular expression for Python and for TensorFlow.
ANY_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*://"
_ANY_URL = re.compile(ANY_SCHEME)


def is_url(name: str) -> bool:
    """True if `name` has the scheme of a storage. The name of a local file has none."""
    return _URL.match(name) is not None


def is_writable(name: str) -> bool:
    """True if `name` has the scheme of a storage whose files can be written."""
    match = _URL.match(name)
    return match is not None and _IS_WRITTEN[match.group(1)]


def is_cut_url(name: str) -> bool:
    """True if `name` was a URL before pathlib dropped a slash."""
    return _CUT_URL.match(name) is not None


def has_any_scheme(name: str) -> bool:
    """True if `name` has a scheme, known or not."""
    return _ANY_URL.match(name) is not None


def readable_schemes() -> str:
    return _in_words(SCHEMES)


def writable_schemes() -> str:
    return _in_words([scheme for scheme in SCHEMES if _IS_WRITTEN[scheme]])


def _in_words(schemes: Sequence[str]) -> str:
    *others, last = [f"{scheme}://" for scheme in schemes]
    return f"{', '.join(others)} and {last}"
