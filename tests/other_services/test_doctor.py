"""Doctor's exit code is that of a sync: for every kind, with its profile, a part of it and none."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.other_services.data import NOW, sample
from tests.other_services.kinds import KINDS, profile_of, running_other
from tests.other_services.opposite import Opposite
from tests.other_services.server import API_KEY, serving
from tests.other_services.service import Row
from toolkit.intervals import Interval
from toolkit.market import Family, Leg, Trajectory
from toolkit.store import Store

KEY = "BTC_USDT:AURORA.spot"

STREAMS = (
    KEY,
    "BTC_USDT:AURORA.spot:CORONA.futures",
    "funding/BTC_USDT:CORONA.futures:DRACO.futures",
    *(f"events/{family}" for family in ("spread", "splash", "funding")),
)
HISTORIES = ("history.price", "history.spread", "history.funding")
OWN_LOGS = OWN_WORDS = ("nested", "oldest")
"""The kinds of whose profiles the logs, and the spelling, are a needed part."""

Done = subprocess.CompletedProcess[str]
Asked = Callable[..., tuple[Done, Done]]


@pytest.fixture
def doctor_and_sync(rail: Callable[..., Done]) -> Asked:
    """Examine a service, then load it into a store of this name. No process is started."""

    def asked(base_url: str, profile: Path | None, store: str = "rail") -> tuple[Done, Done]:
        known = {"api_key": API_KEY, "base_url": base_url}
        known |= {"profile": str(profile)} if profile else {}
        sync = ("sync", *STREAMS, "--start", "1d", "--store", f"{store}.duckdb")
        doctor, loaded = rail("doctor", **known), rail(*sync, **known)
        assert "Traceback" not in doctor.stderr + loaded.stderr
        return doctor, loaded

    return asked


def without(section: str, profile: str) -> str:
    parts = re.split(r"(?m)^(?=\[)", profile)
    return "".join(part for part in parts if not part.startswith(f"[{section}]"))


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False], ids=["with its profile", "without one"])
@pytest.mark.parametrize("kind", KINDS)
def test_doctor_says_usable_where_a_sync_works_and_only_there(kind, named, doctor_and_sync) -> None:
    with running_other(kind, sample()) as base_url:
        doctor, sync = doctor_and_sync(base_url, profile_of(kind) if named else None)
    code = 0 if named else 1 if kind in OWN_LOGS else 3  # logs as the document has them are read
    assert doctor.returncode == sync.returncode == code, doctor.stdout + sync.stderr
    if named:
        odd = kind == "inforce"  # a rate of an hour, and no more
        assert " ".join(doctor.stdout.split()).count("not understood: no rate") == odd


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_doctor_ends_as_a_sync_of_every_kind_of_stream_where_a_part_of_the_profile_lacks(
    kind: str, tmp_path: Path, doctor_and_sync: Asked
) -> None:
    whole, part = profile_of(kind).read_text(), tmp_path / "part.toml"
    history = HISTORIES[list(KINDS).index(kind) % 3]  # each of two kinds
    codes = {history: 3, "listing": 0, "snapshots.spread": 0}
    codes |= {"events.splash": 3} if kind in OWN_LOGS else {}
    codes |= {"spelling": 3} if kind in OWN_WORDS else {}
    with running_other(kind, sample()) as base_url:
        for section, code in codes.items():
            part.write_text(without(section, whole))
            doctor, sync = doctor_and_sync(base_url, part, section)
            said = f"without {section}: {doctor.stdout}{sync.stderr}"
            assert doctor.returncode == sync.returncode == code, said
            assert ("Partly usable" in doctor.stdout) == (code == 3)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("oldest", 'order = "oldest_first"', ""),
        ("rows", "limit = 500", "limit = 600"),
        ("inforce", 'wire = "at"', 'wire = "as_of"'),
    ],
)
@pytest.mark.slow
def test_a_profile_that_a_sync_cannot_read_by_is_refused_by_doctor_too(
    kind: str, right: str, wrong: str, tmp_path: Path, doctor_and_sync: Asked
) -> None:
    profile = tmp_path / "wrong.toml"
    profile.write_text(profile_of(kind).read_text().replace(right, wrong))
    with running_other(kind, sample()) as base_url:
        doctor, sync = doctor_and_sync(base_url, profile)
    assert doctor.returncode == sync.returncode in (1, 3), doctor.stdout + sync.stderr


NOT_PROVED = {
    **dict.fromkeys(("opposite", "inforce", "oldest", "rows"), ()),
    "nested": ("history/funding",),  # nothing states the unit of a rate
    "opposite-unsaid": ("history/spread", "history/funding"),  # nothing names a parameter
}
"""What the draft alone does not load of a kind."""
PROVED_COLUMNS = {"price", "buy_price", "sell_price", "spread_pct", "differential_pct_8h"}
DAY = Interval(NOW - 86_400, NOW)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_draft_of_doctor_alone_loads_whole_what_it_proves_and_refuses_all_else(
    kind: str, tmp_path: Path, rail: Callable[..., Done], doctor_and_sync: Asked
) -> None:
    draft, not_proved = tmp_path / "draft.toml", NOT_PROVED[kind]
    with running_other(kind, sample()) as base_url:
        found = rail("doctor", "--profile-out", draft.name, api_key=API_KEY, base_url=base_url)
        assert found.returncode == (1 if kind in OWN_LOGS else 3)
        doctor, sync = doctor_and_sync(base_url, draft)
    said = doctor.stdout + sync.stdout + sync.stderr
    assert doctor.returncode == sync.returncode == (3 if not_proved else 0), said
    assert sync.stderr.count("refused: ") == len(not_proved), said
    store = Store(tmp_path / "rail.duckdb")
    for key in STREAMS[:3]:
        held, sent = store.series(key), sample().rows[key].sort("ts")
        if f"history/{Trajectory.parse(key).family}" in not_proved:
            assert held.is_empty()
        else:
            assert_same(held, sent)
    for key in STREAMS[3:]:
        family = key.partition("/")[2]
        sent = sample().events[family].filter(pl.col("ts_ms") >= DAY.start * 1_000)
        assert store.events(family, DAY)["ts_ms"].sort().equals(sent["ts_ms"].sort())


def assert_same(held: pl.DataFrame, sent: pl.DataFrame) -> None:
    """No row is missing between those held, and what is held of it is what was sent."""
    assert held.height > 5
    both = sent.join(held, on="ts", suffix="_held")
    assert both.height == sent.filter(pl.col("ts").is_between(*held["ts"][[0, -1]])).height
    for name in PROVED_COLUMNS & {*sent.columns}:
        known = both.drop_nulls(f"{name}_held")
        assert known.height > 5 or name.endswith("_price")
        assert known[name].to_list() == pytest.approx(known[f"{name}_held"].to_list(), 1e-12)


class Ratios(Opposite):
    """The kind `opposite`, but for its spreads: sell / buy, which stands in its listing unsaid."""

    def record(self, family: Family, row: Row) -> object:
        if family is Family.SPREAD:
            return {"time": row["ts"], "premium_pct": 1 + row["spread_pct"] / 100}
        return super().record(family, row)

    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        return {symbol: {} for symbol in found}


@pytest.mark.slow
def test_a_ratio_read_as_percent_is_wrong_by_a_verdict_and_loads_as_the_exit_code_says(
    tmp_path: Path, rail: Callable[..., Done]
) -> None:
    profile = tmp_path / "ratio.toml"
    profile.write_text(profile_of("opposite").read_text().replace(", reversed = true", "", 1))
    with serving(Ratios(sample())) as base_url:
        known = {"api_key": API_KEY, "base_url": base_url, "profile": str(profile)}
        doctor, sync = (rail(verb, *STREAMS, **known) for verb in ("doctor", "sync"))
        alone = rail("doctor", **known)
    said = " ".join(doctor.stdout.split())
    assert doctor.returncode == sync.returncode == 0, said + sync.stderr
    assert "spread_pct failed BTC_USDT:AURORA.spot:CORONA.futures: premium_pct is 1.00" in said
    assert "; it is sell / buy" in said
    assert "Read by this profile, these would be wrong: spread_pct" in said
    said = " ".join(alone.stdout.split())
    assert alone.returncode == 3
    assert "symbols/search failed 2 symbols, 0 legs" in said
    assert "history/price not asked no key is known" in said
    assert "history/splash-events ok" in said
