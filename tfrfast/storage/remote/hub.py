"""Datasets on the Hugging Face Hub: the URLs of their files, the token, and listings."""

from __future__ import annotations

import asyncio
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timezone
from email.message import Message
from typing import IO, Any, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from tfrfast.storage.remote.failures import BadAnswerError
from tfrfast.storage.remote.options import public_options, secrets_for
from tfrfast.storage.remote.urls import ObjectName

_ENDPOINT = "https://huggingface.co"
_TRUE = ("1", "ON", "YES", "TRUE")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NEXT = re.compile(r'<([^>]*)>\s*;[^,<]*\brel="?next"?')
#: A page has 1,000 names, and is a few hundred KB.
_MAX_PAGE_BYTES = 64 << 20
#: The Hub's error code for a missing folder in an existing dataset.
_NO_ENTRY = "EntryNotFound"


class Account(NamedTuple):
    """A Hub and its token: empty for public access."""

    endpoint: str
    token: str


class HubError(Exception):
    """An answer of the Hub that is not a listing. The text names the status."""


def config_of(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options with the endpoint, and the token if any."""
    account = account_of(options)
    rest = {name: value for name, value in options.items() if name not in ("anonymous", "token")}
    token = {"token": account.token} if account.token else {}
    return {**rest, "endpoint": account.endpoint, **token}


def account_of(options: dict[str, Any]) -> Account:
    """Returns the account of the options or of the environment, like Hugging Face's own library."""
    endpoint = options.get("endpoint") or os.environ.get("HF_ENDPOINT") or _ENDPOINT
    if options.get("anonymous"):
        return Account(endpoint.rstrip("/"), "")
    return Account(endpoint.rstrip("/"), options.get("token") or _token_of_environment())


def files_url(location: ObjectName, endpoint: str) -> str:
    """Returns the URL of the files of that dataset and revision."""
    name, revision = _name_and_revision(location)
    return f"{endpoint}/{name}/resolve/{quote(revision, safe='')}"


def listed(
    location: ObjectName, access: str, folder: str, is_flat: bool, timeout_s: float
) -> Iterator[dict[str, Any]]:
    """Yields the Hub's description of each entry of a folder. Raises HubError, OSError."""
    account = account_of({**public_options(access), **secrets_for(access, location.root)})
    name, revision = _name_and_revision(location)
    url = f"{account.endpoint}/api/{name}/tree/{quote(revision, safe='')}"
    if folder:
        url += f"/{quote(folder, safe='')}"
    url += f"?recursive={'false' if is_flat else 'true'}&expand=false"
    is_first = True
    while url:
        page, link = _page(url, account, timeout_s, is_first)
        yield from page
        is_first = False
        found = _NEXT.search(link)
        url = urljoin(url, found[1]) if found else ""
        if url and not url.startswith(("http://", "https://")):
            raise BadAnswerError("the listing goes on at no address of a server")


def meta_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Returns a file's description in obstore's form."""
    # The tag of an answer differs from the tag in the tree.
    size = entry.get("size", 0)
    return {"path": entry["path"], "size": size, "e_tag": None, "last_modified": _EPOCH}


def _name_and_revision(location: ObjectName) -> tuple[str, str]:
    name, _, revision = location.bucket.partition("@")
    return name, unquote(revision) or "main"


def _token_of_environment() -> str:
    if os.environ.get("HF_HUB_DISABLE_IMPLICIT_TOKEN", "").upper() in _TRUE:
        return ""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if token := os.environ.get(name, "").strip():
            return token
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    home = os.environ.get("HF_HOME") or os.path.join(cache, "huggingface")
    path = os.environ.get("HF_TOKEN_PATH") or os.path.join(home, "token")
    try:
        with open(os.path.expandvars(os.path.expanduser(path)), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def _page(
    url: str, account: Account, timeout_s: float, is_first: bool
) -> tuple[list[dict[str, Any]], str]:
    """Returns a page of a listing, and its header Link. A missing folder is an empty first page."""
    opener = urllib.request.build_opener(_Redirects(account))
    try:
        with opener.open(_request(url, account), timeout=timeout_s) as answer:
            text = answer.read(_MAX_PAGE_BYTES + 1)
            link = ", ".join(answer.headers.get_all("Link", []))
    except urllib.error.HTTPError as error:
        if is_first and error.headers.get("X-Error-Code") == _NO_ENTRY:
            return [], ""
        said = error.headers.get("X-Error-Message") or error.reason
        raise HubError(f"the Hub said {said!r} (status code: {error.code})") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise asyncio.TimeoutError from None
        raise HubError(f"the Hub cannot be reached: {error.reason}") from None
    except TimeoutError:
        raise asyncio.TimeoutError from None
    if len(text) > _MAX_PAGE_BYTES:
        raise BadAnswerError("a page of the listing is too large")
    try:
        page = json.loads(text)
        facts = [(each["path"], each["type"], each.get("size", 0)) for each in page]
        if isinstance(page, list) and all([*map(type, each)] == [str, str, int] for each in facts):
            return page, link
    except (ValueError, TypeError, KeyError):
        pass
    raise BadAnswerError("the answer is not a listing of the Hub's")


def _request(url: str, account: Account) -> urllib.request.Request:
    request = urllib.request.Request(url)
    if account.token and _origin(url) == _origin(account.endpoint):
        # A header that a redirect does not carry.
        request.add_unredirected_header("Authorization", f"Bearer {account.token}")
    return request


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects. The token goes to no other server."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        return _request(newurl, self._account)

    http_error_308 = urllib.request.HTTPRedirectHandler.http_error_302  # since Python 3.11


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
