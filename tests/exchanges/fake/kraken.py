"""Kraken's two exchanges, which have the last hours alone, and Coinbase."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.exchanges.fake.venue import SHORT, Venue, clock_ms, number
from tests.exchanges.truth import Listing, Row
from tests.other_services.server import Answer

ASSETS = {"BTC": "XXBT", "ETH": "XETH", "XRP": "XXRP", "DOGE": "XXDG", "LTC": "XLTC"}


class Kraken(Venue):
    """Spot: always the last 720 minutes, however old `since` is. Half the minutes without a trade
    have a row. Perpetuals are Kraken Futures'."""

    name = "KRAKEN"
    hosts = ("api.kraken.com", "futures.kraken.com")

    def market_id(self, listing: Listing) -> str:
        short = SHORT.get(listing.base, listing.base)
        if listing.hours is not None:
            return f"PF_{short if short == 'XBT' else listing.base}{listing.quote}"
        if listing.base in ASSETS and listing.quote == "USD":
            return f"{ASSETS[listing.base]}ZUSD"
        return f"{short}{listing.quote}"

    def answer(self, path: str, q: Mapping[str, Any]) -> object:  # noqa: PLR0911 - a route each
        match path.split("/")[1:]:
            case ["0", "public", "AssetPairs"]:
                pairs = {self.market_id(each): self.market(each) for each in self.listed(spot=True)}
                return self.done(pairs)
            case ["0", "public", "Assets"]:
                return self.done({})
            case ["0", "public", "Time"]:
                return self.done({"unixtime": self.now_ms // 1000, "rfc1123": ""})
            case ["0", "public", "OHLC"]:
                return self.done(self.ohlc(self.find(q["pair"], spot=True), q))
            case ["derivatives", "api", "v3", "instruments"]:
                listed = [self.market(each) for each in self.listed(spot=False)]
                return {"result": "success", "instruments": listed, "serverTime": self.iso()}
            case ["derivatives", "api", "v4", "historicalfundingrates"]:
                return {"rates": self.rates(self.find(q["symbol"], spot=False))}
            case ["api", "charts", "v1", "trade", market, "1m"]:
                return self.chart(self.find(market, spot=False), q)
        return Answer({"error": ["EGeneral:Unknown method"]}, 404)

    def values(self, listing: Listing) -> dict[str, Any]:
        quote = "ZUSD" if listing.quote == "USD" else listing.quote
        asset = ASSETS.get(listing.base, listing.base)
        return {**super().values(listing), "asset": asset, "quote_asset": quote}

    def done(self, result: object) -> dict[str, Any]:
        return {"error": [], "result": result}

    def unknown(self) -> object:
        return {"error": ["EQuery:Unknown asset pair"]}

    def iso(self, ms: int | None = None) -> str:
        moment = datetime.fromtimestamp((self.now_ms if ms is None else ms) / 1000, tz=UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def ohlc(self, listing: Listing, q: Mapping[str, Any]) -> dict[str, Any]:
        now_s = self.now_ms // 1000
        rows = self.rows(listing, now_s - 720 * 60, now_s + 1, 720, newest=True)
        since = float(q.get("since", 0))
        told = [
            [row.ts, *row.prices, row.vwap, row.volume, row.trades]
            for row in rows
            if row.ts > since and (row.trades or row.ts % 120 == 0)
        ]
        last = max((row.ts for row in rows if self.closed(row)), default=0)
        return {self.market_id(listing): told, "last": last}

    def chart(self, listing: Listing, q: Mapping[str, Any]) -> dict[str, Any]:
        end = float(q.get("to", self.now_ms / 1000))
        start = float(q.get("from", end - 60 * 2000))
        rows = self.rows(listing, start, int(end) + 1, 2000)
        more = bool(rows) and rows[-1].ts + 60 <= min(end, self.now_ms / 1000)
        return {"candles": [self.candle(row) for row in rows], "more_candles": more}

    def candle(self, row: Row) -> dict[str, Any]:
        prices = {x: getattr(row, x) for x in ("open", "high", "low", "close")}
        return {"time": 1000 * row.ts, **prices, "volume": float(row.volume)}

    def rates(self, listing: Listing) -> list[dict[str, str]]:
        price = float(self.price(listing))
        return [
            {
                "timestamp": self.iso(each.stamp_ms),
                "fundingRate": repr(float(each.rate) * price),
                "relativeFundingRate": each.rate,
            }
            for each in self.settled(listing, 0, self.now_ms)[-700:]
        ]


class Coinbase(Venue):
    """Newest first, at most 300 minutes a call (more is an error), none without a trade."""

    name = "COINBASE"
    hosts = ("api.exchange.coinbase.com",)
    flat = False

    def market_id(self, listing: Listing) -> str:
        return f"{listing.base}-{listing.quote}"

    def answer(self, path: str, q: Mapping[str, Any]) -> object:
        match path.split("/")[1:]:
            case ["products"]:
                return [self.market(each) for each in self.listed(spot=True)]
            case ["currencies"]:
                return []
            case ["time"]:
                return {"epoch": self.now_ms / 1000, "iso": ""}
            case ["products", market, "candles"]:
                return self.candles(self.find(market, spot=True), q)
        return self.unknown()

    def candles(self, listing: Listing, q: Mapping[str, Any]) -> object:
        end = clock_ms(q.get("end"), self.now_ms) / 1000
        start = clock_ms(q.get("start"), 1000 * (end - 300 * 60 + 1)) / 1000
        if int(end) // 60 - -(-int(start) // 60) >= 300:
            points = "Count of aggregations requested exceeds 300"
            message = f"granularity too small for the requested time range. {points}"
            return Answer({"message": message}, 400)
        rows = self.rows(listing, start, int(end) + 1, 300, newest=True)
        return [
            [row.ts, *(number(getattr(row, x)) for x in ("low", "high", "open", "close", "volume"))]
            for row in rows[::-1]
        ]
