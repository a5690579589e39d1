"""What a bucket of boto3 holds."""

from __future__ import annotations

from typing import Any


def keys(bucket: Any) -> list[str]:
    return sorted(each.key for each in bucket.objects.all())


def unfinished(bucket: Any) -> int:
    """The number of uploads that have begun, and have not ended."""
    return len(list(bucket.multipart_uploads.all()))
