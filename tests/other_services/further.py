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

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from tests.other_services.data import Data
from tests.other_services.server import Answer, Question
from tests.other_services.service import Held, OtherService, Row, moment, whole, write_cursor
from tests.other_services.writing import iso
from toolkit.market import Family, Leg, Trajectory

ATHENS = ZoneInfo("Europe/Athens")
FAR = 2 * 10**9


class _Further(OtherService):
    """What the three have in common."""

    limit, limit_at_most = 50, 100
    legs = ("long", "short")
    between = "~"
    markets: Mapping[str, str] = {"spot": "cash", "futures": "perp", "dex": "chain"}

    def fault(self, status: int, text: str) -> object:
        return {"errors": [{"status": str(status), "detail": text}]}

    def record(self, family: Family, row: Row) -> dict[str, Any]:
        del family
        return dict(row)

    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        return {"pairs": {pair: [*map(self.leg_text, legs)] for pair, legs in found.items()}}


class Numbered(_Further):
    """A service of the kind `numbered`."""

    def record(self, family: Family, row: Row) -> dict[str, Any]:
        del family
        at = datetime.fromtimestamp(row["ts"], ATHENS).isoformat()
        return {"at": at, **{name: value for name, value in row.items() if name != "ts"}}

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        del trajectory
        of = question.parameters
        size, page = self.size(of, "per_page"), whole(of, "page", 1)
        start, end = moment(of, "from", 0), moment(of, "till", FAR)
        found = [r for t, r in zip(held.ts, held.records, strict=True) if start <= t < end][::-1]
        meta = {"page": page, "pages": -(-len(found) // size), "total": len(found)}
        return Answer({"meta": meta, "data": found[(page - 1) * size : page * size]})

    def event_cursor(self, question: Question) -> str:
        of = question.parameters
        family = question.path.rpartition("/")[2].removesuffix("-events")
        first = (whole(of, "page", 1) - 1) * whole(of, "per_page", 200)
        return write_cursor(f"{family} {of['start_time']} {of['end_time']}", first)

    def events(self, family: str, question: Question) -> Answer:
        documents, further = self.event_documents(family, question)
        after = b"%d" % (whole(question.parameters, "page", 1) + 1) if further else b"null"
        return Answer(b'{"meta": {"next_page": %b}, "data": [%b]}' % (after, b",".join(documents)))


class Resources(_Further):
    """A service of the kind `resources`."""

    symbol, leg, legs = "filter[pair]", "filter[venue]", ("filter[long]", "filter[short]")

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        of, family = question.parameters, trajectory.family
        places = held.before(moment(of, "page[before]", FAR), self.size(of, "page[size]"))
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
        return question.parameters.get("page[cursor]")

    def events(self, family: str, question: Question) -> Answer:
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
        del trajectory
        of = question.parameters
        places = held.before(whole(of, "before", FAR), self.size(of, "size"))
        if not places:
            return Answer([])
        names = list(held.records[places[0]])[:: -1 if places.start % 2 else 1]
        rows = [[held.records[place][name] for name in names] for place in reversed(places)]
        return Answer([names, *rows])


FURTHER: Mapping[str, Callable[[Data], OtherService]] = {
    "numbered": Numbered,
    "resources": Resources,
    "tabled": Tabled,
}
