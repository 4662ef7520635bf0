"""Writes the committed miniature market anew, or to the file that is named."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.service.miniature import PATH, write

_path = Path(sys.argv[1]) if sys.argv[1:] else PATH
sys.stdout.write(f"{_path.name}: {write(_path)} bytes\n")
