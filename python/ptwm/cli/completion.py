"""`ptwm completion`: a script that makes a shell complete ptwm's commands and options."""

from __future__ import annotations

import argparse

from ptwm.cli import common


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script for your shell's completion",
        description="Print a script that makes a shell complete ptwm's commands, options and files. Needs the shtab "
        "package. For bash: ptwm completion bash > ~/.local/share/bash-completion/completions/ptwm; for zsh, in a "
        "directory of $fpath: ptwm completion zsh > _ptwm",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise common.Failure("completion needs the shtab package: pip install shtab") from None
    from ptwm.cli import build_parser

    print(shtab.complete(build_parser(), shell=args.shell))
    return 0
