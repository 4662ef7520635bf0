"""A plotly figure that shows itself wherever a notebook is looked at."""

from __future__ import annotations

import json
import re
import sys
import uuid
from html import unescape
from importlib.resources import files
from typing import Any, Self

import plotly.graph_objects as go
import plotly.io as pio
from plotly.offline import get_plotlyjs

from toolkit.charts.theme import follows_viewer, template_name
from toolkit.foreign import html, plain


class Carriers:
    """The cell of each front end that showed plotly.js last, and its run.

    A front end has one session id until a reload.
    """

    def __init__(self) -> None:
        self._runs: dict[str, tuple[str, object]] = {}

    def take(self, request: dict[str, Any]) -> bool:
        """Return whether a figure shown by this request must carry plotly.js, and note that."""
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
    """Return the cell's id or, if the front end sends none, its code."""
    return str(request["metadata"].get("cellId") or request["content"].get("code", ""))


_CARRIERS = Carriers()


def ipython_shell() -> Any:
    """Return IPython's shell, of a terminal or a kernel, or None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def in_kernel() -> bool:
    """Return whether this runs in a Jupyter kernel."""
    return hasattr(ipython_shell(), "kernel")


def carries_plotly() -> bool:
    """Return whether the figure shown now must carry plotly.js.

    True outside a kernel, and in Colab, where each output is a page of its own.
    """
    shell = ipython_shell()
    if not hasattr(shell, "get_parent") or "google.colab" in sys.modules:
        return True
    shell.events.register("pre_run_cell", _before_a_run)
    return _CARRIERS.take(shell.get_parent())


def _before_a_run(_info: object) -> None:
    """Note what the run replaces. IPython keeps each hook once."""
    _CARRIERS.forget_replaced(ipython_shell().get_parent())


_CONFIG = {"displaylogo": False, "showSendToCloud": False}
_DEFAULT_PX = 450
_UNDRAWN = (
    "{}: an interactive figure. It shows where scripts run: in Jupyter, trust the notebook or run "
    "this cell."
)
_WITHOUT_PLOTLY = (
    "{}: the output that carried plotly.js for this notebook is gone. Reload the notebook, then "
    "run this cell again."
)


class Figure(go.Figure):  # type: ignore[misc]  # plotly ships no types
    """A `plotly.graph_objects.Figure` that every notebook shows, without extension or network.

    Whatever plotly's renderer, it offers three forms: plotly's JSON, HTML with scripts, and its
    title as text.

    plotly.js (4.8 MB) is in the HTML of a notebook's first figure, and is sent again when that cell
    is run again or deleted, after a reload, and in a new kernel. If that output is cleared by hand,
    the other figures become a sentence on what to do once the notebook is closed. Outside a kernel,
    and in Colab, each figure carries plotly.js.

    With the template ``rail``, the default of charts, the HTML follows the page's light or dark
    theme (JupyterLab, VS Code, exported HTML), elsewhere the browser's. Other templates fix the
    colours. A front end that draws the JSON itself draws ``rail`` light.

    Examples
    --------
    >>> figure = Figure(go.Bar(x=["a"], y=[1]), layout={"title": {"text": "Rows"}})
    >>> shown = figure._repr_mimebundle_()
    >>> list(shown), shown["text/plain"]
    (['application/vnd.plotly.v1+json', 'text/html', 'text/plain'], 'Figure: Rows')
    >>> isinstance(figure, go.Figure), isinstance(figure.update_layout(template="rail"), Figure)
    (True, True)
    """

    def _repr_mimebundle_(self, *_wanted: object, **_more: object) -> dict[str, Any]:
        """Build the three forms. IPython chooses among them."""
        return {
            "application/vnd.plotly.v1+json": json.loads(self.to_json()) | {"config": _CONFIG},
            "text/html": self.drawing_html(carries=carries_plotly()),
            "text/plain": f"Figure: {self.title_words}",
        }

    def _repr_html_(self) -> str:
        """Build the HTML with plotly.js."""
        return self.drawing_html(carries=True)

    def _ipython_display_(self) -> None:
        """Leave the form to IPython. In its terminal open a browser, as plotly does."""
        if in_kernel() or ipython_shell() is None:
            raise NotImplementedError
        super()._ipython_display_()

    def show(self, *args: Any, **kwargs: Any) -> Any:
        """Show the figure below the cell, with arguments or outside a kernel as plotly does."""
        if args or kwargs or not in_kernel():
            return super().show(*args, **kwargs)
        return sys.modules["IPython"].display.display(self)

    def update_layout(self, *args: Any, **kwargs: Any) -> Self:
        """Change the layout as plotly does, and return this figure."""
        super().update_layout(*args, **kwargs)
        return self

    @property
    def words(self) -> str:
        """The heading in one line, as alternative text: title and lines.

        >>> Figure(layout={"title": {"text": "Rows", "subtitle": {"text": "n = 1<br>UTC"}}}).words
        'Rows, n = 1, UTC'
        """
        return ", ".join([self.title_words, *self.lines])

    @property
    def lines(self) -> list[str]:
        """The lines below the title: subject, basis and source.

        >>> Figure(layout={"title": {"text": "Rows", "subtitle": {"text": "n = 1<br>UTC"}}}).lines
        ['n = 1', 'UTC']
        """
        below = (self.layout.title.subtitle.text or "").split("<br>")
        return [plain(unescape(line)) for line in below if line]

    @property
    def title_words(self) -> str:
        """The title or, without one, the sentence of a figure without data."""
        notes = [note.text for note in self.layout.annotations]
        text = next(filter(None, [self.layout.title.text, *notes]), "without a title")
        return plain(unescape(re.sub("<[^>]*>", " ", text)))

    def drawing_html(
        self, *, carries: bool, identity: str = "", without_plotly: str = _WITHOUT_PLOTLY
    ) -> str:
        """Build the HTML: a sentence, and the scripts that replace it by the figure.

        ``carries``: with plotly.js. ``identity`` is its element's id, by default unique.
        ``without_plotly`` is the sentence without plotly.js, ``{}`` for the title.
        """
        title = self.title_words
        given = {
            "id": identity or f"rail-{uuid.uuid4()}",
            "config": _CONFIG,
            "without_plotly": without_plotly.format(title),
            "dark": None,
        }
        if follows_viewer(self):
            given["dark"] = pio.templates[template_name("dark")].to_plotly_json()
        # No text can end the script it is in.
        texts = [json.dumps(given)[:-1], self.to_json()[1:]]
        figure = ", ".join(texts).replace("<", "\\u003c")
        plotly = f"<script>{PLOTLY_SETTINGS}{get_plotlyjs()}</script>" if carries else ""
        return (
            f'<div class="rail-figure" id="{given["id"]}" '
            f'style="width:100%;min-height:{self.layout.height or _DEFAULT_PX}px">'
            f"<p>{html(_UNDRAWN.format(title))}</p>"
            f"{plotly}<script>{_DRAW}({figure});</script></div>"
        )


_DRAW = files("toolkit.charts").joinpath("figure.js").read_text(encoding="utf-8").strip()
PLOTLY_SETTINGS = "window.PlotlyConfig = {MathJaxConfig: 'local'};"
"""Keep the page's own MathJax, if any, and load none."""
