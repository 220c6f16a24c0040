"""Files that Python code reads and writes for the library, and memory that it has for them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from ptwm._library import ffi, lib


class Callback:
    """A Python function that C calls. What it raises is kept in `error`, for the call that made C call it to raise."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.error: BaseException | None = None
        self.handle = ffi.new_handle(self)

    def call(self, *args: Any) -> Any:
        """The function's result; None if it raises."""
        try:
            return self.function(*args)
        except BaseException as error:
            self.error = error
            return None

    def reraise(self) -> None:
        """Raises what the function raised, if it did."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def source(read: Callback, total_nbytes: int) -> Any:
    """A `struct ptwm_source *` that reads by read.function(offset, nbytes) -> bytes."""
    return ffi.new(
        "struct ptwm_source *", {"read": lib.ptwm_python_read, "context": read.handle, "total_nbytes": total_nbytes}
    )


def sink(write: Callback) -> Any:
    """A `struct ptwm_sink *` that writes by write.function(data), whose result does not matter."""
    return ffi.new("struct ptwm_sink *", {"write": lib.ptwm_python_write, "context": write.handle})


def buffer(resize: Callback) -> Any:
    """A `struct ptwm_buffer *` whose memory resize.function(nbytes) makes longer or shorter; it returns the address."""
    return ffi.new("struct ptwm_buffer *", {"resize": lib.ptwm_python_resize, "context": resize.handle})


@ffi.def_extern(name="ptwm_python_read", error=errno.EIO)  # type: ignore[untyped-decorator]
def _read(context: Any, offset: int, buffer: Any, nbytes: int) -> int:
    callback: Callback = ffi.from_handle(context)
    data = callback.call(offset, nbytes)
    if data is None:
        return errno.EIO
    try:
        view = memoryview(data).cast("B")
    except TypeError as error:
        callback.error = error
        return errno.EIO
    if view.nbytes != nbytes:
        callback.error = OSError(errno.EIO, f"{view.nbytes} bytes were read instead of {nbytes}")
        return errno.EIO
    ffi.memmove(buffer, view, nbytes)
    return 0


@ffi.def_extern(name="ptwm_python_write", error=errno.EIO)  # type: ignore[untyped-decorator]
def _write(context: Any, data: Any, nbytes: int) -> int:
    callback: Callback = ffi.from_handle(context)
    callback.call(bytes(ffi.buffer(data, nbytes)))
    return 0 if callback.error is None else errno.EIO


@ffi.def_extern(name="ptwm_python_resize")  # type: ignore[untyped-decorator]
def _resize(context: Any, nbytes: int) -> Any:
    callback: Callback = ffi.from_handle(context)
    return ffi.cast("void *", callback.call(nbytes) or 0)
