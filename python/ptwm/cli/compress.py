"""`ptwm compress`: .safetensors files, and directories with them, to .ptwm."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from ptwm.cli import common, units
from ptwm.cli.foreign import check_has_safetensors, check_is_safetensors
from ptwm.cli.progress import DirectoryProgress, progress
from ptwm.cli.results import Results, add_output_options, describe_plan, directory_report, result_nbytes
from ptwm.cli.targets import COMPRESSED, plan_targets
from ptwm.conversion import Options, compress_directory, compress_file
from ptwm.conversion.files import file_state, remove_unchanged
from ptwm.sharding import Method
from ptwm.sharding.options import MAX_CHUNK_NBYTES, MIN_CHUNK_NBYTES


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "compress",
        help="compress .safetensors files and directories of models",
        description="Compress .safetensors files, or directories of models as the Hugging Face hub has them, in which "
        "everything else is copied. `ptwm decompress` gives them back byte for byte. An interrupted run on a directory "
        "is gone on with by running it again.",
    )
    add_output_options(parser, "FILE.safetensors|DIRECTORY", "DIRECTORY-ptwm")
    parser.add_argument("--verify", action="store_true", help="decode and compare everything before a file appears")
    parser.add_argument(
        "--max-shard-size",
        metavar="SIZE",
        type=_shard_size,
        help="in directories: bytes of tensors, before compression, per file (5G); default: the shards are kept",
    )
    parser.add_argument(
        "--method",
        choices=[method.name.lower() for method in Method],
        default="microscale",
        help="how to code; the default chooses what suits the data",
    )
    parser.add_argument("--chunk", metavar="SIZE", type=_chunk, help="raw bytes decoded as one piece: 4K to 64M")
    parser.add_argument("--level", metavar="N", type=int, help="effort")
    parser.set_defaults(run=run)


def _chunk(text: str) -> int:
    nbytes = units.parse_size(text)
    if not MIN_CHUNK_NBYTES <= nbytes <= MAX_CHUNK_NBYTES:
        raise argparse.ArgumentTypeError(f"{text}: a chunk has 4K to 64M")
    return nbytes


def _shard_size(text: str) -> int:
    nbytes = units.parse_size(text)
    if nbytes == 0:
        raise argparse.ArgumentTypeError("a shard has at least one byte")
    return nbytes


def run(args: argparse.Namespace) -> int:
    verify = args.verify or args.remove_source
    options = Options(Method[args.method.upper()], args.chunk, args.threads, args.level, verify)
    pairs = plan_targets(args.sources, args.output, COMPRESSED, args.force)
    for source, _ in pairs:
        if os.path.isdir(source):
            check_has_safetensors(source)
        else:
            check_is_safetensors(source)
            if args.max_shard_size is not None:
                raise common.Failure(f"{source}: --max-shard-size is for directories")
    results = Results(args.json)
    for source, target in pairs:
        convert = _directory if os.path.isdir(source) else _file
        results.add(convert(source, target, options, args))
    return results.finish()


def _file(source: str, target: str, options: Options, args: argparse.Namespace) -> dict[str, Any]:
    raw = os.stat(source).st_size
    if args.dry_run:
        return {"source": source, "target": target, "raw_nbytes": raw, "steps": [f"compress {source} to {target}"]}
    state = file_state(source)
    start = time.perf_counter()
    with progress(raw * (2 if options.verify else 1), os.path.basename(source)) as advance:
        compress_file(source, target, options, advance)
    seconds = time.perf_counter() - start
    if args.remove_source:
        remove_unchanged(source, state)
    return {
        "source": source,
        "target": target,
        "raw_nbytes": raw,
        "stored_nbytes": os.stat(target).st_size,
        "seconds": seconds,
        "verified": options.verify,
        "removed": args.remove_source,
    }


def _directory(source: str, target: str, options: Options, args: argparse.Namespace) -> dict[str, Any]:
    start = time.perf_counter()
    with DirectoryProgress() as shown:
        plan = compress_directory(
            source,
            target,
            options,
            max_shard_size=args.max_shard_size,
            overwrite=args.force,
            remove_source=args.remove_source,
            dry_run=args.dry_run,
            progress=shown,
        )
    if args.dry_run:
        steps = describe_plan(plan)
        return {"source": source, "target": target, "raw_nbytes": plan.source_nbytes, "steps": steps}
    return {
        **directory_report(source, target, plan, time.perf_counter() - start, shown.n_kept),
        "raw_nbytes": plan.source_nbytes,
        "stored_nbytes": result_nbytes(plan),
        "verified": options.verify,
        "removed": args.remove_source,
    }
