"""`ptwm completion`: a script that makes a shell complete ptwm's commands and options."""

from __future__ import annotations

import argparse
from typing import Any

from ptwm.cli import common


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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

    parser = build_parser()
    _complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, how: Any) -> None:
    """Marks the arguments that are files, which are called so, as what shtab completes by the names of files."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, how)
        elif isinstance(action.metavar, str) and ("FILE" in action.metavar or action.metavar == "DST"):
            action.complete = how  # type: ignore[attr-defined]
