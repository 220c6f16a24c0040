"""The package's version: that of the library inside it."""

from ptwm._library import ffi, lib

__version__: str = ffi.string(lib.ptwm_version()).decode("ascii")
