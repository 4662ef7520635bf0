"""Bybit, which answers newest first, and Bitget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.exchanges.fake.venue import Venue
from tests.exchanges.truth import Listing
from tests.other_services.server import Answer


class Bybit(Venue):
    """A window longer than its page is cut at the old end. 200 bars where no limit is given."""

    name = "BYBIT"
    hosts = ("api.bybit.com",)

    def answer(self, path: str, q: Mapping[str, Any]) -> object:
        category = q.get("category", "linear")
        spot = category == "spot"
        match path:
            case "/v5/market/time":
                seconds, ms = str(self.now_ms // 1000), str(self.now_ms)
                told = self.done({"timeSecond": seconds, "timeNano": f"{ms}000000"})
                return {**told, "retCode": "0", "time": ms}
            case "/v5/market/instruments-info":
                plain = category in {"spot", "linear"} and "status" not in q
                listed = [self.market(each) for each in self.listed(spot=spot) if plain]
                pages = {} if spot else {"nextPageCursor": ""}
                return self.done({"category": category, "list": listed, **pages})
            case "/v5/market/kline":
                rows = self.klines(self.find(q["symbol"], spot=spot), q)
                return self.done({"symbol": q["symbol"], "category": category, "list": rows})
            case "/v5/market/funding/history":
                rows = self.funding(self.find(q["symbol"], spot=False), q)
                return self.done({"category": category, "list": rows})
        return Answer({"retCode": 404, "retMsg": "unknown path"}, 404)

    def done(self, result: object) -> dict[str, Any]:
        ok = {"retCode": 0, "retMsg": "OK", "result": result}
        return {**ok, "retExtInfo": {}, "time": self.now_ms}

    def unknown(self) -> object:
        return {**self.done({}), "retCode": 10001, "retMsg": "params error: symbol invalid"}

    def klines(self, listing: Listing, q: Mapping[str, Any]) -> list[list[str]]:
        limit, until = min(int(q.get("limit", 200)), 1000), int(q.get("end", self.now_ms))
        start = int(q["start"]) if "start" in q else until - 60_000 * limit
        if "end" not in q:
            until = start + 60_000 * limit - 1
        rows = self.rows(listing, start / 1000, until // 1000 + 1, limit, newest=True)
        return [[str(1000 * row.ts), *row.prices, row.volume, row.quote] for row in rows[::-1]]

    def funding(self, listing: Listing, q: Mapping[str, Any]) -> list[dict[str, str]]:
        limit = min(int(q.get("limit", 200)), 200, self.trouble.page_cap)
        until = float(q.get("endTime", self.now_ms))
        found = self.settled(listing, float(q.get("startTime", 0)), until)[-limit:]
        stamp = "fundingRateTimestamp"
        return [
            {"symbol": q["symbol"], "fundingRate": each.rate, stamp: str(each.stamp_ms)}
            for each in found[::-1]
        ]


class Bitget(Venue):
    """Has a page for the last days and one for the past. Settlements are found by page alone."""

    name = "BITGET"
    hosts = ("api.bitget.com",)

    def answer(self, path: str, q: Mapping[str, Any]) -> object:
        linear = q.get("productType", "USDT-FUTURES") == "USDT-FUTURES"
        spot = "/spot/" in path
        match path.removeprefix("/api/v2/"):
            case "public/time":
                return self.done({"serverTime": str(self.now_ms)})
            case "spot/public/symbols" | "mix/market/contracts":
                listed = [self.market(each) for each in self.listed(spot=spot) if linear]
                return self.done(listed)
            case "margin/currencies" | "spot/public/coins":
                return self.done([])
            case (
                "spot/market/candles"
                | "spot/market/history-candles"
                | "mix/market/candles"
                | "mix/market/history-candles"
            ):
                most = 200 if "history" in path else 1000
                return self.done(self.candles(self.find(q["symbol"], spot=spot), q, most))
            case "mix/market/history-fund-rate":
                return self.done(self.funding(self.find(q["symbol"], spot=False), q))
        return Answer({"code": "40404", "msg": "unknown path"}, 404)

    def done(self, data: object) -> dict[str, Any]:
        return {"code": "00000", "msg": "success", "requestTime": self.now_ms, "data": data}

    def unknown(self) -> object:
        return Answer({"code": "40034", "msg": "Parameter does not exist"}, 400)

    def candles(self, listing: Listing, q: Mapping[str, Any], most: int) -> list[list[str]]:
        limit, until = min(int(q.get("limit", 100)), most), int(q.get("endTime", self.now_ms + 1))
        start = int(q.get("startTime", until - 60_000 * limit)) / 1000
        rows = self.rows(listing, start, -(-until // 1000), limit, newest=True)
        usd = 2 if listing.hours is None else 1
        return [[str(1000 * r.ts), *r.prices, r.volume, *[r.quote] * usd] for r in rows]

    def funding(self, listing: Listing, q: Mapping[str, Any]) -> list[dict[str, str]]:
        size, page = min(int(q.get("pageSize", 20)), 100), int(q.get("pageNo", 1))
        newest = self.settled(listing, 0, self.now_ms)[::-1]
        return [
            {"symbol": q["symbol"], "fundingRate": each.rate, "fundingTime": str(each.stamp_ms)}
            for each in newest[(page - 1) * size : page * size]
        ]
