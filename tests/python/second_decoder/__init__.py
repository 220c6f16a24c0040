"""A second decoder of .ptwm files, written from FORMAT.md alone and in the words of FORMAT.md.

It shares nothing with the library: what both of them decode to the same bytes is what the text says. It is meant to be
read beside the text and to be right, not to be fast: it takes whole files in memory and decodes whole segments.

    file = second_decoder.File(data)        # header, footer, manifest
    for tensor in file.tensors:
        raw = file.decode(tensor)           # every checksum and hash on the way is checked
    file.check()                            # padding, all segments, all tensors

Every refusal is a `Refused`: `NotPtwm`, `Unsupported`, `Corrupt` (a checksum or hash) or `Malformed`.
"""

from .errors import Corrupt, Malformed, NotPtwm, Refused, Unsupported
from .file import File
from .manifest import Segment, Tensor

__all__ = ["Corrupt", "File", "Malformed", "NotPtwm", "Refused", "Segment", "Tensor", "Unsupported"]
