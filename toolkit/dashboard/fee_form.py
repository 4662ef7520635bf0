"""The form of one's own fees, which writes ``fees.toml``, and an upload of such a file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from toolkit.dashboard.fee_choice import OWN, FeeChoice, held_exchanges
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import st
from toolkit.errors import RailError
from toolkit.foreign import Markdown, markdown
from toolkit.market import Leg, Market
from toolkit.statistics.fees import FeeModel
from toolkit.workspace.user_files import FORM_FIELDS, fee_file, keep_fees, keep_table

_LABELS = {
    "maker_bps": "maker (bps)",
    "taker_bps": "taker (bps)",
    "slippage_bps": "slippage (bps)",
    "gas_quote": "gas per fill",
}
_LONG_AGO = dt.date(2017, 1, 1)
_OPEN, _FAULT = "fee_form_open", "fee_form_fault"


def offer_form(held: Held, choice: FeeChoice) -> None:
    """Show the button that opens the form, and the form once it was clicked."""
    if held.published:
        return
    state = st.session_state
    words = Markdown("My fees") if choice.own is None else Markdown("Change my fees")
    st.button(words, key="fee_form", on_click=state.__setitem__, args=(_OPEN, True))
    if state.pop(_OPEN, False):
        _form(held, choice.own)


def _form(held: Held, own: FeeModel | None) -> None:
    exchanges, path = held_exchanges(held), fee_file(held.path)

    @st.dialog(Markdown("My fees"), width="large")
    def form() -> None:
        st.caption(
            Markdown(
                "Per fill, in bps of the notional; slippage per round trip on the leg. An empty "
                "field is unknown, and net figures that need it say so. Written to {}."
            ).format(markdown(path.name))
        )
        before = {exchange: _in_force(own, exchange, held.now()) for exchange in exchanges}
        _fields(before)
        first, usual = _dates(own, held.now())
        since = st.date_input(
            Markdown("In force from (UTC)"), value=usual, min_value=first, key="fee_since"
        )
        st.button(
            Markdown("Save"),
            key="fee_save",
            type="primary",
            on_click=_save,
            args=(held, before, since),
        )
        uploaded = st.file_uploader(
            Markdown("Or a table that you have: a fees.toml"), type=["toml"], key="fee_upload"
        )
        if uploaded is not None:
            st.button(
                Markdown("Use this file"),
                key="fee_use",
                on_click=_use,
                args=(held, uploaded.getvalue()),
            )
        if fault := st.session_state.get(_FAULT):
            st.error(fault)

    form()


_PER_MARKET = Markdown("has fees of its own for each market: change them in the file")


def _in_force(own: FeeModel | None, exchange: str, now: int) -> dict[str, float | None] | None:
    """Return the fees of an exchange now, None where its markets have fees of their own."""
    fees = () if own is None else own.fees
    if any(fee.exchange == exchange and fee.market is not None for fee in fees):
        return None
    market = Market.DEX if _is_dex(exchange) else Market.SPOT
    known = None if own is None else own.in_force(Leg(exchange, market), now)
    return {field: getattr(known, field, None) for field in FORM_FIELDS}


def _dates(own: FeeModel | None, now: int) -> tuple[dt.date, dt.date]:
    """Return the first date from which new fees may be in force, and the usual one.

    Fees that begin before those of the table would not be in force now.
    """
    if own is None or not own.fees:
        return _LONG_AGO, _LONG_AGO
    today = dt.datetime.fromtimestamp(now, dt.UTC).date()
    newest = dt.datetime.fromtimestamp(max(fee.valid_from for fee in own.fees), dt.UTC).date()
    return newest, max(newest, today)


def _fields(before: Mapping[str, Mapping[str, float | None] | None]) -> None:
    for exchange, known in before.items():
        fees = [name for name in FORM_FIELDS if name != "gas_quote" or _is_dex(exchange)]
        name, *places = st.columns([1.3, *(1 for _ in fees)], vertical_alignment="bottom")
        with name:
            st.markdown(Markdown("**{}**").format(exchange))
            if known is None:
                st.caption(_PER_MARKET)
                continue
        for place, field in zip(places, fees, strict=True):
            with place:
                st.number_input(
                    Markdown.harmless(_LABELS[field]),
                    value=known[field],
                    step=0.1,
                    key=f"fee_{field}_{exchange}",
                )


def _is_dex(exchange: str) -> bool:
    return exchange.startswith("DEX-")


def _entered(state: Mapping[str, Any], exchange: str) -> dict[str, float | None]:
    return {field: state.get(f"fee_{field}_{exchange}") for field in FORM_FIELDS}


def _save(
    held: Held, before: Mapping[str, Mapping[str, float | None] | None], since: dt.date
) -> None:
    state = st.session_state
    since = state.get("fee_since", since)
    entered = {
        exchange: now
        for exchange, known in before.items()
        if known is not None and (now := _entered(state, exchange)) != known
    }
    _kept(lambda: keep_fees(held.path, entered, since))


def _use(held: Held, content: bytes) -> None:
    _kept(lambda: keep_table(held.path, content.decode("utf-8", "replace")))


def _kept(keep: Any) -> None:
    """Write the table and choose it. Where that fails the form stays open and says why."""
    state = st.session_state
    try:
        table: FeeModel = keep()
    except RailError as error:
        state[_FAULT], state[_OPEN] = Markdown.harmless(str(error)), True
        return
    state.pop(_FAULT, None)
    state["fees"] = OWN
    words = Markdown("Figures are net of {} now.")
    st.toast(words.format(markdown(table.name)), duration="short")
