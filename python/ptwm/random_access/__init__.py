"""Reading .ptwm files, one tensor or a part of one at a time."""

from ptwm.random_access.index import TensorIndex
from ptwm.random_access.records import TensorEntry
from ptwm.random_access.slices import TensorSlice

__all__ = ["TensorEntry", "TensorIndex", "TensorSlice"]
