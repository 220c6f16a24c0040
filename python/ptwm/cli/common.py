"""What the commands share: failures, exit statuses, sizes for people, progress, and where the results go."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ptwm._safetensors import quoted

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 128 + 2  # SIGINT
EXIT_BROKEN_PIPE = 128 + 13  # SIGPIPE


class Failure(Exception):
    """The command failed for a reason that its one-line message explains in full."""


# ------------------------------------------------------------------------------------------------- running commands


def run_command(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a command and turn whatever it raises into one line on stderr and an exit status."""
    try:
        status = run(args)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if _signals:  # its exception was raised in a callback of the library, where it became a failure like any other
            return 128 + _signals[0]
        if os.environ.get("PTWM_DEBUG"):
            traceback.print_exc()
        complain(describe_error(error))
        with suppress(OSError):
            sys.stdout.flush()
        return EXIT_FAILED


def describe_error(error: Exception) -> str:
    """An exception as a phrase for people."""
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, (Failure, ValueError, OSError)):
        return str(error) or type(error).__name__
    return f"internal error, please report it: {type(error).__name__}: {error}"


def complain(message: str) -> None:
    """Print one line on stderr, whatever the message holds."""
    print("ptwm: " + on_one_line(message), file=sys.stderr)


def say(message: str) -> None:
    """Print one line on stdout, whatever the message holds."""
    print(on_one_line(message))


def on_one_line(text: object) -> str:
    """The text with line breaks, terminal escapes and other unprintable characters written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(text))


def _discard_stdout() -> None:
    # What is still buffered would raise again when the interpreter flushes at exit.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def prepare_process() -> None:
    """Let names of any kind be printed, and let signals end the process in good order, its partial files removed."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _exit_on_signal)


_signals: list[int] = []


def _exit_on_signal(number: int, frame: object) -> None:
    _signals.append(number)
    raise SystemExit(128 + number)


# ------------------------------------------------------------------------------------------------------------ sizes

_SIZE = re.compile(r"(\d+)\s*(?:([KMG])(i?B)?|B)?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes from 65536, 64K, 64KiB (binary, as GNU tools have it) or 64kB (decimal). For argparse's type=."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise argparse.ArgumentTypeError(f"not a size: {text!r} (examples: 65536, 64K, 1MiB)")
    number, prefix, unit = match.groups()
    base = 1000 if unit and unit.lower() == "b" else 1024
    return int(number) * base ** (" KMG".index(prefix.upper()) if prefix else 0)


def parse_count(text: str) -> int:
    """An integer that is not negative. For argparse's type=."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"not a count: {text!r}")
    return int(text)


def human_size(nbytes: float) -> str:
    """Three digits and a decimal unit: 0 B, 999 B, 1.50 kB, 90.9 MB."""
    if nbytes < 999.5:
        return f"{nbytes:.0f} B"
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        nbytes /= 1000
        if nbytes < 999.5:
            break
    digits = 2 if nbytes < 9.995 else 1 if nbytes < 99.95 else 0
    return f"{nbytes:.{digits}f} {unit}"


def human_ratio(stored: int, raw: int) -> str:
    """stored / raw as a percentage; a dash for nothing at all."""
    return f"{100 * stored / raw:.1f} %" if raw else "-"


def human_rate(nbytes: int, seconds: float) -> str:
    return human_size(nbytes / max(seconds, 1e-9)) + "/s"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


# --------------------------------------------------------------------------------------------------------- progress


@contextmanager
def progress(total: int, label: str) -> Iterator[Callable[[int], object]]:
    """A bar on stderr, if that is a terminal. Yields the function that takes the bytes done since the last call."""
    if not sys.stderr.isatty():
        yield lambda nbytes: None
        return
    from tqdm import tqdm

    label = on_one_line(label)
    with tqdm(total=total, desc=label, unit="B", unit_scale=True, leave=False, dynamic_ncols=True) as bar:
        yield bar.update


# ---------------------------------------------------------------------------------------------- sources and targets


def plan_targets(
    sources: Sequence[str], target: str | None, suffixes: tuple[str, str], force: bool
) -> list[tuple[str, str]]:
    """Pair each source with the path of its result, and refuse what cannot work before any work is done.

    suffixes are the source's and the result's. target is a file, or a directory, or None: beside the source.
    """
    pairs = [(source, _target_path(source, target, suffixes, len(sources) > 1)) for source in sources]
    owners: dict[str, str] = {}
    for source, path in pairs:
        _check_source(source)
        _check_target(source, path, force)
        real = os.path.realpath(path)
        if real in owners:
            raise Failure(f"{path}: would be the result of both {owners[real]} and {source}")
        owners[real] = source
    return pairs


def _target_path(source: str, target: str | None, suffixes: tuple[str, str], must_be_directory: bool) -> str:
    stem = source[: -len(suffixes[0])] if source.endswith(suffixes[0]) else source
    if target is None:
        return stem + suffixes[1]
    if os.path.isdir(target):
        return os.path.join(target, os.path.basename(stem) + suffixes[1])
    if must_be_directory or target.endswith(os.sep):
        raise Failure(f"{target}: not a directory" if os.path.lexists(target) else f"{target}: no such directory")
    return target


def _check_source(source: str) -> None:
    mode = os.stat(source).st_mode
    if stat.S_ISDIR(mode):
        raise Failure(f"{source}: is a directory; name the files in it")
    if not stat.S_ISREG(mode):
        raise Failure(f"{source}: not a regular file")


def _check_target(source: str, path: str, force: bool) -> None:
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise Failure(f"{path}: no such directory")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise Failure(f"{path}: exists and is not a regular file")
    if os.path.samefile(source, path):
        raise Failure(f"{path}: is both the source and the target")
    if not force:
        raise Failure(f"{path}: already exists; -f replaces it")


def no_such_tensor(path: str, name: str, names: Iterable[str]) -> Failure:
    """A Failure that suggests what may have been meant."""
    close = difflib.get_close_matches(name, list(names), n=1)
    hint = f"; did you mean {quoted(close[0])}?" if close else ""
    return Failure(f"{path}: no tensor {quoted(name)}{hint}")


def table(rows: Sequence[Sequence[Any]], align: str) -> Iterator[str]:
    """Lines of columns, each as wide as its widest cell; align has one of < and > for each."""
    cells = [[on_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, align, widths)).rstrip()
