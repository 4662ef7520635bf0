"""Cards of objects as text and HTML, as IPython asks for them, and words for figures."""

from __future__ import annotations

import math
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import InputError
from toolkit.foreign import Html, plain

_ROWS = 10
_ROW = Html(
    '<tr style="background:none"><th scope="row" style="text-align:left;vertical-align:top;'
    "padding:1px 1em 1px 0;border:0;background:none;font-weight:normal;opacity:0.75;"
    'white-space:nowrap">{}</th><td style="text-align:left;vertical-align:top;'
    'padding:1px 1em 1px 0;border:0;background:none">{}</td></tr>'
)
_CARD = Html(
    '<div><b>{}</b><table style="border-collapse:collapse;border:0;margin:2px 0 0 0;'
    'font-variant-numeric:tabular-nums"><tbody>{}</tbody></table></div>'
)


@dataclass(frozen=True, slots=True)
class Card:
    """A heading and facts, each a name and its value. Of more than ten, nine are shown.

    >>> card = Card("Store <rail.duckdb>", [("rows", "1,000"), ("size", "2 MB")])
    >>> print(card)
    Store <rail.duckdb>
      rows  1,000
      size  2 MB
    >>> card.html[:42]
    '<div><b>Store &lt;rail.duckdb&gt;</b><tabl'
    """

    heading: str
    facts: Sequence[tuple[str, str]]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """At most ten facts, the last one with the number left out.

        >>> Card("", [(f"symbol {n}", "") for n in range(12)]).shown[-1]
        ('…', '3 more')
        """
        facts = [(plain(name), plain(fact)) for name, fact in self.facts]
        left_out = len(facts) - (_ROWS - 1)
        return facts if len(facts) <= _ROWS else [*facts[: _ROWS - 1], ("…", f"{left_out:,} more")]

    def __str__(self) -> str:
        width = max((len(name) for name, _ in self.shown), default=0)
        return "\n".join(
            [plain(self.heading), *(f"  {name:<{width}}  {fact}" for name, fact in self.shown)]
        )

    @property
    def html(self) -> Html:
        """Heading and facts as HTML, escaped, in the colours of the page."""
        rows = Html("").join(_ROW.format(name, fact) for name, fact in self.shown)
        return _CARD.format(self.heading, rows)


class _Offered(ABCMeta):
    """A type whose completion leaves out ``_not_for_users``."""

    _not_for_users: frozenset[str] = frozenset()

    def __dir__(cls) -> list[str]:
        return sorted(set(super().__dir__()) - cls._not_for_users)


class Shown(metaclass=_Offered):
    """An object that shows its card. Completion leaves out private names and ``_not_for_users``."""

    __slots__ = ()
    _not_for_users = frozenset[str]()

    def __dir__(self) -> list[str]:
        names = (name for name in super().__dir__() if not name.startswith("_"))
        return sorted(set(names) - self._not_for_users)

    @property
    @abstractmethod
    def card(self) -> Card:
        """Its heading and facts."""

    def _repr_mimebundle_(self, **_wanted: object) -> dict[str, str]:
        card = self.card
        return {"text/plain": str(card), "text/html": card.html}


def readable_tables(*, decimals: int = 2) -> None:
    """Have polars show its tables for reading: every column, 12 rows, numbers rounded.

    Numbers have 0 to 12 ``decimals``, else `InputError` is raised, and commas between thousands.
    Texts are cut after 60 characters, lines folded at 120. ``polars.Config.restore_defaults()``
    undoes it.

    >>> import polars as pl
    >>> with pl.Config():  # which undoes it at its end
    ...     readable_tables(decimals=1)
    ...     pl.DataFrame({"price": [91250.04]})
    ┌──────────┐
    │ price    │
    ╞══════════╡
    │ 91,250.0 │
    └──────────┘
    """
    import polars as pl  # noqa: PLC0415 - cards are shown without it, and it takes 50 ms

    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= 12:
        raise InputError("decimals", decimals, "0 to 12")
    pl.Config(
        tbl_rows=12,
        tbl_cols=-1,
        tbl_width_chars=120,
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        fmt_str_lengths=60,
        float_precision=decimals,
        thousands_separator=True,
    )


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun in singular or plural.

    >>> counted(1, "page"), counted(1200, "page"), counted(0, "trajectory", "trajectories")
    ('1 page', '1,200 pages', '0 trajectories')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    """Write seconds in the largest two units that fit: 95 -> 1 min 35 s.

    >>> duration(95), duration(-7200), duration(0.25), duration(None)
    ('1 min 35 s', '-2 h', '0.25 s', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if not 60 <= seconds < math.inf:
        return f"{seconds:.3g} s"
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    left, parts = round(seconds), []
    for name, size in units:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def signed(value: float, decimals: int) -> str:
    """Write a number with its sign. One that rounds to zero has none.

    >>> signed(1234.5, 1), signed(-0.0004, 3), signed(-0.0006, 3)
    ('+1,234.5', '0.000', '-0.001')
    """
    text = f"{value:+,.{decimals}f}"
    return text if text.strip("+-0.") else text[1:]


def some(names: Sequence[object], *, at_most: int = 3) -> str:
    """List the first few names, and count the rest.

    >>> some(["a", "b", "c", "d", "e"]), some(["a"]), some([])
    ('a, b, c and 2 more', 'a', 'none')
    """
    more = f" and {len(names) - at_most:,} more" if len(names) > at_most else ""
    return ", ".join(map(str, names[:at_most])) + more or "none"
