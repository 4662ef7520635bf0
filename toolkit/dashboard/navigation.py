"""The pages by name, and the way from one to another with what the other is to show."""

from __future__ import annotations

from pathlib import Path

from streamlit import switch_page

PAGES = {
    "overview": "Overview",
    "symbol": "Symbol",
    "spreads": "Spreads",
    "trajectory": "Trajectory",
    "funding": "Funding",
    "events": "Events",
    "alerts": "Alerts",
    "health": "Data health",
}
"""The pages in order: the name in the address, and the title."""


def page_file(name: str) -> str:
    """Return the absolute path of the page's script, which works without a checkout.

    >>> Path(page_file("spreads")).parts[-2:]
    ('spreads', 'page.py')
    """
    return str(Path(__file__).with_name("pages") / name / "page.py")


def go_to(name: str, **asked: str) -> None:
    """Leave for another page, which then shows what its link's parameters ask for.

    The clock goes along by itself. Ends the run of the script.
    """
    switch_page(page_file(name), query_params=asked)
