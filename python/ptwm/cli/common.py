"""What the commands share: failures, exit statuses, and what they say."""

from __future__ import annotations

import argparse
import difflib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress

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
    if isinstance(error, FileExistsError):
        return f"{error.filename}: {error.strerror}; -f replaces it"
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


def write_stdout(data: bytes | bytearray) -> None:
    """Write bytes to stdout, all of them."""
    # One write may be a short one: under PYTHONUNBUFFERED the stream is the bare file descriptor.
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


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


def no_such_tensor(path: str, name: str, names: Iterable[str]) -> Failure:
    """A Failure that suggests what may have been meant."""
    close = difflib.get_close_matches(name, list(names), n=1)
    hint = f"; did you mean {quoted(close[0])}?" if close else ""
    return Failure(f"{path}: no tensor {quoted(name)}{hint}")
