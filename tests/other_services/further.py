"""The kinds `numbered`, `resources` and `tabled`. They have no snapshots and no schemas.

- `numbered` pages by a number: ``{"meta": {"page": 1, "pages": 4, "total": 360}, "data": [...]}``,
  newest first, of ``from`` (included) to ``till`` (excluded), ISO 8601 and left out at will.
  Times of rows have the offset of Athens. Pages of logs have ``meta.next_page``.
- `resources` answers as JSON:API does. A row is ``{"type": .., "id": .., "attributes": {..},
  "relationships": {"venue": {..}}}``. The absolute URL of the next page is at ``links.next``.
  Parameters are ``filter[pair]``, ``page[before]``, ``page[size]``.
- `tabled` answers with lists below a first one that names their columns, in turned order on some
  pages.

A leg is ``AURORA~cash``, a market ``cash``, ``perp`` or ``chain``. A refusal is
``{"errors": [{"detail": "..."}]}``. The event logs are otherwise those of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from tests.other_services.server import Answer, Question
from tests.other_services.service import (
    Held,
    OtherService,
    Refused,
    Row,
    required,
    trajectory_of,
    whole,
    write_cursor,
)
from tests.other_services.writing import iso, seconds
from toolkit.market import Family, Trajectory

ATHENS = ZoneInfo("Europe/Athens")
MARKETS = {"spot": "cash", "futures": "perp", "dex": "chain"}
FAR = 2 * 10**9


class _Further(OtherService):
    """What the three have in common: the pair and the legs of a question, and what they lack."""

    pair, leg, legs = "pair", "leg", ("long", "short")
    """The names of the parameters."""

    def fault(self, status: int, text: str) -> object:
        """Return a list of one error."""
        return {"errors": [{"status": str(status), "detail": text}]}

    def asked(self, family: Family, parameters: Mapping[str, str]) -> Trajectory:
        """Read the pair and the legs."""
        names = (self.leg,) if family is Family.PRICE else self.legs
        legs = [_read_leg(required(parameters, name, "KRAKEN~cash")) for name in names]
        return trajectory_of(family, required(parameters, self.pair, "BTC_USDT"), legs)

    def record(self, family: Family, row: Row) -> dict[str, Any]:
        """Return a row as it is."""
        del family
        return dict(row)

    def size(self, parameters: Mapping[str, str], name: str) -> int:
        """Return the rows of a page: as many as are asked for, at most 100."""
        return min(whole(parameters, name, 50), 100)

    def symbols(self, question: Question) -> Answer:
        """Return the legs of each pair."""
        found = self.found_symbols(question).items()
        legs = {p: [f"{leg.exchange}~{MARKETS[leg.market]}" for leg in of] for p, of in found}
        return Answer({"pairs": legs})

    def _absent(self, question: Question) -> Answer:
        raise Refused(404, f"there is nothing at {question.path}")

    activity = open_spreads = rates = _absent


def _read_leg(text: str) -> str:
    exchange, _, word = text.partition("~")
    markets = {word: market for market, word in MARKETS.items()}
    if word not in markets:
        raise Refused(400, f"no market is called {word!r}")
    return f"{exchange}.{markets[word]}"


class Numbered(_Further):
    """A service of the kind `numbered`."""

    def record(self, family: Family, row: Row) -> dict[str, Any]:
        """Return a row with its time in Athens."""
        del family
        at = datetime.fromtimestamp(row["ts"], ATHENS).isoformat()
        return {"at": at, **{name: value for name, value in row.items() if name != "ts"}}

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return one page by its number."""
        del trajectory
        of = question.parameters
        size, page = self.size(of, "per_page"), whole(of, "page", 1)
        start, end = (seconds(of.get(name, iso(at))) for name, at in (("from", 0), ("till", FAR)))
        found = [r for t, r in zip(held.ts, held.records, strict=True) if start <= t < end][::-1]
        meta = {"page": page, "pages": -(-len(found) // size), "total": len(found)}
        return Answer({"meta": meta, "data": found[(page - 1) * size : page * size]})

    def event_cursor(self, question: Question) -> str:
        """Return the place of a page in its window."""
        of = question.parameters
        family = question.path.rpartition("/")[2].removesuffix("-events")
        first = (whole(of, "page", 1) - 1) * whole(of, "per_page", 200)
        return write_cursor(f"{family} {of['start_time']} {of['end_time']} None", first)

    def events(self, family: str, question: Question) -> Answer:
        """Return a page of a log by its number."""
        documents, further = self.event_documents(family, question)
        after = b"%d" % (whole(question.parameters, "page", 1) + 1) if further else b"null"
        return Answer(b'{"meta": {"next_page": %b}, "data": [%b]}' % (after, b",".join(documents)))


class Resources(_Further):
    """A service of the kind `resources`."""

    pair, leg, legs = "filter[pair]", "filter[venue]", ("filter[long]", "filter[short]")

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return a page of resources, and the address of the next one."""
        of, family = question.parameters, trajectory.family
        places = held.before(seconds(of.get("page[before]", iso(FAR))), self.size(of, "page[size]"))
        names = ("venue",) if family is Family.PRICE else ("long", "short")
        venues = {
            name: {"data": {"type": "venue", "id": str(leg)}}
            for name, leg in zip(names, trajectory.legs, strict=True)
        }
        rows = [
            {"type": f"{family}s", "id": f"{family}/{record['ts']}", "relationships": venues}
            | {"attributes": {**record, "ts": iso(record["ts"])}}
            for record in (held.records[place] for place in reversed(places))
        ]
        earlier = iso(held.ts[places.start]) if places.start else None
        url = _next(question, "page[before]", earlier)
        return Answer({"data": rows, "links": {"next": url}})

    def event_cursor(self, question: Question) -> str | None:
        """Return the cursor of the address."""
        return question.parameters.get("page[cursor]")

    def events(self, family: str, question: Question) -> Answer:
        """Return a page of a log, and the address of the next one."""
        documents, further = self.event_documents(family, question)
        url = _next(question, "page[cursor]", further)
        links = b'"%b"' % url.encode() if url else b"null"
        return Answer(b'{"links": {"next": %b}, "data": [%b]}' % (links, b",".join(documents)))


def _next(question: Question, name: str, value: str | None) -> str | None:
    query = urlencode({**question.parameters, name: value})
    return value and f"http://{question.headers['host']}{question.path}?{query}"


class Tabled(_Further):
    """A service of the kind `tabled`."""

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return a table, the names of its columns in the first row."""
        del trajectory
        of = question.parameters
        places = held.before(whole(of, "before", FAR), self.size(of, "size"))
        if not places:
            return Answer([])
        names = list(held.records[places[0]])[:: -1 if places.start % 2 else 1]
        rows = [[held.records[place][name] for name in names] for place in reversed(places)]
        return Answer([names, *rows])


FURTHER = {"numbered": Numbered, "resources": Resources, "tabled": Tabled}
