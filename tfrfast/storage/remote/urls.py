"""The parts of object names."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from tfrfast.storage.schemes import BUCKETS

#: A dataset on the Hugging Face Hub, and a path in it. Two kinds of revisions hold slashes.
_DATASET = re.compile(
    r"(datasets/[^/@]+/[^/@]+(?:@(?:refs/(?:convert/[\w.-]+|pr/\d+)(?=/)|[^/]+))?)/(.*)", re.DOTALL
)

#: The form of an object's name, by scheme.
_FORMS = {
    **dict.fromkeys(BUCKETS, "bucket/key"),
    "hf": "datasets/ORG/NAME/path, or hf://datasets/ORG/NAME@REVISION/path",
    "https": "server/path",
    "http": "server/path",
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class ObjectName(NamedTuple):
    """The name of an object: the scheme, the bucket, container, server or dataset, and the key."""

    scheme: str
    bucket: str
    key: str

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.bucket}"

    @property
    def is_in_bucket(self) -> bool:
        """True for an object store."""
        return self.scheme in BUCKETS

    @property
    def has_folders(self) -> bool:
        """True if the names of all objects can be listed."""
        return self.is_in_bucket or self.scheme == "hf"


def has_listing(url: str) -> bool:
    """True if the names of all objects in the bucket can be listed. Raises like locate()."""
    return locate(url).has_folders


def locate(url: str) -> ObjectName:
    """Returns the parts of `url`. Raises ValueError if it cannot name an object."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _FORMS:
        raise ValueError(f"{url!r} is not a URL of {', '.join(_FORMS)}.")
    if scheme in ("https", "http"):
        parts = urlsplit(url)
        if parts.query or parts.fragment or "@" in parts.netloc:
            # The text itself may be secret, so it is not shown.
            raise ValueError(
                f"A URL of {parts.hostname} has a query, a fragment or a password in it. Names of "
                "shards are shown and saved, so they hold no secrets: pass "
                'storage={"token": ...} or storage={"headers": {...}}.'
            )
        bucket, key = parts.netloc, unquote(parts.path.lstrip("/"))
    elif scheme == "hf":
        dataset = _DATASET.fullmatch(rest)
        bucket, key = dataset.groups() if dataset else ("", "")
    else:
        bucket, _, key = rest.partition("/")
        if "@" in bucket:
            raise ValueError(
                f"A {scheme}:// URL names a bucket and a key: {scheme}://bucket/key. Pass accounts "
                "and credentials as storage={...}."
            )
    if not bucket or not key:
        raise ValueError(f"{url!r} names no object. Write {scheme}://{_FORMS[scheme]}.")
    _check_key(url, key)
    return ObjectName(scheme, bucket, key)


def is_usable(key: str) -> bool:
    """True if a request can name such an object."""
    return not _CONTROL.search(key) and not {"", ".", ".."}.intersection(key.split("/"))


def _check_key(url: str, key: str) -> None:
    if key.endswith("/"):
        raise ValueError(f"{url!r} names a folder. Name an object in it, or several: '{url}*'.")
    if not is_usable(key):
        raise ValueError(
            f"{url!r} cannot be requested: names of objects may have no '//', '.' or '..' between "
            "slashes, and no control characters."
        )
