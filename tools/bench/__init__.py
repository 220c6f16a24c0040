"""Measures ptwm and its peers side by side: `python tools/bench --help`."""
