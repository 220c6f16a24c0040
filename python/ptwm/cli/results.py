"""What `compress` and `decompress` have in common: their options, and how they tell what they did."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ptwm.cli import common, units
from ptwm.conversion.steps import Plan


def add_output_options(parser: argparse.ArgumentParser, source: str, directory: str) -> None:
    parser.add_argument("sources", metavar=source, nargs="+", help="files and directories, as many as you like")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DST",
        help="file or directory to write, for several sources a directory to put them into; default: beside the "
        f"source, for directories {directory}",
    )
    parser.add_argument(
        "-f", "--force", action="store_true", help="replace existing files; in directories all, done or not"
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only tell what would be done")
    parser.add_argument(
        "--remove-source",
        action="store_true",
        help="remove the source when the result was decoded and compared with it",
    )
    parser.add_argument("--threads", metavar="N", type=units.parse_count, help="default: all CPUs")
    parser.add_argument("--json", action="store_true", help="print an array with one object per source")


class Results:
    """Tells what was done with each source: a line each when it is done, or all of it as JSON at the end."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._reports: list[dict[str, Any]] = []

    def add(self, report: dict[str, Any]) -> None:
        self._reports.append(report)
        if not self._as_json:
            for line in _lines(report):
                common.say(line)

    def finish(self) -> int:
        if self._as_json:
            print(json.dumps(self._reports, indent=2))
        return 0


def _lines(report: dict[str, Any]) -> list[str]:
    raw = units.human_size(report["raw_nbytes"])
    if "steps" in report:
        return ["would " + step for step in report["steps"]]
    stored = units.human_size(report["stored_nbytes"])
    ratio = units.human_ratio(report["stored_nbytes"], report["raw_nbytes"])
    rate = units.human_rate(report["raw_nbytes"], report["seconds"])
    sizes = f"{raw} -> {stored} ({ratio})" if "verified" in report else raw
    line = f"{report['target']}: {sizes}, {report['seconds']:.1f} s, {rate}"
    if "files" in report:
        line += f", {units.plural(report['files'], 'file')}"
    if report.get("kept"):
        line += f" of which {report['kept']} were there already"
    if report.get("verified"):
        line += ", verified"
    if report["removed"]:
        line += f", {report['source']} removed"
    return [line]


def describe_plan(plan: Plan) -> list[str]:
    """What would be done, a line for each file."""
    return [f"{step.describe()} {step.target}" for step in plan.steps]


def directory_report(source: str, target: str, plan: Plan, seconds: float, n_kept: int) -> dict[str, Any]:
    return {
        "source": source,
        "target": target,
        "seconds": seconds,
        "files": len(plan.steps),
        "kept": n_kept,
    }


def result_nbytes(plan: Plan) -> int:
    """The sizes of all files that a plan made."""
    return sum(step.target.stat().st_size for step in plan.steps)
