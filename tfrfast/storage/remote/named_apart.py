"""Listings of S3 with names that obstore refuses, together with their whole page."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections.abc import Iterator
from typing import Any

from tfrfast.storage.remote.options import public_options, secrets_for
from tfrfast.storage.remote.urls import Location

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def has_boto3() -> bool:
    return importlib.util.find_spec("boto3") is not None


def objects_by_boto3(
    location: Location, access: str, folder: str, is_flat: bool
) -> Iterator[dict[str, Any]]:
    """Returns a listing of a folder's objects in obstore's form, bad names included."""
    prefix = f"{folder}/" if folder else ""
    pages = _client(location, access).get_paginator("list_objects_v2")
    flat = {"Delimiter": "/"} if is_flat else {}
    for page in pages.paginate(Bucket=location.bucket, Prefix=prefix, **flat):
        for each in page.get("Contents", []):
            if each["Key"] != prefix:
                yield {
                    "path": each["Key"].removesuffix("/"),
                    "size": each["Size"],
                    "e_tag": each.get("ETag"),
                    "last_modified": each["LastModified"],
                }


def is_usable(key: str) -> bool:
    """True if obstore takes such a name."""
    return not _CONTROL.search(key) and not any(part in ("", ".", "..") for part in key.split("/"))


def _client(location: Location, access: str) -> Any:
    boto3 = importlib.import_module("boto3")
    config = importlib.import_module("botocore.config").Config
    public, secrets = public_options(access), secrets_for(access, location.root)
    options: dict[str, Any] = {}
    if public.get("anonymous") or os.environ.get("AWS_SKIP_SIGNATURE", "").lower() == "true":
        unsigned = importlib.import_module("botocore").UNSIGNED
        options["config"] = config(signature_version=unsigned, s3={"addressing_style": "path"})
    else:
        options["config"] = config(s3={"addressing_style": "path"})
        for name in ("access_key_id", "secret_access_key", "session_token"):
            if name in secrets:
                options[f"aws_{name}"] = secrets[name]
    if endpoint := public.get("endpoint"):
        options["endpoint_url"] = endpoint
    if region := public.get("region"):
        options["region_name"] = region
    return boto3.Session(profile_name=public.get("profile")).client("s3", **options)
