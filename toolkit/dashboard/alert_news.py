"""A toast on any page for each alert that opened since the page was opened."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from streamlit import cache_data

from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import st
from toolkit.foreign import Markdown
from toolkit.store import Store
from toolkit.store.writing.alerts import read_alerts
from toolkit.tables import AlertChange

SHOWN = 500
"""Changes of alerts that the pages read at most, the newest."""

_SEEN = "alerts_seen"
_TOASTS = 3


@cache_data(max_entries=4, show_spinner=False)
def read_changes(path: Path, version: object) -> pl.DataFrame:
    """Read the newest changes of alerts, once for each version of the file."""
    del version
    return read_alerts(Store(path, wait_s=3.0), most=SHOWN)


def show_news(held: Held) -> None:
    """Show a toast for each alert that opened since this session last looked, a few at most."""
    changes = read_changes(held.path, held.version)
    newest = changes["change_id"].max()
    state = st.session_state
    about = (str(held.path), int(newest) if isinstance(newest, int) else 0)
    seen = state.get(_SEEN, about)
    state[_SEEN] = about
    if seen[0] != about[0]:
        return
    opened = (pl.col("change_id") > seen[1]) & (pl.col("change") == AlertChange.OPENED)
    news = changes.filter(opened)
    for words in news["words"].head(_TOASTS).reverse():
        st.toast(Markdown.harmless(words), duration="long")
    if news.height > _TOASTS:
        more = Markdown("{:,} alerts more").format(news.height - _TOASTS)
        st.toast(more, duration="long")
