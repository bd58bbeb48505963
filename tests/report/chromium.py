"""A headless Chromium, spoken to over two pipes: what a page shows, says, and does when touched."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # a page that asks for anything gets nothing
    "--remote-debugging-pipe",
)
PATIENCE_S = 60.0
TO_BROWSER, FROM_BROWSER = 3, 4  # file descriptors that the browser expects


def chromium_path() -> str:
    """Return the path of Chromium; a test is skipped where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("Chromium is not installed: pages are not tested in a browser")


class Page:
    """One tab, with all that its console and its network said."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the browser answers to a command of its protocol."""
        return self._browser.call(method, parameters, self._session)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, after all promises in it."""
        answer = self.call(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True},
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def settle(self) -> None:
        """Return once everything that was asked for is drawn."""
        frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.evaluate(f"{frame}.then(() => true)")

    def touch(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        """Move, press or release the mouse: "mouseMoved", "mousePressed", "mouseReleased"."""
        button = "none" if kind == "mouseMoved" and not buttons else "left"
        event = {"type": kind, "x": x, "y": y, "button": button, "buttons": buttons}
        self.call("Input.dispatchMouseEvent", {**event, "clickCount": 1})

    def press(self, key: str) -> None:
        """Press and release a key such as "ArrowRight" or "+"."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key})

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        answer = self.call("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(answer["data"]))

    def hear(self, event: dict[str, Any]) -> None:
        """Note an event of the browser that speaks of this page."""
        method, parameters = event["method"], event["params"]
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.complaints.append(str(parameters["args"]))
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(parameters["entry"]))
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])


class Browser:
    """A running Chromium. Messages are JSON that ends with a zero byte."""

    def __init__(self, write: int, read: int) -> None:
        self._write = write
        self._read = read
        self._rest = b""
        self._number = 0
        self._pages: dict[str, Page] = {}

    def open(
        self, path: Path, *, width: int = 1280, height: int = 900, script: bool = True
    ) -> Page:
        """Return a new tab that has loaded a local file."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page(self, attached["sessionId"])
        self._pages[attached["sessionId"]] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        page.call("Emulation.setScriptExecutionDisabled", {"value": not script})
        page.call("Page.navigate", {"url": path.as_uri()})
        until = time.monotonic() + PATIENCE_S
        while page.evaluate("document.readyState + location.protocol") != "completefile:":
            if time.monotonic() > until:
                raise TimeoutError(f"{path.name} does not load")
            time.sleep(0.02)
        return page

    def call(
        self, method: str, parameters: dict[str, Any] | None = None, session: str | None = None
    ) -> dict[str, Any]:
        """Return what the browser answers to a command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method}
        message["params"] = parameters or {}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            page = self._pages.get(answer.get("sessionId", ""))
            if page is not None and "method" in answer:
                page.hear(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], PATIENCE_S)[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self._read, 1 << 16)
            if not data:
                raise ConnectionError("Chromium has ended")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Run a browser with a fresh profile for the length of the block."""
    path = chromium_path()
    with tempfile.TemporaryDirectory(prefix="regal-browser-", ignore_cleanup_errors=True) as home:
        ours_read, theirs_write = _pipe()
        theirs_read, ours_write = _pipe()
        null = os.open(os.devnull, os.O_RDWR)
        process = os.posix_spawn(
            path,
            [path, *FLAGS, f"--user-data-dir={home}", "about:blank"],
            {**os.environ, "HOME": home},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 1),
                (os.POSIX_SPAWN_DUP2, null, 2),
                (os.POSIX_SPAWN_DUP2, theirs_read, TO_BROWSER),
                (os.POSIX_SPAWN_DUP2, theirs_write, FROM_BROWSER),
            ],
            setpgroup=0,
        )
        for descriptor in (null, theirs_read, theirs_write):
            os.close(descriptor)
        try:
            yield Browser(ours_write, ours_read)
        finally:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(ours_write)
            os.close(ours_read)


def _pipe() -> tuple[int, int]:
    """Return a pipe whose numbers are not those that the browser expects."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FROM_BROWSER + 1) for end in low)
    for end in low:
        os.close(end)
    return high[0], high[1]
