"""The command line."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import child, figures, machine, report
from bench.contenders import Contender, all_contenders
from bench.model import Model
from bench.sections import coding, files, memory, scaling, threads
from bench.timing import describe, usable_cpus
from bench.workspace import Options, Workspace

# Each makes these tables of a file.
FILE_SECTIONS: dict[str, dict[str, Callable[[Workspace], dict[str, Any]]]] = {
    "sizes": {"sizes": coding.sizes},
    "encode": {"encode": coding.encode},
    "decode": {
        "decode_fresh": coding.decode_fresh,
        "decode_touched": coding.decode_touched,
        "decode_one": coding.decode_one,
    },
    "checks": {"checks": coding.checks},
    "threads": {"threads": threads.threads},
    "load": {"load": files.warm, "load_again": files.again},
    "cold": {"cold": files.cold},
    "memory": {"memory": memory.memory},
}
SCALING_SECTIONS: dict[str, Callable[[Options], dict[str, Any]]] = {
    "open": scaling.opening,
    "latency": scaling.latency,
    "million": scaling.million,
}
LEVELS = "levels"  # runs of this program
SECTIONS = (*FILE_SECTIONS, LEVELS, *SCALING_SECTIONS)


def main() -> int:
    if sys.argv[1:2] == [child.FLAG]:
        child.main(*sys.argv[2:])
        return 0
    parser = _parser()
    args = parser.parse_args()
    if not args.files and set(args.only) & {*FILE_SECTIONS, LEVELS}:
        parser.error("no FILE is given; --only open,latency,million needs none")
    try:
        results = run(args)
    except (OSError, ValueError) as error:  # a FILE that cannot be read or is no .safetensors file
        print(f"bench: {error}", file=sys.stderr)
        return 1
    _progress("")
    if args.json is not None:
        content = json.dumps(results, indent=1)
        if args.json == "-":
            print(content)
            return 0
        Path(args.json).write_text(content + "\n")
    print(report.text(results), end="")
    if args.chart is not None:
        from bench import chart

        try:
            chart.draw(results, args.chart)
        except (ImportError, ValueError) as error:
            print(f"no chart: {error}", file=sys.stderr)
            return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tools/bench",
        description="Measures ptwm and its installed peers on .safetensors files, in turns, on one core.",
        epilog="Peers: pip install -r tools/bench/requirements.txt. Derived files: tools/bench/make_variants.py.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a .safetensors file")
    parser.add_argument(
        "--only", type=_names_of(SECTIONS), default=list(SECTIONS), metavar="SECTION,...",
        help=f"what to measure: {', '.join(SECTIONS)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--contenders", type=lambda text: text.split(","), metavar="NAME,...",
        help="contenders, or packages, to compare (default: all)",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="turns of each contender (default: 7)")
    parser.add_argument(
        "--budget", type=float, default=15, metavar="SECONDS",
        help="of each contender in each table, after which it takes no more turns (default: 15)",
    )  # fmt: skip
    parser.add_argument(
        "--core", type=int, default=usable_cpus()[-1], metavar="CPU", help="to be pinned to (default: the last)"
    )
    parser.add_argument(
        "--levels", type=lambda text: text.split(","), default=["c99", "avx2", "avx512"], metavar="CPU,...",
        help="values of PTWM_CPU that the section levels runs ptwm with (default: c99,avx2,avx512)",
    )  # fmt: skip
    parser.add_argument(
        "--directory", type=Path, metavar="DIR",
        help="where to make files to load, on a real disk (default: a temporary one in $TMPDIR or /var/tmp)",
    )  # fmt: skip
    parser.add_argument("--json", metavar="OUT", help="write everything measured as JSON; -: to stdout, without tables")
    parser.add_argument("--chart", type=Path, metavar="OUT.png", help="draw size against speed")
    parser.add_argument(
        "--quick", action="store_true", help="make small files for cold, open, latency, million: only to try it out"
    )
    return parser


def _names_of(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"no section is named {name!r}; they are {', '.join(known)}")
        return names

    return parse


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Everything that was asked for, as JSON holds it."""
    with tempfile.TemporaryDirectory(
        prefix="ptwm-bench-", dir=args.directory or os.environ.get("TMPDIR", "/var/tmp")
    ) as made:
        options = Options(args.rounds, args.budget, args.core, Path(made), args.quick)
        contenders, described = _start(args.contenders)
        results: dict[str, Any] = {
            "machine": machine.describe(["ptwm", *_packages(), "torch", "numpy"]),
            "core": args.core,
            "rounds": args.rounds,
            "budget": args.budget,
            "contenders": described,
            "files": [_measure_file(path, contenders, options, args) for path in args.files],
            "scaling": {},
        }
        for name, measure in SCALING_SECTIONS.items():
            if name in args.only:
                _progress(name)
                results["scaling"][name] = measure(options)
        if results["scaling"]:
            results["scaling"]["figures"] = figures.of_scaling(results["scaling"])
        results["machine"]["load_average_after"] = list(os.getloadavg()) if hasattr(os, "getloadavg") else None
    return results


def _packages() -> list[str]:
    return sorted({contender.package for contender in all_contenders()} - {"ptwm"})


def _start(wanted: list[str] | None) -> tuple[list[Contender], list[dict[str, Any]]]:
    """The contenders that can be imported, and a description of all."""
    started, described = [], []
    for contender in all_contenders():
        if wanted is not None and not {contender.name, contender.package} & set(wanted):
            continue
        missing, version = None, None
        try:
            contender.start()
            version = contender.version()
        except Exception as error:  # a broken installation may fail in any way
            missing = describe(error)
        else:
            started.append(contender)
        described.append(
            {
                "name": contender.name,
                "package": contender.package,
                "version": version,
                "note": contender.note,
                "is_peer": contender.is_peer,
                "missing": missing,
            }
        )
    return started, described


def _measure_file(
    path: Path, contenders: list[Contender], options: Options, args: argparse.Namespace
) -> dict[str, Any]:
    workspace = Workspace(Model.read(path), contenders, options)
    model = workspace.model
    tables: dict[str, Any] = {}
    for section, measures in FILE_SECTIONS.items():
        if section in args.only:
            for name, measure in measures.items():
                _progress(f"{path.name}: {name}")
                tables[name] = measure(workspace)
                _clear(options.directory)
    if LEVELS in args.only:
        tables["levels"] = {level: _run_level(level, path, args) for level in args.levels}
    workspace.close()
    peers = [contender.name for contender in contenders if contender.is_peer]
    return {
        "path": str(path),
        "nbytes": model.nbytes,
        "file_nbytes": len(model.content),
        "n_tensors": len(model.tensors),
        "dtypes": model.dtypes,
        "largest": {"name": model.largest.name, "nbytes": model.largest.nbytes} if model.tensors else None,
        "failures": workspace.failures,
        "sections": tables,
        "figures": figures.of_file(tables, peers),
    }


def _run_level(level: str, path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """ptwm alone, in a process whose kernels are limited by PTWM_CPU, which is read once."""
    _progress(f"{path.name}: PTWM_CPU={level}")
    command = [sys.executable, str(Path(__file__).parent), str(path), "--json", "-", "--contenders", "ptwm"]
    command += ["--only", "encode,decode,checks", "--rounds", str(args.rounds), "--budget", str(args.budget)]
    command += ["--core", str(args.core)]
    done = subprocess.run(command, env={**os.environ, "PTWM_CPU": level}, capture_output=True, text=True)
    try:
        result = json.loads(done.stdout)
        (entry,) = result["files"]
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines()
        return {"failure": lines[-1] if lines else f"exit status {done.returncode}"}
    missing = [contender["missing"] for contender in result["contenders"] if contender["missing"]]
    failures = [*missing, *entry["failures"].values()]
    return {"failure": failures[0] if failures else None, "ran": result["machine"]["ptwm_cpu"],
            "sections": entry["sections"], "figures": entry["figures"]}  # fmt: skip


def _clear(directory: Path) -> None:
    """Removes what a section has made."""
    for path in directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
