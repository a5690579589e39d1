"""obstore's stores: one for each bucket and set of options, kept for its connections."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from tfrfast.storage.remote import hub
from tfrfast.storage.remote.failures import NOWHERE
from tfrfast.storage.remote.library import obstore
from tfrfast.storage.remote.options import (
    ENDPOINTS,
    may_hold_secrets,
    public_options,
    secrets_for,
)
from tfrfast.storage.remote.profiles import profile_options
from tfrfast.storage.remote.urls import ObjectName

_TIMEOUT_S = 30.0
_CONNECT_TIMEOUT_S = 5.0
_BYTES_IN_TIME = 8 << 20
_RETRIES = 8
_RETRY_S = 120.0


class Store(NamedTuple):
    """A store of obstore, its limits of retries, and secrets that must not appear in texts."""

    native: Any
    retries: int
    retry_seconds: float
    timeout: float
    secrets: tuple[str, ...]
    given: dict[str, Any]  # the store's arguments, apart from the environment
    endpoint: str  # without secrets; empty if the storage's own


#: Variables of the environment with options of storages.
_OBEYED = re.compile(
    r"AWS_|GOOGLE_|AZURE_|HF_|HUGGING_FACE_|XDG_CACHE_HOME$|(?:http|https|all|no)_proxy$",
    re.IGNORECASE,
)

_stores: dict[tuple[str, str], Store] = {}
_environment: dict[str, str] = {}


def store_for(location: ObjectName, access: str) -> Store:
    """Returns the store for an object. A change of secrets makes another store."""
    stores, key = _stores, (access, location.root)
    store = stores.get(key)
    if store is None or store.given != secrets_for(access, location.root):
        store = stores[key] = _make(location, access)
    return store


def renew_if_environment_changed() -> None:
    """Makes later stores use the environment's current values."""
    global _environment, _stores
    now = {name: value for name, value in os.environ.items() if _OBEYED.match(name)}
    if now != _environment:
        _stores = {}  # a store that another thread is making goes into the old dict
        _environment = now


def writing_store(location: ObjectName, access: str, bytes_at_once: int = 0) -> Store:
    """Returns a store that retries the parts of an upload itself.

    Sending shows no progress. So a request may take the time limit once more for each 8 MiB that
    are on their way at once.
    """
    return _make(location, access, True, 1 + bytes_at_once / _BYTES_IN_TIME)


def renew(location: ObjectName, access: str) -> None:
    """Makes the next store read credentials again."""
    _stores.pop((access, location.root), None)


def forget_all() -> None:
    """Called in a forked child, where calls of the parent's stores would wait forever."""
    _stores.clear()


def _make(
    location: ObjectName, access: str, is_for_writing: bool = False, patience: float = 1
) -> Store:
    public = public_options(access)
    given = secrets_for(access, location.root)
    secrets = dict(given)
    timeout = patience * float(public.pop("timeout", _TIMEOUT_S))
    retries = int(public.pop("retries", _RETRIES))
    retry_seconds = float(public.pop("retry_seconds", _RETRY_S))
    client: dict[str, Any] = {
        # A slow answer is not an error.
        "read_timeout": timedelta(seconds=timeout),
        "timeout": timedelta(days=7),
        "connect_timeout": timedelta(
            seconds=float(public.pop("connect_timeout", _CONNECT_TIMEOUT_S))
        ),
    }
    headers = dict(secrets.pop("headers", {}))
    config = {**profile_options(location.scheme, public, secrets), **public, **secrets}
    if location.scheme == "hf":
        if headers:
            raise ValueError("storage['headers'] is for https://. Pass storage={'token': ...}")
        config = hub.config_of(config)
    endpoint = config.get("endpoint") or _endpoint_of_environment(location.scheme)
    if endpoint and not endpoint.startswith(("http://", "https://")):  # the library would panic
        raise ValueError("the endpoint has to begin with http:// or https://")
    if endpoint.startswith("http://") or location.scheme == "http":
        client["allow_http"] = True
    hidden = tuple(sorted({*map(str, secrets.values()), *_texts(headers), *_found(config)}))
    if location.scheme in ("hf", "https", "http") and "token" in config:
        headers["Authorization"] = f"Bearer {config.pop('token')}"
    if headers:
        client["default_headers"] = headers
    if set(headers) - {"Authorization"} or _has_session_token(location.scheme, config):
        client.update(_kept_at_home(location, endpoint))
    # answers.py counts attempts to read, where they can be reported and interrupted.
    own = (retries, retry_seconds) if is_for_writing else (0, 3600.0)
    retry = {"max_retries": own[0], "retry_timeout": timedelta(seconds=own[1])}
    native = _native_store(location, config, client, retry)
    shown = "" if may_hold_secrets(endpoint) else endpoint
    return Store(native, retries, retry_seconds, timeout, hidden, given, shown)


#: Hosts that get Amazon's session tokens, and the hosts of credentials on the machine itself.
_AMAZON = ("amazonaws.com", "amazonaws.com.cn", "169.254.0.0/16", "fd00:ec2::/32")


def _has_session_token(scheme: str, config: dict[str, Any]) -> bool:
    if scheme != "s3" or config.get("anonymous"):
        return False
    return (
        "session_token" in config
        or "credential_provider" in config
        or any(os.environ.get(name) for name in ("AWS_SESSION_TOKEN", "AWS_TOKEN"))
    )


def _kept_at_home(location: ObjectName, endpoint: str) -> dict[str, str]:
    """Keeps secret headers from other hosts: when the library follows a redirect, it drops only
    Authorization and cookies.

    Requests to other hosts go to a proxy that does not exist. The user's proxy of this host stays,
    and gets all requests.
    """
    home = f"{location.scheme}://{location.bucket}"
    if location.scheme not in ("https", "http"):
        home = endpoint or f"https://{_AMAZON[0]}"
    proxies = getproxies()
    is_proxied = urlsplit(home).scheme in proxies or "all" in proxies
    if is_proxied and not proxy_bypass(_host_of(home)):
        return {}
    hosts = _AMAZON if _host_of(home) == _AMAZON[0] else (_host_of(home),)
    return {"proxy_url": NOWHERE, "proxy_excludes": ",".join(hosts)}


def _host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def _endpoint_of_environment(scheme: str) -> str:
    return next(
        (os.environ[name] for name in ENDPOINTS.get(scheme, ()) if os.environ.get(name)), ""
    )


def _texts(headers: dict[str, Any]) -> Iterator[str]:
    for value in headers.values():
        text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
        yield text
        yield from (part for part in text.split() if len(part) > 7)


def _found(config: dict[str, Any]) -> Iterator[str]:
    for name in ("secret_access_key", "session_token", "access_key_id", "token"):
        if name in config:
            yield str(config[name])


def _native_store(
    location: ObjectName, config: dict[str, Any], client: dict[str, Any], retry: dict[str, Any]
) -> Any:
    classes = obstore()._store
    if config.pop("anonymous", False) and location.is_in_bucket:
        config["skip_signature"] = True
    provider = config.pop("credential_provider", None)
    named = {} if provider is None else {"credential_provider": provider}
    rest: dict[str, Any] = {"client_options": client, "retry_config": retry, **named}
    if location.scheme == "s3":
        return classes.S3Store(location.bucket, **config, **rest)
    if location.scheme == "gs":
        if "endpoint" in config:
            config["base_url"] = config.pop("endpoint")
        if "token" in config:
            config["bearer_token"] = config.pop("token")
        return classes.GCSStore(location.bucket, **config, **rest)
    if location.scheme == "az":
        if "sas_token" in config:
            config["sas_key"] = config.pop("sas_token")
        return classes.AzureStore(location.bucket, **config, **rest)
    config.pop("anonymous", None)
    root = location.root
    if location.scheme == "hf":
        root = hub.files_url(location, config.pop("endpoint"))
    if config:
        raise ValueError(
            f"storage has {', '.join(sorted(config))}, which says nothing about {location.root}. "
            f"Datasets take token, endpoint and anonymous, servers token and headers, and both "
            "timeout, connect_timeout, retries and retry_seconds."
        )
    return classes.HTTPStore.from_url(root, **rest)
