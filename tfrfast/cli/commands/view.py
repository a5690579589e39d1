"""Open a page in the browser with the records of a data set: pictures, text, numbers, statistics,
damage. Only this machine can see it. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from tfrfast.cli.common import add_common, add_steps
from tfrfast.cli.messages import add_message, message_features, message_of
from tfrfast.cli.view.data_set import DataSet
from tfrfast.cli.view.server import Server


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, progress=False, json=False)
    parser.add_argument(
        "--split",
        help="of a folder of TensorFlow Datasets, as in tfds.load (default: all)",
    )
    add_steps(parser, "also show the steps of episodes")
    add_message(parser)
    parser.add_argument(
        "--port", type=_port, default=0, help="the port on 127.0.0.1 (default: a free one)"
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the address, and open no browser"
    )


def run(options: argparse.Namespace) -> int:
    message = message_of(options)
    features = None if message is None else message_features(message, None)
    if features is not None and options.steps is not None:
        raise ValueError("--steps is of tf.train.Examples. Leave it out, or --proto and --message.")
    data = DataSet(options.paths, steps=options.steps, split=options.split, features=features)
    try:
        with _served(data, options.port) as server:
            print(server.address, flush=True)
            print("Ctrl-C ends it.", file=sys.stderr)
            with contextlib.suppress(KeyboardInterrupt), _opened(server.address, options):
                server.serve_forever()
    finally:
        data.close()
    return 0


def _served(data: DataSet, port: int) -> Server:
    try:
        return Server(data, port)
    except OSError as error:
        raise OSError(
            error.errno,
            f"Port {port} of this machine cannot be used: {error.strerror}. Choose another --port, "
            "or leave it out",
        ) from None


@contextlib.contextmanager
def _opened(address: str, options: argparse.Namespace) -> Iterator[None]:
    """Opens the page by way of a file: other users see the arguments of a browser's process, and
    must not see the token.
    """
    if options.no_open or not _has_screen():
        yield
        return
    with tempfile.NamedTemporaryFile("w", prefix="tfrfast-", suffix=".html") as file:  # mode 0600
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">')
        file.flush()
        url = Path(file.name).as_uri()
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        yield


def _has_screen() -> bool:
    """False where a browser would be a program in this terminal."""
    named = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in named)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)
