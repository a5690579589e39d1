"""How long tests wait, and how often they look, on machines that are slow or busy."""

from collections.abc import Callable

#: The longest wait of a test for another process or thread. It finds hangs, and judges no speed.
PATIENCE_S = 600


def at_least_once(check: Callable[[], None], tries: int = 10) -> None:
    """Passes if `check` does, once. For what other programs of the machine can disturb."""
    for left in reversed(range(tries)):
        try:
            check()
        except (AssertionError, TimeoutError):
            if left == 0:
                raise
        else:
            return
