"""Builds the cffi interface to libptwm; `python -m cffi.gen_src exec-python build_ffi.py out.c` runs it.

The declarations are derived from ptwm.h, so that there is nothing here to drift from it.
"""

import re
from pathlib import Path

from cffi import FFI

HEADER = Path(__file__).resolve().parent.parent / "libptwm" / "ptwm.h"

# What C calls in Python; ptwm/_library.py defines them.
CALLBACKS = """
extern "Python" {
    int ptwm_python_zstd_compress(void *context, void *dst, size_t dst_capacity, size_t *dst_nbytes, const void *src,
                                  size_t src_nbytes, int level);
    int ptwm_python_zstd_decompress(void *context, void *dst, size_t dst_nbytes, const void *src, size_t src_nbytes);
    int ptwm_python_read(void *context, uint64_t offset, void *buffer, size_t nbytes);
    int ptwm_python_write(void *context, const void *data, size_t nbytes);
    void *ptwm_python_resize(void *context, size_t nbytes);
}
"""

CONSTANT = re.compile(r"#define\s+(PTWM_\w+)\s+(?:\d+u?|UINT64_MAX)$")


def derive_cdef(header: str) -> str:
    """The part of a header that cffi reads: types, functions, enums and constants that are numbers."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL).replace("\\\n", " ")
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif", "", text, flags=re.DOTALL)
    lines = []
    for line in map(str.rstrip, text.splitlines()):
        constant = CONSTANT.match(line)
        if constant:
            # "..." leaves the value to the C compiler.
            lines.append(f"#define {constant[1]} ...")
        elif line.strip() and not line.lstrip().startswith("#"):
            lines.append(re.sub(r"\bPTWM_API\s+", "", line))
    return "\n".join(lines) + "\n"


ffibuilder = FFI()
ffibuilder.cdef(derive_cdef(HEADER.read_text(encoding="utf-8")) + CALLBACKS)
ffibuilder.set_source("ptwm._ptwm", '#include "ptwm.h"\n')
