"""The choice of a fee table for all pages: that of the settings or the EXAMPLE, and a style."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

from toolkit.dashboard.export import literal
from toolkit.dashboard.link import read_option
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import st
from toolkit.errors import InputError
from toolkit.foreign import Markdown, markdown
from toolkit.market import SnapshotTrajectory, Stream, Trajectory
from toolkit.statistics.fees import NOTIONAL, FeeModel, Style
from toolkit.statistics.spread.net_episodes import LEVEL_BPS, Level
from toolkit.workspace import find_fees

HELD_STYLES = ("taker", "maker", "maker_buy", "maker_sell")
"""The styles in which a position is held, as funding needs it."""

OWN = "own"
"""The choice of the user's own table."""

_NONE, _OWN, _EXAMPLE = "none", OWN, "example"
_STYLES = {
    "taker": "taker: four fills",
    "maker": "maker: four fills",
    "maker_buy": "maker on the leg bought",
    "maker_sell": "maker on the leg sold",
    "prefunded": "held on both sides: two fills",
    "transfer": "bought, withdrawn, sold",
}


@dataclass(frozen=True, slots=True)
class Net:
    """What net figures are computed by: a table, a style, and the notional of each leg."""

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
    """Return the arguments by which Python computes the same net figures.

    Without ``fees`` the table of the settings is taken.

    >>> python_costs(FeeModel.example(["X"]), "maker")
    ['fees=tk.statistics.fees.FeeModel.example(["X"])', 'style="maker"']
    """
    exchanges = sorted({fee.exchange for fee in fees.fees})
    example = fees.hash == FeeModel.example(exchanges).hash
    given = [f"fees=tk.statistics.fees.FeeModel.example({literal(exchanges)})"] if example else []
    given.append(f"style={literal(style)}")
    return [*given, *([] if notional == NOTIONAL else [f"notional={notional:.15g}"])]


def level_of(net: Net | None, bps: float | None, *, either: bool) -> Level:
    """Return from where on a spread counts: the cost of a round trip with fees, else some bps.

    ``either`` is whether bps are of its size. Without any it is `LEVEL_BPS`.

    >>> level_of(None, None, either=False).words
    '≥ 20 bps'
    """
    if net is None:
        return Level(LEVEL_BPS if bps is None else bps, either)
    return Level(fees=net.fees, style=net.style, notional=net.notional)


def held_exchanges(held: Held) -> list[str]:
    """Return the exchanges of all legs that the store holds, sorted."""
    streams = map(Stream.parse, held.streams["stream"])
    legged = [s for s in streams if isinstance(s, Trajectory | SnapshotTrajectory)]
    return sorted({leg.exchange for stream in legged for leg in stream.legs})


@dataclass(frozen=True, slots=True)
class FeeChoice:
    """The widgets: which tables they offer."""

    tables: Mapping[str, FeeModel | None]

    @classmethod
    def of(cls, held: Held) -> FeeChoice:
        """Offer no table, that of the settings where there is one, and the EXAMPLE.

        A table of the settings that cannot be read is shown as a warning and not offered.
        """
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
        """The table of the settings, None without one."""
        return self.tables.get(_OWN)

    @property
    def _usual(self) -> str:
        return _OWN if _OWN in self.tables else _NONE

    def follow(self, params: Mapping[str, str], faults: list[Markdown]) -> None:
        """Fill the widgets from a link."""
        state = st.session_state
        state["fees"] = read_option(dict(params), "fees", self.tables, self._usual, faults)
        state["style"] = read_option(dict(params), "style", _STYLES, "taker", faults)

    @property
    def label(self) -> Markdown:
        """The choice in two words."""
        fees, style = self.tables.get(st.session_state["fees"]), st.session_state["style"]
        return Markdown("Gross") if fees is None else Markdown("Net, {}").format(style)

    def choose(self) -> None:
        """Draw the widgets."""
        if st.session_state["fees"] not in self.tables:
            st.session_state["fees"] = self._usual
        words = {_NONE: "no: gross figures alone", _EXAMPLE: "by EXAMPLE values"}
        if own := self.tables.get(_OWN):
            words[_OWN] = f"by the table of the settings: {own.name}"
        st.selectbox(
            Markdown("Net of fees"),
            list(self.tables),
            key="fees",
            format_func=words.__getitem__,
            persist_state="session",
        )
        st.selectbox(
            Markdown("Style"),
            list(_STYLES),
            key="style",
            format_func=_STYLES.__getitem__,
            persist_state="session",
        )

    def net(self, styles: Collection[str] = tuple(_STYLES)) -> Net | None:
        """Return what is chosen, None for gross figures alone.

        In place of a style that is none of ``styles`` it is taker, and the page says so.
        """
        fees, style = self.tables[st.session_state["fees"]], st.session_state["style"]
        if fees is None:
            return None
        if style not in styles:
            words = Markdown("The style {} holds no position, so net figures here are of taker.")
            st.warning(words.format(markdown(style)))
            style = "taker"
        return Net(fees, cast("Style", style))

    @property
    def params(self) -> dict[str, str]:
        """The widgets' values that are not the usual ones, as parameters of a link."""
        usual = {"fees": self._usual, "style": "taker"}
        chosen = {name: st.session_state[name] for name in usual}
        return {name: value for name, value in chosen.items() if value != usual[name]}
