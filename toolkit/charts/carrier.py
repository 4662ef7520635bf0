"""Which figure of a notebook carries plotly.js, 4.8 MB, for all of them.

A kernel does not see the notebook, only what is run. So the first figure carries plotly.js, and
further ones refer to it for as long as nothing speaks against its output being there.
"""

from __future__ import annotations

import sys
from typing import Any


class Carriers:
    """The cell of each front end that showed plotly.js last, and in which of its runs.

    A front end sends one session id until its page is reloaded.

    >>> def run(session, cell, number, deleted=()):
    ...     return {"header": {"session": session, "msg_id": number}, "content": {},
    ...             "metadata": {"cellId": cell, "deletedCells": deleted}}
    >>> carriers = Carriers()
    >>> [carriers.take(run("page", cell, number)) for cell, number in ("a1", "a1", "b2")]
    [True, False, False]
    >>> carriers.forget_replaced(run("page", "a", 3))
    >>> carriers.take(run("page", "b", 4)), carriers.take(run("page reloaded", "c", 5))
    (True, True)
    """

    def __init__(self) -> None:
        self._runs: dict[str, tuple[str, object]] = {}

    def take(self, request: dict[str, Any]) -> bool:
        """Return whether a figure shown by this request is to carry plotly.js, and note that."""
        self.forget_replaced(request)
        session = request["header"]["session"]
        carries = session not in self._runs
        if carries:
            self._runs[session] = (_cell(request), request["header"]["msg_id"])
        return carries

    def forget_replaced(self, request: dict[str, Any]) -> None:
        """Forget a cell whose output this request replaces, or that was deleted before it."""
        session = request["header"]["session"]
        cell, run = self._runs.get(session, ("", None))
        again = cell == _cell(request) and run != request["header"]["msg_id"]
        if again or cell in request["metadata"].get("deletedCells", ()):
            self._runs.pop(session, None)


def _cell(request: dict[str, Any]) -> str:
    """Return the cell's id or, where the front end sends none, its code."""
    return str(request["metadata"].get("cellId") or request["content"].get("code", ""))


_CARRIERS = Carriers()


def ipython_shell() -> Any:
    """Return the shell of IPython, in a terminal or in a kernel, and None where there is none."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def in_kernel() -> bool:
    """Return whether this runs in a Jupyter kernel.

    >>> in_kernel()
    False
    """
    return hasattr(ipython_shell(), "kernel")


def carries_plotly() -> bool:
    """Return whether the figure that is shown now is to carry plotly.js.

    True where that cannot be known: outside a kernel, and where each output is a page of its own,
    as in Colab.

    >>> carries_plotly()
    True
    """
    shell = ipython_shell()
    if not hasattr(shell, "get_parent") or "google.colab" in sys.modules:
        return True
    shell.events.register("pre_run_cell", _before_a_run)
    return _CARRIERS.take(shell.get_parent())


def _before_a_run(_info: object) -> None:
    """Note what the run replaces, even where it shows no figure. IPython keeps each hook once."""
    _CARRIERS.forget_replaced(ipython_shell().get_parent())
