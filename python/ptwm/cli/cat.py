"""`ptwm cat`: one tensor's bytes on stdout."""

from __future__ import annotations

import argparse
import sys

from ptwm.cli import common
from ptwm.random_access import TensorIndex


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cat",
        help="write a tensor's raw bytes to stdout",
        description="Write a tensor's raw bytes (little-endian, C order) to stdout, checked. Only its own part of the "
        "file is read.",
    )
    parser.add_argument("file", metavar="FILE|DIRECTORY")
    parser.add_argument("tensor", metavar="TENSOR")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if sys.stdout.isatty():
        raise common.Failure("stdout is a terminal; redirect the tensor's bytes to a file or a pipe")
    with TensorIndex(args.file) as index:
        try:
            entry = index.entry(args.tensor)
        except KeyError:
            raise common.no_such_tensor(args.file, args.tensor, index.names()) from None
        buffer = bytearray(entry.nbytes or 0)
        index.get_into(args.tensor, buffer, check="full")
    common.write_stdout(buffer)
    return 0
