"""Lets many calls run at once, and closing wait for them."""

from __future__ import annotations

import threading


class Gate:
    """Counts the calls that use an object; `with gate:` is one such call.

    Parameters
    ----------
    what
        Names the object in the error that calls get after `close`.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._condition = threading.Condition()
        self._running = 0
        self._closed = False

    def __enter__(self) -> None:
        with self._condition:
            if self._closed:
                raise ValueError(f"{self._what} is closed")
            self._running += 1

    def __exit__(self, *exc_info: object) -> None:
        with self._condition:
            self._running -= 1
            if self._closed:
                self._condition.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> bool:
        """Lets nobody in any more and waits until everybody is out. False if it was closed before."""
        with self._condition:
            first = not self._closed
            self._closed = True
            self._condition.wait_for(lambda: self._running == 0)
        return first
