"""Operations in processes of their own, whose memory is measured from outside."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FLAG = "--child"


def measure(operation: str, path: Path, argument: str = "") -> dict[str, Any]:
    """Runs an operation of `run` in a new process.

    Gives its "seconds"; "peak_anonymous", the most anonymous memory beyond what the process had before it began (by
    sampling RssAnon, so short peaks may be missed); "kept_anonymous", the same once it was done; and "peak_rss", the
    exact peak of all resident memory, the pages of mapped files included. In bytes; None where /proc does not tell.
    """
    command = [sys.executable, str(HERE), FLAG, operation, str(path), argument]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        if process.stdout.readline().strip() != "ready":
            return {"failure": _last_line(process)}
        before = _status(process.pid)
        samples: list[int] = []
        done = threading.Event()

        def sample() -> None:
            while not done.is_set():
                samples.append(_status(process.pid).get("RssAnon", 0))
                time.sleep(0.0002)

        sampler = threading.Thread(target=sample)
        sampler.start()
        process.stdin.write("go\n")
        process.stdin.flush()
        line = process.stdout.readline()
        done.set()
        sampler.join()
        after = _status(process.pid)
        if not line:
            return {"failure": _last_line(process)}
        result = json.loads(line)
        process.stdin.write("end\n")
        process.stdin.flush()
    if before and after:
        result["peak_anonymous"] = max(*samples, after["RssAnon"]) - before["RssAnon"]
        result["kept_anonymous"] = after["RssAnon"] - before["RssAnon"]
        result["peak_rss"] = after["VmHWM"] - before["VmRSS"]
    return result


def main(operation: str, path: str, argument: str) -> None:
    """The new process's side."""
    function = _prepare(operation, Path(path), argument)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    kept = function()
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds}), flush=True)
    sys.stdin.readline()
    del kept


def _prepare(operation: str, path: Path, argument: str) -> Callable[[], Any]:
    """An operation, ready to be run: its modules are imported and small things done once."""
    from bench.sections import memory, scaling

    verb, _, what = operation.partition(" ")
    if verb == "open":
        return lambda: scaling.open_and_keep(what, path, argument)
    return memory.prepare(verb, what, path, argument)


def _status(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    fields = (line.split() for line in lines if line.endswith(" kB"))
    return {field[0].rstrip(":"): int(field[1]) * 1024 for field in fields}


def _last_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    lines = process.stderr.read().strip().splitlines()
    return lines[-1] if lines else f"exit status {process.wait()}"
