"""The fee table of all pages: its choice, that of a style, and the form that writes it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolkit.dashboard.choice import Picked, Switch
from toolkit.dashboard.export import literal
from toolkit.dashboard.reading import StoreState
from toolkit.dashboard.widgets import st
from toolkit.errors import InputError, RailError
from toolkit.foreign import Markdown, markdown
from toolkit.market import Leg, Market, SnapshotTrajectory, Stream, Trajectory
from toolkit.statistics.fees import NOTIONAL, FeeModel, Style
from toolkit.statistics.spread.net_episodes import LEVEL_BPS, Level
from toolkit.workspace import find_fees
from toolkit.workspace.user_files import FORM_FIELDS, fee_file, keep_fees, keep_table

HELD_STYLES = ("taker", "maker", "maker_buy", "maker_sell")
"""The styles that hold a position, as funding needs it."""

OWN = "own"
"""The user's own table."""

_NONE, _OWN, _EXAMPLE = "none", OWN, "example"
_STYLES = {
    "taker": "taker: four fills",
    "maker": "maker: four fills",
    "maker_buy": "maker on the leg bought",
    "maker_sell": "maker on the leg sold",
    "prefunded": "held on both sides: two fills",
    "transfer": "bought, withdrawn, sold",
}


FEES = (
    Picked("fees", Markdown("Net of fees"), _NONE),
    Picked("style", Markdown("Style"), "taker", allowed=_STYLES),
)


@dataclass(frozen=True, slots=True)
class Net:
    """The costs of net figures: a table, a style, and the notional of each leg."""

    fees: FeeModel
    style: Style
    notional: float = NOTIONAL

    @property
    def words(self) -> Markdown:
        """The table's name and hash, the style and the notional."""
        return Markdown("Net of the fee table {} ({}), style {}, notional {:,.0f} per leg.").format(
            markdown(self.fees.name), self.fees.hash, self.style, self.notional
        )


def python_costs(fees: FeeModel, style: Style, notional: float = NOTIONAL) -> list[str]:
    """Return the arguments of the same net figures in Python, which takes the user's table.

    >>> python_costs(FeeModel.example(["X"]), "maker")
    ['fees=tk.statistics.fees.FeeModel.example(["X"])', 'style="maker"']
    """
    exchanges = sorted({fee.exchange for fee in fees.fees})
    example = fees.hash == FeeModel.example(exchanges).hash
    given = [f"fees=tk.statistics.fees.FeeModel.example({literal(exchanges)})"] if example else []
    given.append(f"style={literal(style)}")
    return [*given, *([] if notional == NOTIONAL else [f"notional={notional:.15g}"])]


def either_switch(key: str) -> Switch:
    """Return the choice of whether a level is of the spread's size."""
    about = {"help": Markdown("The size of the spread, on either side of zero.")}
    label, words = Markdown("Of |spread|"), {"on": "either", "off": "above"}
    return Switch("side", label, usual=False, key=key, looks=about, **words)


def level_of(net: Net | None, bps: float | None, *, either: bool) -> Level:
    """Return the level of a spread: the cost of a round trip with fees, else bps.

    ``either`` is whether bps are of the spread's size. The default is `LEVEL_BPS`.
    """
    if net is None:
        return Level(LEVEL_BPS if bps is None else bps, either)
    return Level(fees=net.fees, style=net.style, notional=net.notional)


def held_exchanges(held: StoreState) -> list[str]:
    """Return the exchanges of all stored legs, sorted."""
    streams = map(Stream.parse, held.streams["stream"])
    legged = [s for s in streams if isinstance(s, Trajectory | SnapshotTrajectory)]
    return sorted({leg.exchange for stream in legged for leg in stream.legs})


@dataclass(frozen=True, slots=True)
class FeeChoice:
    """The widgets, with the tables that they offer."""

    tables: Mapping[str, FeeModel | None]

    @classmethod
    def of(cls, held: StoreState) -> FeeChoice:
        """Offer no table, the user's if any, and the EXAMPLE. Warn of one that cannot be read."""
        tables: dict[str, FeeModel | None] = {_NONE: None}
        try:
            own = find_fees(held.path)
        except InputError as error:
            st.warning(Markdown.harmless(str(error)))
            own = None
        if own is not None:
            tables[_OWN] = own
        tables[_EXAMPLE] = FeeModel.example(held_exchanges(held))
        return cls(tables)

    @property
    def own(self) -> FeeModel | None:
        """The user's table, None without one."""
        return self.tables.get(_OWN)

    @property
    def given(self) -> dict[str, dict[str, Any]]:
        """What a run knows of `FEES`: the tables with their labels, and the usual one."""
        words = {_NONE: "no: gross figures alone"}
        if self.own is not None:
            words[_OWN] = f"by the table of the settings: {self.own.name}"
        words[_EXAMPLE] = "by EXAMPLE values"
        return {"fees": {"allowed": words, "usual": _OWN if self.own is not None else _NONE}}

    @property
    def label(self) -> Markdown:
        """The choice in two words."""
        fees, style = self.tables.get(st.session_state["fees"]), st.session_state["style"]
        return Markdown("Gross") if fees is None else Markdown("Net, {}").format(style)

    def net(self, styles: Collection[str] = tuple(_STYLES)) -> Net | None:
        """Return the choice, None for gross figures alone.

        A style outside ``styles`` is replaced by taker, with a warning.
        """
        fees, style = self.tables[st.session_state["fees"]], st.session_state["style"]
        if fees is None:
            return None
        if style not in styles:
            words = Markdown("The style {} holds no position, so net figures here are of taker.")
            st.warning(words.format(markdown(style)))
            style = "taker"
        return Net(fees, cast("Style", style))


_LABELS = {
    "maker_bps": "maker (bps)",
    "taker_bps": "taker (bps)",
    "slippage_bps": "slippage (bps)",
    "gas_quote": "gas per fill",
}
_LONG_AGO = dt.date(2017, 1, 1)
_OPEN, _FAULT = "fee_form_open", "fee_form_fault"


def offer_form(held: StoreState, choice: FeeChoice) -> None:
    """Show the button of the form of your own fees, and the form after a click."""
    if held.published:
        return
    state = st.session_state
    words = Markdown("My fees") if choice.own is None else Markdown("Change my fees")
    st.button(words, key="fee_form", on_click=state.__setitem__, args=(_OPEN, True))
    if state.pop(_OPEN, False):
        _form(held, choice.own)


def _form(held: StoreState, own: FeeModel | None) -> None:
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
    """Return the fees of an exchange now, None if they differ by market."""
    fees = () if own is None else own.fees
    if any(fee.exchange == exchange and fee.market is not None for fee in fees):
        return None
    market = Market.DEX if _is_dex(exchange) else Market.SPOT
    known = None if own is None else own.in_force(Leg(exchange, market), now)
    return {field: getattr(known, field, None) for field in FORM_FIELDS}


def _dates(own: FeeModel | None, now: int) -> tuple[dt.date, dt.date]:
    """Return the earliest date of new fees, which is the newest of the table, and the usual one."""
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


def _save(
    held: StoreState, before: Mapping[str, Mapping[str, float | None] | None], since: dt.date
) -> None:
    state = st.session_state
    since = state.get("fee_since", since)
    entered = {
        exchange: now
        for exchange, known in before.items()
        if known is not None
        and (now := {field: state.get(f"fee_{field}_{exchange}") for field in FORM_FIELDS}) != known
    }
    _kept(lambda: keep_fees(held.path, entered, since))


def _use(held: StoreState, content: bytes) -> None:
    _kept(lambda: keep_table(held.path, content.decode("utf-8", "replace")))


def _kept(keep: Any) -> None:
    """Write the table and choose it. If that fails the form stays open and says why."""
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
