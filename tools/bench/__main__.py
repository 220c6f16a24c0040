"""`python tools/bench FILE...`: makes this directory importable as the package `bench` and runs it."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Only as a package: as a directory on the path, its modules would hide others of the same names.
sys.path[:] = [str(HERE.parent), *(entry for entry in sys.path if Path(entry or ".").resolve() != HERE)]

from bench.cli import main  # noqa: E402

sys.exit(main())
