"""Lossless compression of neural-network weights, with random access.

import ptwm.numpy                                      # or ptwm.torch; the functions of safetensors
ptwm.numpy.save_file({"weight": array}, "model.ptwm")
with ptwm.TensorIndex("model.ptwm") as index:
    rows = index.get_slice("weight")[10:20]            # decodes what these rows need
"""

from ptwm._errors import FormatError, IntegrityError, PtwmError
from ptwm._safe_open import safe_open
from ptwm._version import __version__
from ptwm.chains import STANDARD, Chain
from ptwm.random_access import TensorEntry, TensorIndex
from ptwm.sharding import Method, Writer

# Under this name code that used safetensors catches it.
SafetensorError = PtwmError

__all__ = [
    "STANDARD",
    "Chain",
    "FormatError",
    "IntegrityError",
    "Method",
    "PtwmError",
    "SafetensorError",
    "TensorEntry",
    "TensorIndex",
    "Writer",
    "__version__",
    "safe_open",
]
