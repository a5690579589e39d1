"""The folder of a shuffle's tasks: their files and results, which outlive a task and its driver."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TaskFolder:
    """A folder that all machines see. Can be pickled.

    A name belongs to one task, which makes the same file each time. So a task may run twice, even
    at the same time. A file appears whole, and its task's result after it.
    """

    folder: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def new_file(self) -> Iterator[str]:
        """Yields a name for a file that is not complete. Removes it unless it gets another name."""
        path = self.path(f".{secrets.token_hex(8)}")
        try:
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def remove_unfinished(self) -> None:
        """Removes the files that killed tasks have left."""
        for name in os.listdir(self.folder):
            if name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path(name))

    def result(self, name: str) -> Any:
        """Returns the result of the task that has ended, or None."""
        # A power cut may leave an empty file: then the task runs again.
        with (
            contextlib.suppress(FileNotFoundError, ValueError),
            open(self.path(f"{name}.json")) as file,
        ):
            return json.load(file)
        return None

    def keep(self, name: str, result: Any, file: str | None = None) -> None:
        """Names the file, then saves the result."""
        if file is not None:
            os.replace(file, self.path(name))
        with self.new_file() as made:
            with open(made, "w", encoding="utf-8") as saved:
                json.dump(result, saved)
            os.replace(made, self.path(f"{name}.json"))
