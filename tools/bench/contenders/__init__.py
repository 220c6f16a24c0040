"""The contenders, one module for each family."""

from __future__ import annotations

from bench.contenders import general, lmzip, openzl, z4ai, zipnn
from bench.contenders.base import Archive, Contender
from bench.contenders.ours import Ptwm

__all__ = ["Archive", "Contender", "all_contenders"]


def all_contenders() -> list[Contender]:
    """Every contender, installed or not, ours first."""
    families = (openzl, zipnn, lmzip, z4ai, general)
    return [Ptwm(), *(contender for family in families for contender in family.contenders())]
