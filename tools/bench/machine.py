"""What a result depends on besides the code: the machine, its state, versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def describe(packages: list[str]) -> dict[str, Any]:
    """The machine, and the versions of Python, of the packages (those installed) and of this repository."""
    return {
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "transparent_hugepages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "python": platform.python_version(),
        "versions": {name: version for name in packages if (version := _version(name))},
        "commit": _commit(),
        "ptwm_cpu": kernels(),
        "environment": {name: value for name, value in os.environ.items() if name.startswith("PTWM_")},
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "command": " ".join(["python", *sys.argv]),
    }


def kernels() -> str | None:
    """The instruction set that ptwm uses in this process."""
    try:
        from ptwm._library import ffi, lib

        return ffi.string(lib.ptwm_cpu_name()).decode()
    except Exception:  # not installed, or not built for this machine: the contender says so
        return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _commit() -> str | None:
    """This repository's commit, "+" if files differ from it."""
    try:
        git = ["git", "-C", str(REPOSITORY)]
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        status = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+" if status.stdout.strip() else "")
