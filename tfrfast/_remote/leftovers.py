"""Uploads that were never finished, of writers that were killed."""

from __future__ import annotations

import importlib
from datetime import datetime, timezone
from typing import Any, NamedTuple

from tfrfast._remote.urls import SCHEMES, is_url


class Unfinished(NamedTuple):
    """An upload of which nobody sees anything."""

    url: str
    number: str
    age_s: float


def unfinished_uploads(url: str) -> list[Unfinished]:
    """Those to a bucket, of objects whose URLs begin like `url`. The oldest come first.

    Raises ValueError where there is no such list, and ModuleNotFoundError without boto3.
    """
    bucket, prefix = _place(url)
    now = datetime.now(timezone.utc)
    pages = _client().get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
    found = [
        Unfinished(
            f"s3://{bucket}/{each['Key']}",
            each["UploadId"],
            max(0.0, (now - each["Initiated"]).total_seconds()),
        )
        for page in pages
        for each in page.get("Uploads", [])
        if each["Key"].startswith(prefix)
    ]
    return sorted(found, key=lambda each: -each.age_s)


def abort_uploads(url: str, uploads: list[Unfinished]) -> None:
    """Ends them. A writer that is still at work on one fails."""
    bucket, _ = _place(url)
    if not uploads:
        return
    client = _client()
    for each in uploads:
        key = each.url.removeprefix(f"s3://{bucket}/")
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=each.number)


def _place(url: str) -> tuple[str, str]:
    if not is_url(url):
        raise ValueError(f"{url!r} is not a URL of {', '.join(SCHEMES)}.")
    scheme, _, rest = url.partition("://")
    if scheme != "s3":
        raise ValueError(
            f"{scheme}:// has no list of unfinished uploads that tfrfast can read. Google's and "
            "Azure's storages remove them by themselves, after a week or as the bucket's rules say."
        )
    bucket, _, prefix = rest.partition("/")
    return bucket, prefix


def _client() -> Any:
    try:
        return importlib.import_module("boto3").client("s3")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Listing unfinished uploads needs boto3: pip install boto3", name="boto3"
        ) from None
