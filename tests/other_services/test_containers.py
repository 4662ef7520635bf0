"""Pages in other containers, numbers in other forms, and figures in other definitions, by a file.

A small service has one price and one spread. Each kind sends their rows in its own way, over a
socket, without schemas. What a file cannot say is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.other_services.kinds import brought, users
from tests.other_services.server import API_KEY, Answer, Question, serving
from toolkit.client import Client
from toolkit.errors import InputError, WireError
from toolkit.loader.follow.reader import Message, Messages
from toolkit.market import Trajectory
from toolkit.service.market.source import Clock
from toolkit.store import Store
from toolkit.store.writing.remap import remap
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.workspace import Workspace

END = 1_795_046_400
PRICE = Trajectory.parse("BTC_USDT:KRAKEN.spot")
SPREAD = Trajectory.parse("BTC_USDT:COINBASE.spot:KRAKEN.spot")
ROWS = [
    {"t": END - 60 * n, "p": 1_200.5 + n, "v": 0.125 * n, "b": 100.0 + n, "s": 110.0}
    for n in range(1, 31)
]
WHOLE = (END - 3_600, END)
FUTURES = "BTC_USDT:COINBASE.futures:KRAKEN.futures"
Rows = Sequence[Mapping[str, Any]]


@dataclass
class Shaped:
    """The newest rows before ``before``, in the shape of a kind. It keeps what it was asked."""

    shape: Callable[[Rows], object]
    status: int = 200
    path: str = "/p"
    asked: Mapping[str, str] | None = None
    clock: Clock = field(default_factory=lambda: Clock(fixed_at=END))

    def answer(self, question: Question) -> Answer:
        if question.path.endswith("/symbols/search"):
            legs = [{"exchange": leg, "market": "spot"} for leg in ("COINBASE", "KRAKEN")]
            listed = [{"symbol": "BTC_USDT", "venues": legs}]
            return Answer({"items": listed, "truncated": False})
        if question.path != self.path:
            return Answer({"message": "no such route"}, 404)
        self.asked = question.parameters
        before, size = (int(question.parameters[name]) for name in ("end_time", "limit"))
        rows = [row for row in ROWS if row["t"] < before][:size]
        return Answer(self.shape(rows), self.status)


def loaded(service: Shaped, profile: UserProfile, key: Trajectory = PRICE) -> pl.DataFrame:
    return brought(service, profile, key, WHOLE)


PRICES = """
[history.price]
path = "/p"
limit = 7
next = ""
fields.ts = { wire = "t" }
fields.price = { wire = "p" }
fields.volume = { wire = "v" }
"""


def columns(rows: Rows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in ("t", "p", "v")}


def keyed(rows: Rows) -> dict[str, Any]:
    return {str(row["t"]): {"p": row["p"], "v": row["v"]} for row in rows}


CONTAINERS: dict[str, tuple[Callable[[Rows], object], str]] = {
    "columns below a name": (lambda rows: {"data": columns(rows)}, 'items = "data"'),
    "columns as the answer": (lambda rows: {"ok": True, **columns(rows)}, 'items = "[]"'),
    "columns in objects": (
        lambda rows: {"data": {"x": columns(rows), "n": len(rows)}},
        'items = "data"\nfields = { ts.wire = "x.t", price.wire = "x.p", volume.wire = "x.v" }',
    ),
    "rows by their time": (
        lambda rows: {"data": keyed(rows)},
        'items = "data"\nfields.ts.wire = "*1"',
    ),
    "rows by their time as the answer": (keyed, 'items = "[]"\nfields.ts.wire = "*1"'),
    "lists by their time": (
        lambda rows: {"data": {str(row["t"]): [row["p"], row["v"]] for row in rows}},
        'items = "data"\nfields = { ts.wire = "*1", price.wire = "[0]", volume.wire = "[1]" }',
    ),
    "prices by their time": (
        lambda rows: {"data": {str(row["t"]): row["p"] for row in rows}},
        'items = "data"\nfields = { ts.wire = "*1", price.wire = "[]" }',
    ),
    "lines": (lambda rows: b"\n".join(json.dumps(r).encode() for r in rows), 'rows = "lines"'),
    "lists on lines": (
        lambda rows: b"".join(
            json.dumps([r["t"], r["p"], r["v"]]).encode() + b"\r\n" for r in rows
        ),
        'rows = "lines"\nfields = { ts.wire = "[0]", price.wire = "[1]", volume.wire = "[2]" }',
    ),
}


def said(kind: str) -> str:
    """The profile of a kind of container: its lines take the place of those of `PRICES`."""
    own = CONTAINERS[kind][1]
    form = "columns" if kind.startswith("columns") else "keyed"
    own += "" if "rows =" in own else f'\nrows = "{form}"'
    names = [line.partition(" = {")[0] for line in own.splitlines() if line.startswith("fields")]
    kept = [line for line in PRICES.splitlines() if not (names and line.startswith("fields"))]
    if names == ['fields.ts.wire = "*1"']:
        kept = [line for line in PRICES.splitlines() if not line.startswith("fields.ts")]
    return "\n".join([*kept, own]) + "\n"


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_row_of_another_container_is_read(kind: str) -> None:
    frame = loaded(Shaped(CONTAINERS[kind][0]), users(said(kind)))
    assert frame["ts"].to_list() == [row["t"] for row in reversed(ROWS)]
    assert frame["price"].to_list() == [row["p"] for row in reversed(ROWS)]
    if kind != "prices by their time":
        assert frame["volume"].to_list() == [row["v"] for row in reversed(ROWS)]


@pytest.mark.parametrize("kind", ["columns as the answer", "rows by their time", "lists on lines"])
def test_what_was_kept_of_another_container_is_read_anew(kind: str, tmp_path: Path) -> None:
    profile = users(said(kind))
    store = Store(tmp_path / "store.duckdb")
    service = Shaped(CONTAINERS[kind][0])
    with serving(service) as base_url, Client(base_url, API_KEY, profile=profile) as client:
        rail = Workspace(client, store)
        rail.sync([PRICE.key], END - 1_200, END - 300, progress=False)
    before = rail.sql("SELECT time, price, volume FROM prices ORDER BY time")
    remap(store, profile)
    assert before.equals(rail.sql("SELECT time, price, volume FROM prices ORDER BY time"))
    assert before["time"].dt.epoch("s").to_list() == [END - 60 * n for n in range(20, 5, -1)]


@pytest.mark.parametrize("kind", ["columns as the answer", "columns below a name", "lines"])
def test_records_of_a_stream_are_read_whatever_holds_the_rows_of_a_page(kind) -> None:
    profile = users(said(kind)).applied(BUILT_IN)
    messages = Messages(profile)
    for row in ROWS:
        record = {name: row[name] for name in "tpv"}
        messages.add(Message(PRICE, json.dumps(record).encode()))
    (frame,) = messages.batch_of_all()[0].rows[PRICE]
    assert frame["price"].to_list() == [row["p"] for row in ROWS]


def test_columns_of_different_lengths_are_refused_by_name() -> None:
    ragged = Shaped(lambda rows: {"data": {**columns(rows), "p": [1.0]}})
    with pytest.raises(WireError, match="with rows that are not columns of one length"):
        loaded(ragged, users(said("columns below a name")))


@pytest.mark.parametrize("status", [200, 201, 203, 206, 226])
def test_any_status_of_success_with_a_body_is_an_answer(status: int) -> None:
    service = Shaped(lambda rows: {"items": list(rows)}, status)
    assert loaded(service, users(PRICES)).height == len(ROWS)


def test_numbers_as_they_are_printed_are_read() -> None:
    def printed(rows: Rows) -> object:
        return {"items": [{"t": f"{r['t']:,}", "p": f"+{r['p']:,.2f}", "v": "0"} for r in rows]}

    frame = loaded(Shaped(printed), users(PRICES + 'numbers = "printed"\n'))
    assert frame["price"].to_list() == [row["p"] for row in reversed(ROWS)]
    commas = Shaped(lambda rows: {"items": [{**r, "p": f"{r['p']:,.2f}"} for r in rows]})
    with pytest.raises(WireError, match=r'can read it: numbers = "printed" in \[history.price\]'):
        loaded(commas, users(PRICES))


SPREADS = """
[history.spread]
path = "/p"
limit = 7
next = ""
fields.ts = { wire = "t" }
fields.buy_price = { wire = "b" }
fields.sell_price = { wire = "s" }
"""
DEFINITIONS = {
    "in percent, printed": (lambda b, s: f"{100 * (s / b - 1):+.6f}%", 'unit = "percent"'),
    "a ratio": (lambda b, s: s / b, 'unit = "ratio"'),
    "the other ratio": (lambda b, s: b / s, 'unit = "ratio", inverse = true'),
    "bps of the other leg": (lambda b, s: 1e4 * (b / s - 1), 'unit = "bps", inverse = true'),
    "a discount": (lambda b, s: 1 - b / s, 'unit = "fraction", reversed = true, inverse = true'),
}


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_a_spread_of_another_definition_is_ours_exactly(definition: str) -> None:
    figure, said_of = DEFINITIONS[definition]
    numbers = 'numbers = "printed"\n' if "printed" in definition else ""
    file = f'{SPREADS}{numbers}fields.spread_pct = {{ wire = "d", {said_of} }}\n'

    def shape(rows: Rows) -> object:
        return {"items": [{**r, "d": figure(r["b"], r["s"])} for r in rows]}

    frame = loaded(Shaped(shape), users(file), SPREAD)
    wanted = [100 * (row["s"] / row["b"] - 1) for row in reversed(ROWS)]
    assert frame["spread_pct"].to_list() == pytest.approx(wanted, abs=1e-6)


PATHS = {
    "a symbol": ("/v1/{symbol}/p", "/v1/BTC_USDT/p", {"exchange": "KRAKEN", "market": "spot"}),
    "its parts": ("/{exchange}.{market}/{base}/{quote}", "/KRAKEN.spot/BTC/USDT", {}),
    "a joined symbol": ("/p/{symbol}", "/p/BTCUSDT", {"exchange": "KRAKEN", "market": "spot"}),
}


@pytest.mark.parametrize("named", PATHS)
def test_a_path_names_the_trajectory(named: str) -> None:
    template, path, others = PATHS[named]
    joined = '[spelling]\nsymbol = "{base}{quote}"\n' if "joined" in named else ""
    service = Shaped(lambda rows: {"items": list(rows)}, path=path)
    file = PRICES.replace('"/p"', f'"{template}"') + joined
    with serving(service) as base_url, Client(base_url, API_KEY, profile=users(file)) as client:
        found = pl.concat([page.frame for page in client.pages(PRICE, WHOLE)])
        assert client.requests.history > 4
    assert found["ts"].to_list() == [row["t"] for row in ROWS]
    asked = {**(service.asked or {})}
    del asked["end_time"], asked["limit"]
    assert asked == others


LOGS: dict[str, tuple[Callable[[Mapping[str, Any]], object], str]] = {
    "keyed": (lambda log: {"data": log, "has_more": False}, 'items = "data"'),
    "lines": (
        lambda log: b"\n".join(json.dumps({"*1": n, **d}).encode() for n, d in log.items()),
        'next = "header:x-next"',
    ),
}


@pytest.mark.parametrize("rows", LOGS)
def test_documents_by_id_or_on_lines_have_the_last_of_their_states(rows) -> None:
    def document(n: int) -> dict[str, Any]:
        states = [{"name": "open", "at": END - 60 * n}, {"name": "closed", "at": END - 60 * n + 5}]
        return {"at": END - 60 * n + 5 * (n % 2), "states": states[: 1 + n % 2], "pct": 1.5}

    log = {f"e{n}": document(n) for n in range(1, 9)}
    shape, own = LOGS[rows]
    service = Shaped(lambda _: shape(log), path="/e")
    file = f"""
        [events.splash]
        path = "/e"
        rows = "{rows}"
        {own}
        paths.event_id = ["*1"]
        paths.ts = ["at"]
        paths.lifecycle = ["states[-1].name"]
        """
    with serving(service) as base_url, Client(base_url, API_KEY, profile=users(file)) as client:
        found = pl.concat([page.frame for page in client.event_pages("splash", WHOLE)])
    states = ["closed" if n % 2 else "open" for n in range(1, 9)]
    assert found.select("event_id", "lifecycle").rows() == list(zip(log, states, strict=True))


def test_the_legs_of_a_row_may_be_objects_by_name() -> None:
    def shape(rows: Rows) -> object:
        legs = {"COINBASE.spot": "b", "KRAKEN.spot": "s"}
        named = ({leg: {"px": row[at]} for leg, at in legs.items()} for row in rows)
        return {"items": [{"t": row["t"], "at": at} for row, at in zip(rows, named, strict=True)]}

    places = [f"at[{{{side}.exchange}}.{{{side}.market}}].px" for side in ("buy", "sell")]
    file = SPREADS.replace('"b"', f'"{places[0]}"').replace('"s"', f'"{places[1]}"')
    for key in (SPREAD, Trajectory.parse("BTC_USDT:KRAKEN.spot:COINBASE.spot")):
        frame = loaded(Shaped(shape), users(file), key)
        first, second = ("b", "s") if key is SPREAD else ("s", "b")
        assert frame["buy_price"].to_list() == [row[first] for row in reversed(ROWS)]
        assert frame["sell_price"].to_list() == [row[second] for row in reversed(ROWS)]


def test_an_interval_may_be_a_duration() -> None:
    rates = {"buy_rate": 1e-4, "sell_rate": 2e-4, "differential_pct_8h": 0.01}
    spans = {"buy_interval_hours": "PT8H", "sell_interval_hours": "P1D"}

    def shape(rows: Rows) -> object:
        return {"items": [{"ts": row["t"], **rates, **spans} for row in rows]}

    names = ("buy_interval_hours", "sell_interval_hours")
    fields = "".join(f'fields.{name} = {{ unit = "iso" }}\n' for name in names)
    file = f'[history.funding]\npath = "/p"\nlimit = 7\nnext = ""\n{fields}'
    frame = loaded(Shaped(shape), users(file), Trajectory.parse(f"funding/{FUTURES}"))
    assert frame.select(names).unique().rows() == [(8.0, 24.0)]


def test_two_columns_may_be_of_one_field() -> None:
    file = PRICES + 'fields.mark_price = { wire = "p" }\n'
    frame = loaded(Shaped(lambda rows: {"items": list(rows)}), users(file))
    assert frame["mark_price"].to_list() == frame["price"].to_list()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[events.spread]\nrows = "columns"', "rows: 'columns' is not allowed; allowed: list, ke"),
        ('[history.price]\nrows = "csv"', "allowed: list, columns, keyed, lines"),
        ('[history.price]\nfields.price = { wire = "ts" }', "another place than that of ts"),
        ('[history.price]\nfields.price = { unit = "ratio" }', "fields.price.unit: 'ratio' is not"),
        (
            '[history.spread]\nfields.spread_pct = { unit = "ratio", reversed = true }',
            "inverse = true of a ratio",
        ),
    ],
)
def test_what_a_file_cannot_say_is_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        users(text)
    assert told in str(refused.value)
