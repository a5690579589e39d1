"""What a command draws on a terminal of 80 columns."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

WIDTH = 80


def drawn(*arguments: object) -> list[str]:
    """Returns the lines and refreshes that a command draws on a terminal."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    command = [sys.executable, "-m", "tfrfast", *map(str, arguments)]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        text = b""
        with contextlib.suppress(OSError):  # how Linux ends a terminal
            while piece := os.read(ours, 1 << 16):
                text += piece
        assert process.wait() == 0, text.decode()
    os.close(ours)
    plain = re.sub(r"\x1b\[\w*", "", text.decode())
    return re.split(r"[\r\n]+", plain)
