"""The extension module: libptwm as cffi derives it from ptwm.h (build_ffi.py)."""

from typing import Any

ffi: Any
lib: Any
