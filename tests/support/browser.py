"""A page in headless Chromium, driven by the browser's own protocol."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import websocket

from patience import PATIENCE_S

PROGRAM = shutil.which("chromium")


class Page:
    """The page of a URL."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        #: What the page's scripts have reported as errors, and dialogues that were opened.
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **facts: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": facts}))
        while True:
            message = json.loads(self._socket.recv())
            self._note(message)
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]

    def _note(self, message: dict[str, Any]) -> None:
        method, facts = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(facts["exceptionDetails"].get("exception", facts)))
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"a dialogue: {facts['message']}")
        elif method == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.errors.append(str(facts["entry"]["text"]))

    def go_to(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """Returns the value of an expression."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Returns the value of an expression as soon as it is true."""
        until = time.monotonic() + PATIENCE_S
        while not (value := self.value(script)):
            assert time.monotonic() < until, f"never true: {script}; {self.errors}"
            time.sleep(0.03)
        return value

    def click(self, selector: str) -> None:
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def picture(self, path: Path) -> None:
        """Keeps a picture of the page as PNG."""
        answer = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def browser(width: int = 1280, height: int = 800) -> Iterator[Page]:
    """Yields an empty page."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = [
            "--headless=new",
            "--no-sandbox",  # as root
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-port=0",
            "--remote-allow-origins=*",
            f"--user-data-dir={folder}",
            f"--window-size={width},{height}",
        ]
        process = subprocess.Popen(
            [PROGRAM, *options, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            socket = websocket.create_connection(_address(Path(folder)), timeout=PATIENCE_S)
            try:
                yield Page(socket)
            finally:
                socket.close()
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _address(folder: Path) -> str:
    """Returns the address of the browser's first page, as soon as it is there."""
    until = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            port = (folder / "DevToolsActivePort").read_text().split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = json.load(answer)
            page = next(each for each in pages if each["type"] == "page")
            return str(page["webSocketDebuggerUrl"])
        assert time.monotonic() < until, "the browser did not start"
        time.sleep(0.05)
