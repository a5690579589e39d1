"""`storage={...}`: the options of a storage. Secrets are kept apart from other options."""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import itertools
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from tfrfast import _native
from tfrfast.storage.disk_cache import DiskCache
from tfrfast.storage.remote.profiles import profile_options
from tfrfast.storage.remote.urls import locate

_TEXT = {"region": "a region", "endpoint": "a URL", "account_name": "a name", "profile": "a name"}
_NUMBERS = ("timeout", "connect_timeout", "retries", "retry_seconds")
_LARGEST = 10**9
#: Never in a repr, an error, a graph, an index or a state.
SECRETS = (
    "access_key_id",
    "secret_access_key",
    "session_token",
    "service_account_key",
    "account_key",
    "sas_token",
    "token",
    "headers",
)
#: Variables of the environment that name an endpoint, the first one before the others.
ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    "hf": ("HF_ENDPOINT",),
}
_PLACES = (*itertools.chain(*ENDPOINTS.values()), "AZURE_STORAGE_ACCOUNT_NAME")
_KNOWN = ("anonymous", *_TEXT, *_NUMBERS, *SECRETS)


class Storage:
    """The options of one `storage={...}`: the public options as text, and the secrets apart."""

    def __init__(
        self,
        options: Mapping[str, Any] | None,
        cache: DiskCache | None = None,
        decompressed_cache: DiskCache | None = None,
    ) -> None:
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"storage is a dict of options, not {type(options).__name__}.")
        for kind, each in (("cache", cache), ("decompressed_cache", decompressed_cache)):
            if each is not None and not isinstance(each, DiskCache):
                raise TypeError(f"{kind} is a tfr.DiskCache, not {type(each).__name__}.")
        public = dict(options or {})
        for name, value in public.items():
            _check(name, value)
        self.secrets = {name: public.pop(name) for name in SECRETS if name in public}
        #: The text for the client.
        self.access = json.dumps(public, sort_keys=True) if public else ""
        self.public = public
        self.cache = cache
        self.inflated = decompressed_cache
        caches = (cache, decompressed_cache)
        kept = [("", 0) if each is None else (each.folder, each.limit) for each in caches]
        place = place_of(public) if any(caches) else ""
        #: All options but the secrets, in the core's form.
        self.core = _native.StorageOptions(self.access, *kept[0], place, *kept[1])
        #: The core's options in encoded form, for graphs.
        self.encoded: bytes = self.core.encode()

    def __repr__(self) -> str:
        names = ", ".join(self.secrets)
        return f"Storage({self.access or '{}'}{f', with {names}' if names else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Storage):
            return NotImplemented
        return self.encoded == other.encoded and self.secrets == other.secrets

    def __hash__(self) -> int:
        return hash(self.encoded)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles secrets only for a process that this process is starting."""
        # multiprocessing checks the same for its own secrets. An import here could wait for another
        # thread's import.
        context = sys.modules.get("multiprocessing.context")
        spawning = getattr(context, "get_spawning_popen", lambda: None)
        options = dict(self.public)
        if spawning() is not None:
            options.update(self.secrets)
        return Storage, (options, self.cache, self.inflated)

    def remember_secrets(self, urls: list[str]) -> None:
        """Makes this process use these secrets for URLs with these options."""
        if self.secrets:
            for root in {locate(url).root for url in urls}:
                _secrets[self.access, root] = dict(self.secrets)


def storage_of(
    options: Mapping[str, Any] | Storage | None,
    cache: DiskCache | None = None,
    decompressed_cache: DiskCache | None = None,
) -> Storage:
    """Returns `storage` as options."""
    return options if isinstance(options, Storage) else Storage(options, cache, decompressed_cache)


def place_of(public: Mapping[str, Any]) -> str:
    """Returns the place of URLs, if URLs do not name it themselves. A cache keeps such places
    apart.
    """
    named = {name: public[name] for name in ("endpoint", "account_name") if public.get(name)}
    named.update((name, os.environ[name]) for name in _PLACES if os.environ.get(name))
    with contextlib.suppress(ValueError, OSError, configparser.Error):
        # Assumes credentials, without requesting them.
        profile = profile_options("s3", dict(public), {"access_key_id": ""})
        if "endpoint" in profile:
            named.setdefault("endpoint", profile["endpoint"])
    if not named:
        return ""
    for name, value in named.items():
        if may_hold_secrets(value):
            named[name] = hashlib.blake2b(value.encode(), digest_size=16).hexdigest()
    return json.dumps(named, sort_keys=True)


def may_hold_secrets(place: str) -> bool:
    return "?" in place or "@" in place.partition("://")[2].partition("/")[0]


def _check(name: str, value: Any) -> None:
    if name not in _KNOWN:
        raise ValueError(f"storage has no option {name!r}. It has {', '.join(_KNOWN)}.")
    if name in _TEXT and not isinstance(value, str):
        raise TypeError(f"storage[{name!r}] is {_TEXT[name]}, not {type(value).__name__}.")
    if name == "anonymous" and not isinstance(value, bool):
        raise TypeError(f"storage['anonymous'] is True or False, not {type(value).__name__}.")
    if name in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"storage[{name!r}] is a number, not {type(value).__name__}.")
        if not 0 <= value <= _LARGEST or (value == 0 and name != "retries"):
            raise ValueError(f"storage[{name!r}] must be above 0, up to {_LARGEST:,}, not {value}.")
    if name == "headers" and not isinstance(value, Mapping):
        raise TypeError(
            f"storage['headers'] is a dict of names and texts, not {type(value).__name__}."
        )
    if name in SECRETS and name != "headers" and not isinstance(value, str):
        raise TypeError(f"storage[{name!r}] is a text, not {type(value).__name__}.")
    # A service account is the text of a file.
    is_line = name in SECRETS and name not in ("headers", "service_account_key")
    if is_line and not value.isprintable():
        raise ValueError(
            f"storage[{name!r}] holds a line end or another control character. A text that was "
            "read from a file ends with one: take .strip() of it."
        )
    if name == "endpoint" and not value.startswith(("http://", "https://")):
        raise ValueError("storage['endpoint'] has to begin with http:// or https://.")
    if name == "endpoint" and may_hold_secrets(value):
        raise ValueError("storage['endpoint'] holds no secrets: pass them as options of their own.")


#: The last secrets of this process, by options and bucket.
_secrets: dict[tuple[str, str], dict[str, Any]] = {}


def secrets_for(access: str, root: str) -> dict[str, Any]:
    """Returns the last secrets of this process; empty if the environment must supply them."""
    return dict(_secrets.get((access, root), {}))


def public_options(access: str) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(access) if access else {}
    return options
