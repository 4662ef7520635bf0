"""A console that prints foreign text safely."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from toolkit.foreign import plain


class Terminal(Console):
    r"""A console that reads no markup, and prints what is not printable as "�".

    A text printed by itself is one line. Only `rich.text.Text` has styles.

    >>> import io
    >>> file = io.StringIO()
    >>> Terminal(file=file).print("[/red] \x1b[2J\nrail: all is well")
    >>> file.getvalue()
    '[/red] �[2J rail: all is well\n'
    """

    def __init__(self, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None  # rich leaves out colours alone, and keeps bold and dim
        super().__init__(markup=False, emoji=False, highlight=False, soft_wrap=True, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as `rich.console.Console.print` does, a text as one line."""
        lines = [plain(each, _LONGEST) if isinstance(each, str) else each for each in objects]
        super().print(*lines, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything, without the control characters that are in its text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else _printable(text), style, control)


_LONGEST = 4_000
"""Characters of one line: a few findings or refusals in full."""


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)
