"""Says on a terminal that a server does not answer, while requests are tried again."""

from __future__ import annotations

import asyncio
import sys
import textwrap

from tfrfast.base.tables import terminal_width

_SILENCE_S = 2.0
_WIDTH = 80

#: Buckets and servers that have answered, or whose silence was said.
_known: set[str] = set()


class Silence:
    """The time without an answer of a bucket or server. Speaks after two seconds, once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._place = ""
        self._limit_s = 0.0
        self._cause = ""
        self._timer: asyncio.TimerHandle | None = None
        if root not in _known and sys.stderr is not None and sys.stderr.isatty():
            self._timer = asyncio.get_running_loop().call_later(_SILENCE_S, self._say)

    def asks(self, endpoint: str, limit_s: float) -> None:
        """An attempt begins."""
        self._place, self._limit_s = f" at {endpoint}" if endpoint else "", limit_s

    def failed(self, cause: str) -> None:
        """An attempt got no answer."""
        self._cause = f": {cause}"

    def heard(self) -> None:
        """The server has answered."""
        _known.add(self._root)
        self.end()

    def end(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def __enter__(self) -> Silence:
        return self

    __exit__ = end

    def _say(self) -> None:
        if self._root in _known:
            return
        _known.add(self._root)
        text = (
            f"tfrfast: {self._root}{self._place} has not answered for {_SILENCE_S:.0f} s"
            f"{self._cause}. It is tried for up to {self._limit_s:.0f} s; Ctrl-C ends that."
        )
        print(textwrap.fill(text, terminal_width(sys.stderr) or _WIDTH), file=sys.stderr)
