"""Errors as phrases of a page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def without_path(error: Exception, paths: Iterable[Path]) -> str:
    """A message without the path that it begins with, which is the reader's business and not the file's."""
    text = str(error)
    for path in paths:
        text = text.removeprefix(f"{path}: ")
    return text or type(error).__name__
