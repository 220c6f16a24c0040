"""`ptwm decompress`: .ptwm files, and directories with them, to what they came from."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from ptwm._safetensors import SafetensorsFile
from ptwm.cli import common
from ptwm.cli.progress import DirectoryProgress, progress
from ptwm.cli.results import Results, add_output_options, describe_plan, directory_report, result_nbytes
from ptwm.cli.targets import RESTORED, plan_targets
from ptwm.conversion import decompress_directory, decompress_file
from ptwm.conversion.files import file_state, remove_unchanged, restores
from ptwm.random_access import TensorIndex


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "decompress",
        help="restore .safetensors files and directories of models",
        description="Restore .safetensors files, and directories that `ptwm compress` made, byte for byte, checking "
        "every checksum and hash on the way.",
    )
    add_output_options(parser, "FILE.ptwm|DIRECTORY", "DIRECTORY without -ptwm")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    results = Results(args.json)
    for source, target in plan_targets(args.sources, args.output, RESTORED, args.force):
        convert = _directory if os.path.isdir(source) else _file
        results.add(convert(source, target, args))
    return results.finish()


def _file(source: str, target: str, args: argparse.Namespace) -> dict[str, Any]:
    stored = os.stat(source).st_size
    with TensorIndex(source) as index:
        nbytes = sum(entry.nbytes or 0 for entry in index.entries())
    if args.dry_run:
        return {"source": source, "target": target, "raw_nbytes": nbytes, "steps": [f"restore {target} from {source}"]}
    state = file_state(source)
    start = time.perf_counter()
    with progress(nbytes, os.path.basename(source)) as advance:
        raw = decompress_file(source, target, args.threads, advance)
    seconds = time.perf_counter() - start
    if args.remove_source:
        with SafetensorsFile(target) as file, TensorIndex(source, threads=args.threads) as index:
            if not restores(index, file):
                raise common.Failure(f"{target}: differs from what was written; {source} was not removed")
        remove_unchanged(source, state)
    return {
        "source": source,
        "target": target,
        "raw_nbytes": raw,
        "stored_nbytes": stored,
        "seconds": seconds,
        "removed": args.remove_source,
    }


def _directory(source: str, target: str, args: argparse.Namespace) -> dict[str, Any]:
    start = time.perf_counter()
    with DirectoryProgress() as shown:
        plan = decompress_directory(
            source,
            target,
            threads=args.threads,
            overwrite=args.force,
            remove_source=args.remove_source,
            dry_run=args.dry_run,
            progress=shown,
        )
    if args.dry_run:
        raw = sum(step.nbytes for step in plan.steps)
        return {"source": source, "target": target, "raw_nbytes": raw, "steps": describe_plan(plan)}
    return {
        **directory_report(source, target, plan, time.perf_counter() - start, shown.n_kept),
        "raw_nbytes": result_nbytes(plan),
        "stored_nbytes": plan.source_nbytes,
        "removed": args.remove_source,
    }
