"""A task of a job that runs until the job ends it."""

from __future__ import annotations

import threading
from typing import Any

from patience import PATIENCE_S
from tfrfast.jobs.running import Advance


class EndlessTask:
    amount = 1

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()

    def run(self, advance: Advance) -> Any:
        try:
            while True:
                self.begun.set()
                advance(0)
        finally:
            self.ended.set()

    def wait(self) -> None:
        """Waits until the task runs."""
        assert self.begun.wait(PATIENCE_S)
