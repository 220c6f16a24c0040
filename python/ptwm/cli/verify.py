"""`ptwm verify`: is every byte of a file as it was written?"""

from __future__ import annotations

import argparse
import json
from typing import Any

from ptwm.cli import common, units
from ptwm.random_access import TensorIndex


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "verify",
        help="check files and directories completely",
        description="Decode everything and check every checksum, every hash and all padding. Writes nothing.",
    )
    parser.add_argument("files", metavar="FILE|DIRECTORY", nargs="+")
    parser.add_argument("--threads", metavar="N", type=units.parse_count, help="default: all CPUs")
    parser.add_argument("--json", action="store_true", help="print an array with one object per file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check all files, also behind a bad one."""
    reports = []
    for path in args.files:
        report = verify_file(path, args.threads)
        reports.append(report)
        if not report["ok"]:
            common.complain(report["error"])
        elif not args.json:
            content = f"{units.plural(report['tensors'], 'tensor')}, {units.human_size(report['raw_nbytes'])}"
            common.say(f"{path}: ok, {content}")
    if args.json:
        print(json.dumps(reports, indent=2))
    return 0 if all(report["ok"] for report in reports) else common.EXIT_FAILED


def verify_file(path: str, threads: int | None = None) -> dict[str, Any]:
    """Check one file; says how that went instead of raising."""
    try:
        with TensorIndex(path) as index:
            index.verify(threads=threads)
            entries = index.entries()
    except (OSError, ValueError) as error:
        return {"path": path, "ok": False, "error": common.describe_error(error)}
    return {"path": path, "ok": True, "tensors": len(entries), "raw_nbytes": sum(entry.nbytes for entry in entries)}
