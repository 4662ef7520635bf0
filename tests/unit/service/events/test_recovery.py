"""Events out of the archive's documents, by our own statistics, against what was planted.

The value of a spread, 1e4 ln(sell / buy), is at each minute's end its level, the planted pulses,
and a normal part whose standard deviation is known. Of ten million minutes one in a hundred tests
would see a part beyond 6 of them; of the four minutes that bound each of three hundred episodes,
one test in thirty a part beyond 4. The seeds are fixed: three, and in `make soak` twenty.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from toolkit.market import EventFamily, Leg
from toolkit.service.events.archive import EventArchive
from toolkit.service.events.lives import DEFAULT
from toolkit.service.market.simulator import Simulated
from toolkit.service.market.simulator.catalogue import Pulse
from toolkit.statistics.events import lifecycles
from toolkit.tables import EVENT
from toolkit.wire.event_log import read_document
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS

from ..truth import Truth, beyond

pytestmark = pytest.mark.slow

SEEDS, DAYS = range(int(os.environ.get("RAIL_SEEDS", "2"))), 4
EVERYWHERE, AT_BOUNDS = 6.0, 4.0  # standard deviations
BAR_S, AT_LEAST_S = 60, 120
RULE = DEFAULT.spread
OPEN_BPS, CLOSE_BPS = (1e4 * math.log1p(pct / 100) for pct in (RULE.open, RULE.close))
REFERENCE = Leg.parse("AURORA.spot")
KEY = ["symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market"]


class Pair(NamedTuple):
    """Two legs of one asset, neither stale: the law of their spread holds wherever there are bars.

    ``whole``: there are bars at every minute. ``later``: how much more of its asset's moves the
    sell leg has a minute late.
    """

    symbol: str
    buy: Leg
    sell: Leg
    whole: bool
    level_bps: float
    sd_bps: float
    later: float

    @property
    def key(self) -> tuple[str, ...]:
        legs = (part for leg in (self.buy, self.sell) for part in (leg.exchange, leg.market.value))
        return (self.symbol, *legs)


class Bounds(NamedTuple):
    """Between which moments (s) an episode's event opens, and closes unless its age ends it.

    ``slow``: it may open and close more than once on the ramps. One of its events is open from
    ``opened`` at the latest to ``sure_until``.
    """

    opened: tuple[float, float]
    closed: tuple[float, float]
    sure_until: float
    slow: bool


def pairs(source: Simulated, truth: Truth) -> Iterator[Pair]:
    for symbol, legs in source.listing.items():
        listings = {leg: truth.listing(symbol, leg) for leg in legs}
        whole = {leg: not (each.quiet_share or each.outages) for leg, each in listings.items()}
        fresh = [leg for leg, each in listings.items() if not each.stale_share]
        for buy, sell in permutations(fresh, 2):
            law = truth.spread(symbol, buy, sell)
            if law.same_asset:
                both = whole[buy] and whole[sell]
                later = listings[sell].lag - listings[buy].lag
                yield Pair(symbol, buy, sell, both, law.level_bps, law.sd_bps, later)


def events(source: Simulated, start: int, end: int) -> dict[tuple[str, ...], pl.DataFrame]:
    """The lifecycles of each trajectory, from the archive's documents."""
    archive, route = EventArchive(source), BUILT_IN_EVENTS[EventFamily.SPREAD]
    bodies, _ = archive.page(EventFamily.SPREAD, start, end, limit=10**9, visible_until=end)
    rows = [read_document(route, body, []) for body in reversed(bodies)]
    schema = {name: EVENT.schema[name] for name in (*KEY, "family", "event_id", "event_type")}
    schema |= {name: EVENT.schema[name] for name in ("lifecycle", "ts", "ts_ms")}
    frame = pl.DataFrame(rows, schema).with_row_index("arrival")
    found = lifecycles(frame, start, end, key=("event_id", *KEY))
    assert set(found["kind"]) <= {"closed", "open", "orphan_close", "orphan_update"}
    return {tuple(map(str, key)): part for key, part in found.group_by(KEY)}


def bounds(pulse: Pulse, pair: Pair) -> Bounds | None:
    """The bounds of an episode that is beyond the opening threshold for long enough, else None.

    The earliest moment is where level, pulse and the best chance reach a threshold; the latest is a
    bar after the one where they reach it with the worst chance. A moment may lie up to a bar before
    the earliest: prices run straight from one close to the next. No bar between the opening and the
    last sure one is below the closing threshold where ramps last a bar at most.
    """
    opening, closing = OPEN_BPS - pair.level_bps, CLOSE_BPS - pair.level_bps
    chance = AT_BOUNDS * pair.sd_bps
    if pulse.peak_bps <= 0 or closing - chance <= 0:
        return None
    sure = beyond(pulse, opening + chance)
    if sure is None or sure[1] - sure[0] < AT_LEAST_S:
        return None
    lower = [opening - chance, closing + chance, closing - chance]
    spans = [beyond(pulse, threshold) for threshold in lower]
    assert None not in spans  # as it is beyond a higher one
    (first, _), (_, converging), (_, converged) = spans
    slow = max(pulse.rise_s, pulse.fall_s) > BAR_S
    return Bounds((first, sure[0] + BAR_S), (converging, converged + BAR_S), sure[1], slow)


class Recovered(NamedTuple):
    """Of one seed: the episodes to be found and how many had expired, and the events explained."""

    episodes: int
    expired: int
    explained: int


def check_episode(pulse: Pulse, within: Bounds, lives: pl.DataFrame) -> bool:
    """One event, opened and closed within its bounds; whether its age ended it."""
    near = pl.col("t_open").is_between(pulse.start - BAR_S, pulse.end + BAR_S)
    found = lives.filter(near).sort("t_open").rows(named=True)
    if within.slow:
        assert within.opened[0] - BAR_S <= found[0]["t_open"], pulse
        found = [each for each in found if each["t_open"] < within.opened[1]][-1:]
    (life,) = found
    assert life["kind"] == "closed"
    assert within.opened[0] - BAR_S <= life["t_open"] < within.opened[1], (pulse, life)
    expiry = life["t_open"] + RULE.max_age_s
    converging, converged = within.closed
    converging = min(converging, within.sure_until) if within.slow else converging
    low, high = (min(each, expiry) for each in (converging, converged))
    assert low - BAR_S <= life["t_close"] <= high, (pulse, life)
    assert abs(life["duration_s"] - (life["t_close"] - life["t_open"])) <= 1
    return bool(expiry <= low)


def check_explained(source: Simulated, lives: pl.DataFrame, pair: Pair, pulses: list[Pulse]) -> int:
    """Every event opens where the law and what is planted can reach the threshold; how many.

    A leg that is later than the other is behind it by its part of the asset's last minute.
    """
    opened = lives["t_open"].drop_nulls().to_numpy()
    ends = -(-opened // BAR_S) * BAR_S  # of the bars that opened them
    height = sum((pulse.height_bps(ends) for pulse in pulses), np.zeros(len(opened)))
    reference = source.bars(pair.symbol, REFERENCE)
    for place, end in enumerate(ends.tolist()):
        before, now = reference.between(end - 2 * BAR_S, end).price
        height[place] -= pair.later * 1e4 * np.log(now / before)
    reached = pair.level_bps + height + EVERYWHERE * pair.sd_bps
    assert (reached >= OPEN_BPS).all(), pair
    return len(opened)


def check_seed(seed: int, start: int, end: int) -> Recovered:
    source, truth = Simulated(seed), Truth(seed)
    found = events(source, start, end)
    nothing = next(iter(found.values())).clear()
    episodes = expired = explained = 0
    for pair in pairs(source, truth):
        lives = found.get(pair.key, nothing)
        asked = (pair.symbol, pair.buy, pair.sell, start - BAR_S, end + BAR_S)
        planted = truth.episodes(*asked)
        pulses = planted + truth.leg_shocks(*asked)
        if (
            pair.level_bps + EVERYWHERE * pair.sd_bps < OPEN_BPS
        ):  # else its law alone may open an event
            explained += check_explained(source, lives, pair, pulses)
        for place, pulse in enumerate(planted):
            within = bounds(pulse, pair)
            first, last = pulse.start - BAR_S, pulse.end + BAR_S
            others = pulses[:place] + pulses[place + 1 :]
            alone = all(other.end <= first or other.start >= last for other in others)
            if within is not None and pair.whole and alone and start <= first and last <= end:
                episodes += 1
                expired += check_episode(pulse, within, lives)
    return Recovered(episodes, expired, explained)


def test_lifecycles_of_planted_episodes_are_recovered_and_none_is_invented_in_any_seed(day) -> None:
    window = (day * 86_400, (day + DAYS) * 86_400)
    totals = Recovered(*map(sum, zip(*(check_seed(seed, *window) for seed in SEEDS), strict=True)))
    assert totals.episodes > 12 * len(SEEDS), totals
    assert totals.expired > 0.3 * len(SEEDS), totals
    assert totals.explained > 100 * len(SEEDS), totals
