"""Files: read at any place by many threads, and written so that they appear complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import threading
import weakref
from collections.abc import Iterator
from typing import Any, BinaryIO

from ptwm._library import ffi, path_to_c

# What one system call reads at most.
_READ_NBYTES = 1 << 30


class ReadableFile:
    """A regular file that is open for reading, from any thread, without a position.

    OSError if it cannot be opened, or is no regular file: a pipe has no places to read at.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path_to_c(path)
        self.path = os.fspath(path)
        # Opening a pipe would wait for somebody who writes to it.
        self._descriptor = os.open(
            self.path,
            os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0),
        )
        try:
            status = os.fstat(self._descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", self.path)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.nbytes = status.st_size
        # Whoever forgets to close it does not keep it open.
        self._closing = weakref.finalize(self, os.close, self._descriptor)
        self._lock = threading.Lock()

    def read_into(self, pointer: Any, offset: int, nbytes: int) -> None:
        """Reads exactly nbytes bytes. OSError if the file has become shorter than that."""
        view = memoryview(ffi.buffer(pointer, nbytes))
        while view:
            done = self._read_at(view[:_READ_NBYTES], offset)
            if done == 0:
                raise OSError(errno.EIO, "the file ends too early: it became shorter while it was open", self.path)
            view, offset = view[done:], offset + done

    def _read_at(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [view], offset)
        with self._lock:  # Windows
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            content = os.read(self._descriptor, len(view))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._closing()


# Names of unfinished files: temporary_beside's and the library's writer's.
_TEMPORARY = re.compile(r"\.ptwm-[0-9a-f]{16}\.tmp(\.\d+\.\d+\.tmp)?|.+\.ptwm\.\d+\.\d+\.tmp", re.DOTALL)


def is_temporary(name: str) -> bool:
    """Whether a file of that name is one that was never finished, as they are left behind by a power cut."""
    return _TEMPORARY.fullmatch(name) is not None


@contextlib.contextmanager
def atomic_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that appears at path, complete and on the disk, when the block ends; not at all if it raises."""
    with temporary_beside(path) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        publish(temporary, path)


@contextlib.contextmanager
def temporary_beside(path: str | os.PathLike[str]) -> Iterator[str]:
    """An unused name in the directory of path, or of what that links to. What is left under it at the end is removed.

    Errors of the operating system about it become errors about path, which is what the user knows.
    """
    temporary = os.path.join(os.path.dirname(_behind_link(path)), f".ptwm-{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
    except OSError as error:
        if error.filename == temporary:
            error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _behind_link(path: str | os.PathLike[str]) -> str:
    """The path, or that of what is behind it if it is a symbolic link."""
    path = os.fspath(path)
    return os.path.realpath(path) if os.path.islink(path) else path


def publish(temporary: str, path: str | os.PathLike[str]) -> None:
    """Rename a finished file to its real name, so that the name survives a power cut too. A link stays a link."""
    path = _behind_link(path)
    os.replace(temporary, path)
    if hasattr(os, "O_DIRECTORY"):
        # The file is in place whatever happens here; some file systems cannot sync a directory.
        with contextlib.suppress(OSError):
            descriptor = os.open(os.path.dirname(os.fspath(path)) or ".", os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def copy_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copies a file with its permissions and times. It appears when it is complete and on the disk."""
    with temporary_beside(target) as temporary:
        shutil.copyfile(source, temporary)
        descriptor = os.open(temporary, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        shutil.copystat(source, temporary)
        publish(temporary, target)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Replaces a file by a whole new one, or on failure leaves everything as it was."""
    with atomic_output(path) as file:
        file.write(content)
