"""OKX, which answers newest first and counts perpetuals in contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.exchanges.fake.venue import Settled, Venue
from tests.exchanges.truth import Listing
from tests.other_services.server import Answer


class Okx(Venue):
    """Pages are asked for by `before` and `after`; `until`, which ccxt sends, means nothing to it.

    The last field of a bar says whether it is closed. Settlements reach back three months.
    """

    name = "OKX"
    hosts = ("www.okx.com",)

    def market_id(self, listing: Listing) -> str:
        return f"{listing.base}-{listing.quote}{'' if listing.hours is None else '-SWAP'}"

    def answer(self, path: str, q: Mapping[str, Any]) -> object:  # noqa: PLR0911 - a route each
        match path.removeprefix("/api/v5/"):
            case "public/time":
                return self.done([{"ts": str(self.now_ms)}])
            case "public/instruments":
                kind = q["instType"]
                listed = self.listed(spot=kind == "SPOT")
                return self.done([self.market(each) for each in listed if kind in {"SPOT", "SWAP"}])
            case "market/candles":
                return self.done(self.candles(q, reach_ms=1440 * 60_000))
            case "market/history-candles":
                return self.done(self.candles(q, reach_ms=1 << 45))
            case "public/funding-rate-history":
                return self.done(self.history(q))
            case "public/funding-rate":
                return self.done([self.market(self.find(q["instId"], spot=False), "rate")])
        return Answer({"code": "404", "msg": "unknown path", "data": []}, 404)

    def done(self, data: object) -> dict[str, Any]:
        return {"code": "0", "msg": "", "data": data}

    def unknown(self) -> object:
        return {"code": "51001", "msg": "Instrument ID doesn't exist.", "data": []}

    def too_long_ago(self) -> object:
        return {"code": "51000", "msg": "Parameter before error", "data": []}

    def candles(self, q: Mapping[str, Any], *, reach_ms: int) -> list[list[str]]:
        listing = self.find(q["instId"], spot=not q["instId"].endswith("-SWAP"))
        limit, until = min(int(q.get("limit", 100)), 300), int(q.get("after", self.now_ms + 1))
        start = max(int(q.get("before", until - 60_000 * limit - 1)) + 1, self.now_ms - reach_ms)
        rows = self.rows(listing, start / 1000, -(-until // 1000), limit, newest=True)
        spot = listing.hours is None
        return [
            [
                *(str(1000 * row.ts), *row.prices, row.volume if spot else row.contracts),
                *(row.quote if spot else row.volume, row.quote, str(int(self.closed(row)))),
            ]
            for row in rows[::-1]
        ]

    def history(self, q: Mapping[str, Any]) -> list[dict[str, str]]:
        listing = self.find(q["instId"], spot=False)
        limit = min(int(q.get("limit", 100)), 100, self.trouble.page_cap)
        reach = self.now_ms - 92 * 86_400_000
        start, end = max(int(q.get("before", 0)) + 1, reach), int(q.get("after", 1 << 45)) - 1
        found = self.settled(listing, start, end)[-limit:]
        return [self.told(each, q) for each in found[::-1]]

    def told(self, each: Settled, q: Mapping[str, Any]) -> dict[str, str]:
        predicted = f"{float(each.rate) * 1.125:.10f}"  # fundingRate isn't what was paid
        rates = {"fundingRate": predicted, "realizedRate": each.rate}
        stamp = {"fundingTime": str(each.stamp_ms)}
        return {"instType": "SWAP", "instId": q["instId"], **rates, **stamp}
