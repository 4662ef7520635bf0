"""Binance, whose pages run from `startTime` on, and MEXC, which writes the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.exchanges.fake.venue import Venue, number
from tests.exchanges.truth import Listing
from tests.other_services.server import Answer


class Binance(Venue):
    """A minute without a trade is a flat row. The open minute is the last row, without a mark."""

    name = "BINANCE"
    hosts = ("api.binance.com", "fapi.binance.com", "dapi.binance.com", "eapi.binance.com")
    stamps_ms = (0, 21)

    def answer(self, path: str, q: Mapping[str, Any]) -> object:  # noqa: PLR0911 - a route each
        spot = path.startswith("/api/")
        match path.rpartition("/")[2]:
            case "exchangeInfo" if self.host[0] in "de":
                return {"timezone": "UTC", "serverTime": self.now_ms, "symbols": []}
            case "exchangeInfo":
                symbols = [self.market(each) for each in self.listed(spot=spot)]
                symbols += [] if spot else [self.quarterly(symbols[0])]
                head = {"timezone": "UTC", "serverTime": self.now_ms, "rateLimits": []}
                return {**head, "exchangeFilters": [], "symbols": symbols}
            case "time":
                return {"serverTime": self.now_ms}
            case "klines":
                return self.klines(q, spot=spot)
            case "fundingRate":
                return self.funding(q)
            case "fundingInfo":
                return [self.changed(each) for each in self.listed(spot=False)][:1]
        return Answer({"code": -1, "msg": "unknown path"}, 404)

    def unknown(self) -> object:
        return Answer({"code": -1121, "msg": "Invalid symbol."}, 400)

    def klines(self, q: Mapping[str, Any], *, spot: bool) -> object:
        listing = self.find(q["symbol"], spot=spot)
        since, until = q.get("startTime"), int(q.get("endTime", self.now_ms))
        start = int(since) / 1000 if since else until / 1000 - 60_000
        limit = min(int(q.get("limit", 500)), 1000 if spot else 1500)
        return [
            [
                *(1000 * row.ts, *row.prices, row.volume, 1000 * row.ts + 59_999, row.quote),
                *(row.trades, row.volume, row.quote, "0"),
            ]
            for row in self.rows(listing, start, until // 1000 + 1, limit, newest=not since)
        ]

    def funding(self, q: Mapping[str, Any]) -> object:
        listing = self.find(q["symbol"], spot=False)
        limit = min(int(q.get("limit", 100)), 1000, self.trouble.page_cap)
        found = self.settled(
            listing, float(q.get("startTime", 0)), float(q.get("endTime", self.now_ms))
        )
        return [
            {"symbol": q["symbol"], "fundingRate": each.rate, "fundingTime": str(each.stamp_ms)}
            for each in (found[:limit] if "startTime" in q else found[-limit:])
        ]

    def quarterly(self, perpetual: dict[str, Any]) -> dict[str, Any]:
        """Return a contract that isn't perpetual: it has no funding, and is not a leg."""
        delivery = self.now_ms // 86_400_000 * 86_400_000 + 60 * 86_400_000
        symbol = f"{perpetual['symbol']}_271231"
        dated = {"contractType": "CURRENT_QUARTER", "deliveryDate": delivery}
        return {**perpetual, "symbol": symbol, **dated}

    def changed(self, each: Listing) -> dict[str, Any]:
        return {
            "symbol": self.market_id(each),
            "adjustedFundingRateCap": "0.03000000",
            "adjustedFundingRateFloor": "-0.03000000",
            "fundingIntervalHours": self.hours(each),
            "disclaimer": False,
        }


class Mexc(Venue):
    """Has 30 days of minutes. Settlements are found by page alone, and hold 20 rows."""

    name = "MEXC"
    hosts = ("api.mexc.com",)

    def market_id(self, listing: Listing) -> str:
        return f"{listing.base}{'' if listing.hours is None else '_'}{listing.quote}"

    def answer(self, path: str, q: Mapping[str, Any]) -> object:  # noqa: PLR0911 - a route each
        match path.removeprefix("/api/").split("/"):
            case ["v3", "exchangeInfo"]:
                return {"symbols": [self.market(each) for each in self.listed(spot=True)]}
            case ["v3", "time"]:
                return {"serverTime": self.now_ms}
            case ["v3", "klines"]:
                return self.klines(q)
            case ["v1", "contract", "ping"]:
                return self.done(self.now_ms)
            case ["v1", "contract", "detail"]:
                return self.done([self.market(each) for each in self.listed(spot=False)])
            case ["v1", "contract", "kline", market]:
                return self.done(self.chart(self.find(market, spot=False), q))
            case ["v1", "contract", "funding_rate", "history"]:
                return self.done(self.history(self.find(q["symbol"], spot=False), q))
            case ["v1", "contract", "funding_rate", market]:
                return self.done(self.current(self.find(market, spot=False)))
        return Answer({"code": 404, "msg": "unknown path"}, 404)

    def current(self, listing: Listing) -> dict[str, Any]:
        stated = {"collectCycle": self.hours(listing), "nextSettleTime": self.next_ms(listing)}
        rates = {"fundingRate": 1.4e-05, "maxFundingRate": 0.003, "minFundingRate": -0.003}
        symbol = self.market_id(listing)
        return {"symbol": symbol, **rates, **stated, "timestamp": self.now_ms}

    def done(self, data: object) -> dict[str, Any]:
        return {"success": True, "code": 0, "data": data}

    def klines(self, q: Mapping[str, Any]) -> object:
        until = -(-int(q.get("endTime", self.now_ms + 1)) // 1000)
        start = max(int(q.get("startTime", 0)), self.now_ms - 30 * 86_400_000) / 1000
        listing, limit = self.find(q["symbol"], spot=True), min(int(q.get("limit", 500)), 500)
        rows = self.rows(listing, start, until, limit, newest="startTime" not in q)
        return [
            [1000 * row.ts, *row.prices, row.volume, 1000 * (row.ts + 60), row.quote]
            for row in rows
        ]

    def chart(self, listing: Listing, q: Mapping[str, Any]) -> dict[str, list[float | None]]:
        end = int(q.get("end", self.now_ms // 1000)) + 1
        start = max(int(q.get("start", 0)), self.now_ms // 1000 - 30 * 86_400)
        rows = self.rows(listing, start, end, 2000, newest="start" not in q)
        columns: dict[str, list[float | None]] = {"time": [row.ts for row in rows]}
        for name in ("open", "close", "high", "low"):
            columns[name] = [number(getattr(row, name)) for row in rows]
        columns["vol"] = [float(row.contracts) for row in rows]
        columns["amount"] = [float(row.quote) for row in rows]
        return columns

    def history(self, listing: Listing, q: Mapping[str, Any]) -> dict[str, Any]:
        size, page = min(int(q.get("page_size", 20)), 100), int(q.get("page_num", 1))
        newest = self.settled(listing, 0, self.now_ms)[::-1]
        rows = newest[(page - 1) * size : page * size]
        pages = {"totalCount": len(newest), "totalPage": -(-len(newest) // size)}
        told = [
            {"symbol": q["symbol"], "fundingRate": float(each.rate), "settleTime": each.stamp_ms}
            for each in rows
        ]
        return {"pageSize": size, **pages, "currentPage": page, "resultList": told}
