"""The outputs and options of a shuffle."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass

from tfrfast import _native
from tfrfast.jobs.shuffling.split_targets import SplitTarget
from tfrfast.writing.options import Compression

_VERSION = 2  # of the fingerprint


@dataclass(frozen=True)
class Target:
    """The outputs and options of a shuffle."""

    outputs: list[SplitTarget]
    seed: int
    overwrite: bool
    index: bool
    index_folder: bytes
    sync: bool
    compression: Compression | None = None
    level: int | None = None

    def fingerprint(self) -> str:
        """Returns a hash that differs between targets whose finished shards differ."""
        index = os.fsdecode(self.index_folder) or str(self.index)
        facts = [_VERSION, self.seed, [vars(each) for each in self.outputs], index]
        facts += [self.compression, self.level]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def check_places(self) -> None:
        """Raises OSError, before any work is done, if the shards could not be published."""
        for output in self.outputs:
            _native.check_shard_places(
                os.fsencode(output.prefix),
                output.num_shards,
                self.index,
                self.index_folder,
            )

    def taken_names(self) -> list[str]:
        """Returns the existing shards with these prefixes, from sets of any size."""
        return [
            path
            for output in self.outputs
            if os.path.isdir(os.path.dirname(output.prefix) or ".")
            for path in _native.list_shards(os.fsencode(output.prefix))
        ]
