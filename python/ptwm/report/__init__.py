"""A page about a file: where its bytes went. `gather` collects the numbers, `render` makes the page of them."""

from ptwm.report.gather import Report, gather
from ptwm.report.page import render

__all__ = ["Report", "gather", "render"]
