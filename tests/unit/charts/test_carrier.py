"""Which figure carries plotly.js: one for a notebook, and again once that one may be gone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from toolkit.charts.figure import Carriers

RUNS = itertools.count()


def request(cell: str | None, *, session: str = "page", deleted: tuple[str, ...] = ()) -> Any:
    """What a front end sends to run a cell; one without ids of cells sends its code alone."""
    known = {"cellId": cell, "deletedCells": list(deleted)} if cell else {}
    return {
        "header": {"session": session, "msg_id": next(RUNS)},
        "metadata": known,
        "content": {"code": "show()"},
    }


def test_the_first_figure_carries_it_and_again_where_its_cell_runs_again() -> None:
    carriers, run = Carriers(), request("a")
    assert [carriers.take(run), carriers.take(run), carriers.take(request("b"))] == [
        True,
        False,
        False,
    ]
    carriers = Carriers()
    assert [carriers.take(request(cell)) for cell in "abaab"] == [True, False, True, True, False]


def test_a_carrier_without_a_figure_or_deleted_hands_over_to_the_next() -> None:
    carriers = Carriers()
    assert carriers.take(request("a"))
    carriers.forget_replaced(request("a"))
    assert [carriers.take(request("b")), carriers.take(request("c"))] == [True, False]
    carriers = Carriers()
    assert carriers.take(request("a"))
    carriers.forget_replaced(request("b", deleted=("c",)))
    assert not carriers.take(request("b"))
    carriers.forget_replaced(request("b", deleted=("a",)))
    assert carriers.take(request("c"))


def test_each_page_over_a_kernel_has_its_own_carrier() -> None:
    carriers = Carriers()
    pages = ["one", "two", "one", "two", "one reloaded"]
    cells = zip("abcde", pages, strict=True)
    carried = [carriers.take(request(cell, session=page)) for cell, page in cells]
    assert carried == [True, True, False, False, True]


def test_where_cells_have_no_ids_the_same_code_is_the_same_cell() -> None:
    carriers = Carriers()
    other = request(None) | {"content": {"code": "other()"}}
    assert [carriers.take(run) for run in (request(None), other, request(None))] == [
        True,
        False,
        True,
    ]


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """The client of a kernel as Jupyter starts it, plotly's renderer not set."""
    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def shown(client: Any, code: str, cell: str) -> list[dict[str, Any]]:
    """What a kernel shows for a cell, run as JupyterLab does."""
    content = {"code": code, "silent": False, "store_history": True, "stop_on_error": True}
    message = client.session.msg("execute_request", content, metadata={"cellId": cell})
    client.shell_channel.send(message)
    found = []
    while True:
        answer = client.get_iopub_msg(timeout=60)
        if answer["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        if answer["msg_type"] in {"display_data", "execute_result"}:
            found.append(answer["content"]["data"])
        assert answer["msg_type"] not in {"error", "stream"}, answer["content"]
        if answer["content"].get("execution_state") == "idle":
            return found


@pytest.mark.slow
def test_a_kernel_without_nbformat_and_widgets_shows_one_figure_with_plotly_and_further_without(
    kernel: Any,
) -> None:
    first = """
import sys
sys.modules |= {"nbformat": None, "ipywidgets": None, "anywidget": None}
from toolkit.charts import Figure
figure = Figure(layout={"title": {"text": "one"}})
figure
"""
    runs = [(first, "a"), ("figure.show()\nfigure", "b"), ("1", "a"), ("figure", "c")]
    forms = [form for code, cell in runs for form in shown(kernel, code, cell)]
    figures = [form for form in forms if "text/html" in form]
    names = {"application/vnd.plotly.v1+json", "text/html", "text/plain"}
    assert [set(form) for form in figures] == [names] * 4
    sizes = [len(form["text/html"]) for form in figures]
    assert [size > 4_000_000 for size in sizes] == [True, False, False, True]
