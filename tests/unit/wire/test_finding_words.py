"""Every kind of finding has words, and a line of them names count, place and profile."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import toolkit
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.wire.event_log import read_document
from toolkit.wire.exchange import Response
from toolkit.wire.finding_words import WORDS, as_rows, explained
from toolkit.wire.findings import Finding
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.rows.rows import read_history_page

ROOT = Path(toolkit.__file__).parent
NAMED_ELSEWHERE = {
    "wire/agreement.py": {"sign_disagrees", "value_disagrees"},
    "wire/findings.py": set(),  # of a kind that was counted before
    "wire/listing.py": {"listing_cut", "listing_unstated"},
    "wire/rows/rows.py": {"field_missing", "field_unknown", "type_changed"},
}
"""The kinds of the modules that make a finding of a kind in a variable."""

KEY = Trajectory.parse("BTC_USDT:KRAKEN.spot")
ROWS = "/api/v1/data/history/spread.spread_pct"
DOCUMENTS = "/api/v1/data/history/splash-events.symbol"
OF_DOCUMENTS = {
    *("more_without_more", "paging_unnamed", "outside_window", "not_newest_first", "not_a_name"),
    *("without_time", "out_of_range", "document_too_large", "document_unreadable"),
}


def kinds_made() -> tuple[set[str], set[str]]:
    """Return the kinds that are written where a finding is made, and the modules of the others."""
    kinds, elsewhere = set[str](), set[str]()
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "Finding(" in text else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id != "Finding" or not node.args:
                continue
            kind = node.args[0]
            if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                kinds.add(kind.value)
            else:
                elsewhere.add(path.relative_to(ROOT).as_posix())
    return kinds, elsewhere


def test_each_kind_in_the_code_has_words_and_no_other() -> None:
    kinds, elsewhere = kinds_made()
    assert elsewhere == NAMED_ELSEWHERE.keys()
    for module, named in NAMED_ELSEWHERE.items():
        text = (ROOT / module).read_text()
        assert all(f'"{kind}"' in text for kind in named)
    assert kinds.union(*NAMED_ELSEWHERE.values()) == WORDS.keys()


@pytest.mark.parametrize(
    ("where", "profile"),
    [
        ("/api/v1/data/history/price.volume", "[history.price] fields.volume ="),
        ("data.get_funding_history.buy_rate", "[history.funding] fields.buy_rate ="),
        ("/api/v1/data/history/price.odd", "[history.price] fields.COLUMN ="),
        ("/elsewhere.volume", "[history.FAMILY] fields.COLUMN ="),
    ],
)
def test_the_profile_s_entry_is_that_of_the_place(where: str, profile: str) -> None:
    (line,) = explained([{"kind": "field_missing", "where": where, "says": "", "times": 1}])
    assert f"profile: {profile}" in line


OWN_NAMES = """
[history.price]
path = "/v9/candles"
items = "rows"
fields.mark_price = { wire = "px.mark" }
[events.splash]
path = "/v9/jumps"
"""


def test_the_places_of_another_service_are_those_of_the_profile_it_was_read_by() -> None:
    profile = UserProfile.parsed(Path("own.toml"), OWN_NAMES).applied(BUILT_IN)
    body = b'{"rows": [{"ts": 60, "price": 9, "volume": 1, "px": {}}], "next_end_time": 60}'
    page = read_history_page(profile.histories[Family.PRICE], KEY, Response(200, {}, body))
    findings: list[Finding] = []
    read_document(profile.events[EventFamily.SPLASH], b'{"ts": 60, "market": "a b"}', findings)
    found = [(each, 1) for each in (*page.findings, *findings)]
    rows = as_rows(found, profile)
    lines = "\n".join(explained(json.loads(json.dumps(rows))))
    assert "[history.price] fields.mark_price = " in lines
    assert '[events.splash] paths.buy_market = ["..."]' in lines
    assert "FAMILY" not in lines
    assert "[history.FAMILY]" in "\n".join(explained(as_rows(found)))


def test_a_field_that_nothing_takes_is_named_in_the_profile_s_entry() -> None:
    where = '/api/v1/data/history/price.a"b'
    (line,) = explained([{"kind": "field_unknown", "where": where, "says": "", "times": 1}])
    assert line.endswith(r'[history.price] fields.COLUMN = { wire = "a\"b", unit = "..." }')


def test_a_line_has_count_first_example_and_the_other_places() -> None:
    found = [{"kind": "refused", "where": f"events/{n}", "says": "no", "times": n} for n in "1234"]
    (line,) = explained([each | {"times": int(str(each["times"]))} for each in found])
    assert "(refused, 10 times); first: events/1: no; also: events/2, events/3, events/4" in line


def test_a_kind_of_a_later_version_is_named_as_it_is() -> None:
    (line,) = explained([{"kind": "of_later"}])
    assert line == "of_later (1 time); first: not kept"
    assert explained([]) == []


@pytest.mark.parametrize("kind", sorted(WORDS))
def test_what_is_to_be_written_is_a_line_that_the_file_can_have(kind: str) -> None:
    where = DOCUMENTS if kind in OF_DOCUMENTS else ROWS
    (line,) = explained([{"kind": kind, "where": where, "says": "", "times": 1}])
    written = line.partition("; profile: ")[2]
    assert bool(written) == (not line.endswith("nothing to write"))
    section, _, entry = written.replace('"/..."', '"/x"').partition("] ")
    entry = entry.replace('unit = "..."', 'unit = "bps"').replace("COLUMN", "spread_pct")
    at_top = not written.startswith("[")
    said = written if at_top else f"{section}]\n{entry}\n"
    UserProfile.parsed(Path("profile.toml"), said).applied(BUILT_IN)
