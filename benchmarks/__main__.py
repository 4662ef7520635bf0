"""Every benchmark of this folder in turn: ``python -m benchmarks [--quick]``."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run every module, also after one that failed; the highest exit code."""
    folder = Path(__file__).parent
    names = sorted(found.name for found in pkgutil.iter_modules([str(folder)]))
    worst = 0
    for name in names:
        if name.startswith("_"):
            continue
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]
        worst = max(worst, abs(subprocess.run(command, cwd=folder.parent, check=False).returncode))
    return worst


if __name__ == "__main__":
    sys.exit(main())
