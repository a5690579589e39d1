"""Where a shuffle to a URL is made on this machine, so that the same call finds it again."""

from __future__ import annotations

import hashlib
import os

from tfrfast.jobs.shuffling.work_folder import can_resume
from tfrfast.storage.paths import written_file

_SHARDS = "shards"


def far_folder(url: str, work: str | os.PathLike[str]) -> str:
    """The folder in `work` that belongs to shuffles to that URL."""
    which = hashlib.sha256(url.encode(errors="surrogateescape")).hexdigest()[:8]
    return os.path.join(os.fsdecode(written_file(work)), f"upload-{url.rpartition('/')[2]}-{which}")


def can_resume_far(url: str, work: str | os.PathLike[str] | None) -> bool:
    """Whether a shuffle to that URL has left something that the same call goes on with."""
    if work is None:
        return False
    shards = os.path.join(far_folder(url, work), _SHARDS)
    return os.path.isdir(shards) and can_resume(os.path.join(shards, url.rpartition("/")[2]), None)
