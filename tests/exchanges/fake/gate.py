"""Gate, whose minutes older than 10,000 are an error, and KuCoin's two exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.exchanges.fake.venue import Venue, number
from tests.exchanges.truth import Listing, Row
from tests.other_services.server import Answer


class Gate(Venue):
    """Counts perpetuals in contracts. The eighth field of a spot bar says whether it is closed."""

    name = "GATE"
    hosts = ("api.gateio.ws",)

    def market_id(self, listing: Listing) -> str:
        return listing.symbol

    def answer(self, path: str, q: Mapping[str, Any]) -> object:  # noqa: PLR0911 - a route each
        match path.removeprefix("/api/v4/").split("/"):
            case ["spot", "time"]:
                return {"server_time": self.now_ms}
            case ["spot", "currencies"] | ["margin", "currency_pairs"] | ["options", _]:
                return []
            case ["spot", "currency_pairs"]:
                return [self.market(each) for each in self.listed(spot=True)]
            case ["spot", "candlesticks"]:
                return self.candles(self.find(q["currency_pair"], spot=True), q, 1000)
            case ["futures", "usdt", "contracts"]:
                return [self.market(each) for each in self.listed(spot=False)]
            case ["futures", "usdt", "candlesticks"]:
                return self.candles(self.find(q["contract"], spot=False), q, 2000)
            case ["futures", "usdt", "funding_rate"]:
                return self.funding(self.find(q["contract"], spot=False), q)
            case ["futures" | "delivery", _, "contracts"]:
                return []
        return self.refusal("INVALID_REQUEST", "unknown path")

    def refusal(self, label: str, message: str) -> Answer:
        return Answer({"label": label, "message": message}, 400)

    def unknown(self) -> object:
        return self.refusal("INVALID_CURRENCY_PAIR", "Invalid currency pair")

    def too_long_ago(self) -> object:
        message = "Candlestick too long ago. Maximum 10000 points ago are allowed"
        return self.refusal("INVALID_PARAM_VALUE", message)

    def candles(self, listing: Listing, q: Mapping[str, Any], most: int) -> object:
        now_s = self.now_ms // 1000
        limit = min(int(q.get("limit", 100)), most)
        end = int(q.get("to", now_s))
        start = int(q.get("from", end // 60 * 60 - 60 * (limit - 1)))
        if start < now_s - 10_000 * 60:
            return self.too_long_ago()
        if (end - start) // 60 >= most:
            points = f"Maximum {most} data points are allowed per request"
            return self.refusal("INVALID_PARAM_VALUE", f"Candlestick range too broad. {points}")
        rows = self.rows(listing, start, end + 1, most, newest=True)
        return [self.bar(row, spot=listing.hours is None) for row in rows]

    def bar(self, row: Row, *, spot: bool) -> object:
        if spot:
            prices = (row.close, row.high, row.low, row.open)
            return [str(row.ts), row.quote, *prices, row.volume, str(self.closed(row)).lower()]
        prices = {x: getattr(row, name) for x, name in zip("ohlc", OHLC, strict=True)}
        return {"t": row.ts, "v": int(row.contracts), **prices, "sum": row.quote}

    def funding(self, listing: Listing, q: Mapping[str, Any]) -> list[dict[str, Any]]:
        limit = min(int(q.get("limit", 100)), 1000, self.trouble.page_cap)
        end = 1000 * int(q.get("to", self.now_ms // 1000)) + 999
        found = self.settled(listing, 1000 * int(q.get("from", 0)), end)[-limit:]
        return [{"r": each.rate, "t": each.stamp_ms // 1000} for each in found[::-1]]


OHLC = ("open", "high", "low", "close")


class Kucoin(Venue):
    """Has no row without a trade. Spot answers newest first, perpetuals 200 rows oldest first."""

    name = "KUCOIN"
    hosts = ("api.kucoin.com", "api-futures.kucoin.com")
    flat = False

    def market_id(self, listing: Listing) -> str:
        if listing.hours is None:
            return f"{listing.base}-{listing.quote}"
        return f"{'XBT' if listing.base == 'BTC' else listing.base}{listing.quote}M"

    def values(self, listing: Listing) -> dict[str, Any]:
        short = self.market_id(listing).removesuffix(f"{listing.quote}M")
        return {**super().values(listing), "short": short}

    def answer(self, path: str, q: Mapping[str, Any]) -> object:  # noqa: PLR0911 - a route each
        match path.removeprefix("/api/").split("/", 1)[1]:
            case "timestamp":
                return self.done(self.now_ms)
            case "symbols":
                return self.done([self.market(each) for each in self.listed(spot=True)])
            case "currencies":
                return self.done([])
            case "market/allTickers":
                return self.done({"time": self.now_ms, "ticker": []})
            case "market/candles":
                return self.done(self.candles(self.find(q["symbol"], spot=True), q))
            case "contracts/active":
                return self.done([self.market(each) for each in self.listed(spot=False)])
            case "kline/query":
                return self.done(self.klines(self.find(q["symbol"], spot=False), q))
            case "contract/funding-rates":
                return self.done(self.funding(self.find(q["symbol"], spot=False), q))
        return Answer({"code": "404000", "msg": "Url Not Found"}, 404)

    def done(self, data: object) -> dict[str, Any]:
        return {"code": "200000", "data": data}

    def unknown(self) -> object:
        return {"code": "400100", "msg": "This pair is not provided at present"}

    def candles(self, listing: Listing, q: Mapping[str, Any]) -> list[list[str]]:
        end = int(q.get("endAt", self.now_ms // 1000 + 1))
        rows = self.rows(listing, int(q.get("startAt", end - 90_000)), end, 1500, newest=True)
        return [
            [str(row.ts), row.open, row.close, row.high, row.low, row.volume, row.quote]
            for row in rows[::-1]
        ]

    def klines(self, listing: Listing, q: Mapping[str, Any]) -> list[list[float | None]]:
        end = int(q.get("to", self.now_ms)) // 1000 + 1
        start = int(q["from"]) / 1000 if "from" in q else end - 200 * 60
        return [
            [1000 * row.ts, *(number(each) for each in row.prices), int(row.contracts)]
            for row in self.rows(listing, start, end, 200)
        ]

    def funding(self, listing: Listing, q: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = self.settled(listing, int(q["from"]), int(q["to"]))
        return [
            {"symbol": q["symbol"], "fundingRate": float(x.rate), "timepoint": x.stamp_ms}
            for x in found[::-1][: min(100, self.trouble.page_cap)]
        ]
