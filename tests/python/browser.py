"""A browser without a window, spoken to by the DevTools protocol over a pipe; for the tests of pages."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_TIMEOUT = 60.0

# Runs a program with the two descriptors in their places.
_START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """The path of a browser that speaks the protocol."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A page in a browser. `events`: all that it told unasked, as (method, parameters)."""

    def __init__(self, program: str, profile: Path) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._numbers = itertools.count(1)
        self._unread = b""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The browser reads its descriptor 3 and writes its 4, which are something else in this process.
        high_in, high_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _START, str(high_in), str(high_out)),
                *(program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
                *("--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={profile}", "about:blank"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(high_in, high_out),
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},  # a sanitizer's
        )
        os.close(high_in)
        os.close(high_out)
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def open(self, path: Path) -> None:
        """Loads a file, and waits until it is there."""
        self.events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + _TIMEOUT
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            self._read(deadline)

    def resize(self, width: int, height: int = 900, dark: bool = False) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self) -> bytes:
        """What is seen, as a PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._ask(method, self._session, **parameters)

    def _ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = memoryview(json.dumps(message).encode() + b"\0")
        while data:
            data = data[os.write(self._out, data) :]
        deadline = time.monotonic() + _TIMEOUT
        while True:
            answer = self._read(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self, deadline: float) -> dict[str, Any]:
        """The next message. An event is also kept."""
        while b"\0" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            block = os.read(self._in, 1 << 20)
            if not block:
                raise ConnectionError("the browser has ended")
            self._unread += block
        message, _, self._unread = self._unread.partition(b"\0")
        content = json.loads(message)
        if "method" in content:
            self.events.append((content["method"], content.get("params", {})))
        return content
