"""Uses boto3 for S3: lists names that obstore refuses, and unfinished uploads of killed writers."""

from __future__ import annotations

import contextlib
import errno
import importlib
import importlib.util
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

from tfrfast.storage.remote import failures
from tfrfast.storage.remote.options import public_options, secrets_for
from tfrfast.storage.schemes import SCHEMES, is_url


class Unfinished(NamedTuple):
    """An upload whose object is not visible."""

    url: str
    number: str
    age_s: float


def has_boto3() -> bool:
    return importlib.util.find_spec("boto3") is not None


def listed(bucket: str, access: str, folder: str, is_flat: bool) -> Iterator[dict[str, Any]]:
    """Yields a folder's objects in obstore's form. One bad name makes obstore refuse a page."""
    prefix = f"{folder}/" if folder else ""
    pages = _client(bucket, access).get_paginator("list_objects_v2")
    flat = {"Delimiter": "/"} if is_flat else {}
    for page in pages.paginate(Bucket=bucket, Prefix=prefix, **flat):
        for each in page.get("Contents", []):
            if each["Key"] != prefix:
                yield {
                    "path": each["Key"].removesuffix("/"),
                    "size": each["Size"],
                    "e_tag": each.get("ETag"),
                    "last_modified": each["LastModified"],
                }


def unfinished_uploads(url: str) -> list[Unfinished]:
    """Returns the unfinished uploads of objects whose URLs begin with `url`, oldest first.

    Raises ValueError for a storage without such a list, ModuleNotFoundError without boto3, and
    OSError.
    """
    bucket, prefix = _bucket_and_prefix(url)
    now = datetime.now(timezone.utc)
    with _errors_told(f"Listing the uploads to 's3://{bucket}/{prefix}'"):
        pages = _client(bucket).get_paginator("list_multipart_uploads")
        found = [
            Unfinished(
                f"s3://{bucket}/{each['Key']}",
                each["UploadId"],
                max(0.0, (now - each["Initiated"]).total_seconds()),
            )
            for page in pages.paginate(Bucket=bucket, Prefix=prefix)
            for each in page.get("Uploads", [])
            if each["Key"].startswith(prefix)
        ]
    return sorted(found, key=lambda each: -each.age_s)


def abort_uploads(url: str, uploads: list[Unfinished]) -> None:
    """Ends the uploads. A writer that still works on an upload fails. Raises OSError."""
    bucket, _ = _bucket_and_prefix(url)
    if not uploads:
        return
    client = _client(bucket)
    for each in uploads:
        key = each.url.removeprefix(f"s3://{bucket}/")
        # An upload that has ended meanwhile is not an error.
        with (
            _errors_told(f"Ending the upload of '{each.url}'"),
            contextlib.suppress(client.exceptions.NoSuchUpload),
        ):
            client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=each.number)


@contextlib.contextmanager
def _errors_told(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "botocore":
            raise
        raise OSError(errno.EIO, f"{what} failed: {failures.in_words(error, ())}.") from None


def _bucket_and_prefix(url: str) -> tuple[str, str]:
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


def _client(bucket: str, access: str = "") -> Any:
    try:
        boto3 = importlib.import_module("boto3")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Listing unfinished uploads needs boto3: pip install boto3", name="boto3"
        ) from None
    public, secrets = public_options(access), secrets_for(access, f"s3://{bucket}")
    config: dict[str, Any] = {"s3": {"addressing_style": "path"}}
    options: dict[str, Any] = {}
    if public.get("anonymous") or os.environ.get("AWS_SKIP_SIGNATURE", "").lower() == "true":
        config["signature_version"] = importlib.import_module("botocore").UNSIGNED
    else:
        for name in ("access_key_id", "secret_access_key", "session_token"):
            if name in secrets:
                options[f"aws_{name}"] = secrets[name]
    if endpoint := public.get("endpoint"):
        options["endpoint_url"] = endpoint
    if region := public.get("region"):
        options["region_name"] = region
    options["config"] = importlib.import_module("botocore.config").Config(**config)
    return boto3.Session(profile_name=public.get("profile")).client("s3", **options)
