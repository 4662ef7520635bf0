"""Hyperliquid, where every question is a POST to one path, and Deribit, which pays every hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.exchanges.fake.venue import Venue, number
from tests.exchanges.truth import Listing
from tests.other_services.server import Answer

TOKENS = {"BTC": "UBTC", "ETH": "UETH", "SOL": "USOL"}


class Hyperliquid(Venue):
    """Has the latest 5,000 minutes, none without a trade; 500 settlements a call, stamped late."""

    name = "HYPERLIQUID"
    hosts = ("api.hyperliquid.xyz",)
    flat = False
    stamps_ms = (31, 48)

    def listed(self, *, spot: bool) -> Any:
        """Leave out spot markets but those of three coins."""
        return (x for x in super().listed(spot=spot) if not spot or x.base in TOKENS)

    def market_id(self, listing: Listing) -> str:
        if listing.hours is None:
            return f"@{140 + list(TOKENS).index(listing.base)}"
        return f"{'k' if listing.multiplier == 1000 else ''}{listing.base}"

    def answer(self, path: str, q: Mapping[str, Any]) -> object:  # noqa: PLR0911 - a route each
        match q.get("type") if path == "/info" else None:
            case "meta" if "dex" not in q:
                return self.perpetuals()[0]
            case "metaAndAssetCtxs" if "dex" not in q:
                return self.perpetuals()
            case "spotMeta":
                return self.spot()[0]
            case "spotMetaAndAssetCtxs":
                return self.spot()
            case "perpDexs":
                return [None]
            case "candleSnapshot":
                return self.candles(q["req"])
            case "fundingHistory":
                return self.funding(q)
        return Answer(b"Failed to deserialize the JSON body", 422, {"Content-Type": "text/plain"})

    def unknown(self) -> object:
        return Answer(b"null", 500)

    def candles(self, q: Mapping[str, Any]) -> list[dict[str, Any]]:
        listing = self.find(q["coin"], spot=q["coin"].startswith("@"))
        start = max(int(q["startTime"]), self.now_ms - 5000 * 60_000) / 1000
        end = int(q.get("endTime", self.now_ms)) // 1000 + 1
        return [
            {
                "t": 1000 * row.ts,
                "T": 1000 * row.ts + 59_999,
                "s": q["coin"],
                "i": "1m",
                **{x: getattr(row, name) for x, name in zip("ohlcv", NAMES, strict=True)},
                "n": row.trades,
            }
            for row in self.rows(listing, start, end, 5000, newest=True)
        ]

    def funding(self, q: Mapping[str, Any]) -> list[dict[str, Any]]:
        listing = self.find(q["coin"], spot=False)
        limit = min(500, self.trouble.page_cap)
        found = self.settled(listing, int(q["startTime"]), int(q.get("endTime", self.now_ms)))
        return [
            {"coin": q["coin"], "fundingRate": x.rate, "premium": "0.00057962", "time": x.stamp_ms}
            for x in found[:limit]
        ]

    def values(self, listing: Listing) -> dict[str, Any]:
        at = [*TOKENS, listing.base].index(listing.base)
        tokens = {"token": at + 1, "index": at, "token_name": TOKENS.get(listing.base, "")}
        return {**super().values(listing), **tokens}

    def perpetuals(self) -> list[Any]:
        listed = list(self.listed(spot=False))
        universe = [self.market(each) for each in listed]
        return [{"universe": universe}, [self.market(each, "context") for each in listed]]

    def spot(self) -> list[Any]:
        listed = list(self.listed(spot=True))
        dollar = {"name": "USDC", "szDecimals": 8, "weiDecimals": 8, "index": 0}
        tokens = [dollar, *(self.market(each, "token") for each in listed)]
        meta = {"tokens": tokens, "universe": [self.market(each) for each in listed]}
        return [meta, [self.market(each, "spot_context") for each in listed]]


NAMES = ("open", "high", "low", "close", "volume")


class Deribit(Venue):
    """Has a settlement an hour: `interest_1h` was paid, `interest_8h` sums the last eight."""

    name = "DERIBIT"
    hosts = ("www.deribit.com",)

    def market_id(self, listing: Listing) -> str:
        return f"{listing.base}_{listing.quote}{'' if listing.hours is None else '-PERPETUAL'}"

    def answer(self, path: str, q: Mapping[str, Any]) -> object:
        name = str(q.get("instrument_name", ""))
        match path.removeprefix("/api/v2/public/"):
            case "get_time":
                return self.done(self.now_ms)
            case "get_currencies":
                return self.done([])
            case "get_instruments":
                listed = [*self.listed(spot=True), *self.listed(spot=False)]
                return self.done([self.market(each) for each in listed])
            case "get_tradingview_chart_data":
                return self.done(self.chart(self.find(name, spot="-" not in name), q))
            case "get_funding_rate_history":
                told = self.history(self.find(name, spot=False), q)
                return {"jsonrpc": "2.0", "id": 7617, "result": told}
        return Answer({"error": {"code": -32601, "message": "Method not found"}}, 404)

    def done(self, result: object) -> dict[str, Any]:
        timing = {"usIn": 1000 * self.now_ms, "usOut": 1000 * self.now_ms + 374, "usDiff": 374}
        return {"jsonrpc": "2.0", "result": result, **timing, "testnet": False}

    def unknown(self) -> object:
        return Answer({"error": {"code": 13020, "message": "instrument_not_found"}}, 400)

    def chart(self, listing: Listing, q: Mapping[str, Any]) -> dict[str, Any]:
        start, end = int(q["start_timestamp"]), int(q["end_timestamp"])
        rows = self.rows(listing, start / 1000, end // 1000 + 1, 5000)
        columns = {x: [number(getattr(row, x)) for row in rows] for x in NAMES}
        cost = [float(row.quote) for row in rows]
        ticks = [1000 * row.ts for row in rows]
        return {**columns, "cost": cost, "ticks": ticks, "status": "ok" if rows else "no_data"}

    def history(self, listing: Listing, q: Mapping[str, Any]) -> list[dict[str, Any]]:
        start, end = int(q["start_timestamp"]), int(q["end_timestamp"])
        found = self.settled(listing, start - 8 * 3_600_000, end)
        told = []
        for at, each in enumerate(found):
            if each.stamp_ms >= start:
                eight = sum(float(x.rate) for x in found[max(at - 7, 0) : at + 1])
                prices = dict.fromkeys(("index_price", "prev_index_price"), 8222.87)
                interest = {"interest_8h": eight, "interest_1h": float(each.rate)}
                told.append({"timestamp": each.stamp_ms, **prices, **interest})
        return told[: min(744, self.trouble.page_cap)]
