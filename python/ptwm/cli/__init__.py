"""The `ptwm` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ptwm._version import __version__
from ptwm.cli import cat, common, completion, compress, decompress, demo, info, report, verify

_COMMANDS = (compress, decompress, info, report, verify, cat, demo, completion)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (sys.argv's by default) and return the exit status.

    0: done; 1: failed, with one line on stderr; 2: the command line makes no sense; 130: interrupted.
    """
    if argv is None:
        common.prepare_process()
    parser = build_parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as exit:  # argparse has printed a help text, the version or what is wrong
        return int(exit.code or 0)
    if args.command is None:
        parser.print_help(sys.stderr)
        return common.EXIT_USAGE
    return common.run_command(args.run, args)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ptwm",
        description="Lossless compression of neural-network weights, with random access.",
        epilog="`ptwm COMMAND --help` tells more. `ptwm demo` shows what it does.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=32),
    )
    parser.add_argument("--version", action="version", version=f"ptwm {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in _COMMANDS:
        module.add_parser(commands)
    return parser
