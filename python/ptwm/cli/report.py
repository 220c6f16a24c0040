"""`ptwm report`: a page about a file or directory."""

from __future__ import annotations

import argparse
import os

from ptwm._files import write_atomically
from ptwm.cli import common, units
from ptwm.cli.targets import Kind, check_target, target_path
from ptwm.random_access import TensorIndex

PAGE = Kind(".ptwm", ".html", "", ".html")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "report",
        help="make a page that shows where the bytes went",
        description="Write an HTML page that shows where a file's bytes went: by layer, by data type and by tensor, what "
        "exponents there are, and what is slow to decode. It needs no other file and no network. Reads indexes, and a "
        "sample of the floats.",
    )
    parser.add_argument("file", metavar="FILE|DIRECTORY", help="a .ptwm file, or a directory of a model in some")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        help="the page, or a directory to put it into, - for stdout; default: beside the source",
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace an existing page")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from ptwm.report import gather, render  # needs numpy, which most commands do not load

    target = None if args.output == "-" else _target(args.file, args.output)
    with TensorIndex(args.file) as index:
        if target is not None:
            for source in (args.file, *map(os.fspath, index.files)):
                check_target(source, target, args.force)
        report = gather(index)
    page = render(report).encode("utf-8")
    if target is None:
        common.write_stdout(page)
        return 0
    write_atomically(target, page)
    tensors = units.plural(len(report.tensors), "tensor")
    common.say(f"{target}: {tensors}, a page of {units.human_size(len(page))}")
    return 0


def _target(source: str, output: str | None) -> str:
    return target_path(source, output, PAGE, into_directory=output is not None and os.path.isdir(output))
