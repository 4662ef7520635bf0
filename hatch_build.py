"""The README as a package index shows it: there, nothing lies beside it to show or to link to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]+\)")
_WHERE = "The source distribution has the documents named here, and this text with its pictures."


class IndexReadme(MetadataHookInterface):
    """Gives the package the README without pictures, and without links to files of the checkout."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme of the package's metadata."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = _LINK.sub(r"\1", _PICTURE.sub("", readme))
        text = f"{text.rstrip()}\n\n{_WHERE}\n"
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
