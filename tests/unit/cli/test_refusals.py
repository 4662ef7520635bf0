"""Every mistake on the command line is one line of our own that says what is allowed."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.market import Source
from toolkit.store import Store, StoreWriter

from ..mistakes.judged import LONGEST, RAW
from .conftest import BRIEF, RATE, STEADY, WINDOW, Rail, refused

KEY = "BTC_USDT:AURORA.spot"
PAIR = "BTC_USDT:AURORA.spot:CORONA.futures"
OTHER = "BTC_USDT:AURORA.spot:BOREAS.spot"
TIMES = f"--start {WINDOW.start} --end {WINDOW.end}"
SECRETS = {
    "api_key": "demo-pro",
    "hook": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "blank": "  ",
    "bad": "not-a-secret-at-all!",
}
FEES = 'name = "mine"\n[[fee]]\nexchange = "AURORA"\nvalid_from = 2017-01-01\ntaker_bps = 3.0\n'
NONE, DASHED = "--store none.duckdb", "app --no-browser"

Mistakes = list[tuple[str, tuple[str, ...]]]

TYPED: Mistakes = [
    ("sink", ("No such command 'sink'",)),
    ("stats spreads", ("'spreads'", "spread")),
    ("stats spread --sideways", ("--sideways",)),
    ("stats funding --min-coverage most", ("--min-coverage", "number")),
    ("events survival spred", ("spred",)),
    ("events rates --by hour", ("'symbol', 'legs', 'exchange', 'size'",)),
    ("screen price", ("'spread', 'funding', 'snapshot-spread', 'snapshot-funding'",)),
    (f"sync {KEY} --workers 0", ("--workers",)),
    (f"sync {KEY} --workers four", ("--workers",)),
    (f"sync {KEY} --strat 2026-11-02", ("--strat", "--start")),
    ("webhook", ("--secret-env",)),
]
"""What typer finds, which ends with 2."""

KEYS: Mistakes = [
    ("sync BTC_USDT:AURORRA.spot", ("is not listed by the service", f"nearest: {KEY}")),
    ("sync BTC_USDX:AURORA.spot", ("is not listed by the service", f"nearest: {KEY}")),
    ("sync btc_usdt", ("'btc_usdt'", "SYMBOL:EXCHANGE.market")),
    ("sync btc_usdt:aurora.spot", ("exchange: 'aurora'", "nearest: AURORA")),
    ("sync BTC_USDT:AURORA.perp", ("market: 'perp'", "spot, futures, dex")),
    ("sync events/spreads", ("'spreads'", "nearest: spread")),
    ("sync event/spread", ("'event/spread'", "nearest: events/spread")),
    ("sync snapshot/symbol", ("'symbol'", "nearest: symbols")),
    ("sync ''", ("SYMBOL:EXCHANGE.market",)),
    ("sync", ("--all-prices",)),
    *(
        (f"sync --all-{which} --symbol NO_SUCH", ("'NO_SUCH'", "BTC_USDT"))
        for which in ("prices", "spreads", "funding")
    ),
    (f"sync {KEY} --symbol BTC_USDT", ("--symbol", "--all")),
    (f"sync {KEY} --top 3", ("--plan",)),
    ("symbols NOSUCH", ("lists no symbol with 'NOSUCH' in its name",)),
    (f"stats spread {KEY}", ("two legs: SYMBOL:BUY.market:SELL.market",)),
    (f"stats funding {KEY}", ("two legs: SYMBOL:BUY.market:SELL.market",)),
    (f"stats spread {OTHER}", (PAIR, f"`rail sync {OTHER} --base-url http")),
    ("stats spread BTC_USDT:AURORA.spot:CORNA.futures", (f"nearest: {PAIR};", "rail sync")),
    ("stats funding BTC_USDT:AURORA.futures:CORONNA.futures", ("CORONA", "rail sync")),
    ("events study spread --on XRP_USDT:AURORA.spot", ("no rows of XRP_USDT:AURORA.spot",)),
    (f"events payoff {TIMES}", ("holds none of the", "loads the first")),
    ("report symbol XRP_USDT", ("holds nothing of XRP_USDT",)),
    ("follow BTC", ("watchlist streams: 'BTC' is not allowed",)),
    (f"open pair/{KEY}/BTC_USDT:BOREAS.spot --port 1", ("BTC_USDT:BOREAS.spot",)),
    (f"open pair/{KEY} --port 1", ("allowed: pair/SYMBOL:EXCHANGE.market",)),
    ("open BTC_USDT:AURORA.spot:CORNA.futures --port 1", (f"nearest: {PAIR}",)),
    ("open snapshot/spread --port 1", ("allowed: a trajectory or an event log",)),
    ("open BTC --port 1", ("'BTC' is not allowed",)),
    ("notebook 0", ("one of 00_quickstart, 01_loading, ",)),
    ("notebook quickstart", ("one of 00_quickstart, 01_loading, ",)),
]

MOMENTS: Mistakes = [
    (f"sync {KEY} --start 1793750400000", ("--start", "milliseconds")),
    (f"sync {KEY} --start 2026-11-02 --end 2026-11-01", ("a start before its end",)),
    (f"sync {KEY} --start 2026-11-02 --end 2026-11-02", ("a start before its end",)),
    (f"sync {KEY} --start 'last week'", ("'last week'", "2023-03-01")),
    (f"sync {KEY} --start 2026-11-02 --end yesterday", ("--end: 'yesterday'", "2023-03-01")),
    (f"sync {KEY} --end 2026-11", ("--end: '2026-11'", "2023-03-01")),
    (f"stats spread {PAIR} --start 1793750400000", ("--start", "milliseconds")),
    ("stats spread --start 2020-01-01 --end 2020-01-02", ("holds nothing in", PAIR)),
    ("stats spread --start 2026-11-02 --end 2026-11-01", ("a start before its end",)),
    *(
        (f"stats {command} --start noon {NONE}", ("--start: 'noon' is not allowed",))
        for command in ("spread", "funding", "events")
    ),
    (f"events survival --start noon {NONE}", ("--start: 'noon' is not allowed",)),
    ("stats events --start soon", ("--start: 'soon'", "2023-03-01")),
    ("stats persistence --start 2020-01-01 --end 2020-02-01", ("holds nothing in",)),
    ("events channels --start 2001-01-01 --end 2001-01-02", ("no event in",)),
    ("events audit --start 2026-01-01 --end 2026-01-02", ("holds nothing of events/spread in",)),
    ("events payoff --start 2026-11-02 --end 2026-11-03", ("no spread event",)),
    ("events payoff --start noon", ("--start: 'noon'",)),
    ("screen --start 2026-13-01", ("--start",)),
    ("report spread --start soon", ("--start",)),
    ("follow events/spread --since soon", ("since: 'soon' is not allowed",)),
    ("follow events/spread --for 5x", ("--for: '5x' is not allowed",)),
    ("follow events/spread --for 0s", ("--for: '0s' is not allowed",)),
    ("serve --port 0 --now noon", ("--now: 'noon' is not allowed",)),
    ("stats spread --as-of 2023-11-01", ("held nothing as of 2023-11-01",)),
    ("stats spread --as-of 2999-01-01", ("--as-of: '2999-01-01 00:00 UTC'", "a time that has")),
    ("stats spread --as-of then", ("--as-of: 'then' is not allowed",)),
]

OPTIONS: Mistakes = [
    ("stats funding --min-coverage 95", ("min_coverage: 95", "a part of the window, 0 to 1")),
    ("stats persistence --band -1", ("percent a year from 0",)),
    ("stats dispersion --bucket 7h", ("divides a day",)),
    ("stats dispersion --min-coverage 2", ("a part of the window",)),
    ("stats carry --horizon '1 month'", ("a length such as",)),
    ("stats carry --horizon 8h --every 0h", ("a length such as",)),
    (f"stats time-to-close --enter-bps 1 --exit-bps 2 {NONE}", ("exit_bps: 2.0",)),
    ("status --format explain", ("for statistics, whose rows have a method",)),
    ("events audit --enter-bps -1", ("above 0",)),
    ("events open spread --back week", ("back: 'week'",)),
    ("events payoff --delay soon", ("--delay: 'soon'",)),
    ("events payoff --delay 0 --delay 0s", ("each of them once",)),
    ("events payoff --limit 0", ("limit_s: 0",)),
    ("events payoff --exit-bps inf", ("exit_bps: inf",)),
    ("events payoff --exit-delay x", ("--exit-delay: 'x'",)),
    ("events payoff --sort n_event", ("nearest: n_events",)),
    ("events rates --sort rank", ("rank",)),
    ("events study spread --before soon", ("--before: 'soon'",)),
    ("events together --within soon", ("--within: 'soon' is not allowed",)),
    ("follow --list --sort pair", ("--sort: 'pair' is not allowed",)),
    (f"follow {KEY} --watchlist a.toml", ("--watchlist: 'a.toml'", "allowed: none")),
    ("report spread --part tail_indx", ("nearest: tail_index",)),
    ("report spread --part episodes", ("--part: 'episodes'",)),
    ("report --store a.duckdb spread", ("after `rail report spread`",)),
    ("report spread --cluster 2", ("over published data",)),
    ("report funding --to r.pdf", ("a name that ends in .html",)),
    ("screen --sort half_life", ("--sort: 'half_life'", "nearest: half_life_s")),
    ("screen --where 'coverage >'", ("--where",)),
    ("screen --exclude-flag stale", ("--exclude-flag: 'stale'",)),
    ("screen funding --exclude-flag any", ("exclude-flag: 'any'", "spreads")),
    ("screen snapshot-funding", ("holds no snapshot-funding yet; `rail sync snapshot/",)),
    ("screen snapshot-funding --style maker", ("--style: 'maker'", "not for rates in force")),
    ("demo --symbols BTC_USDT", ("one with --exchanges",)),
]

FEE_TABLES: Mistakes = [
    ("fees", ("rail fees --example > fees.toml",)),
    ("fees --fees none.toml", ("none.toml",)),
    ("fees --fees mine.toml --style both", ("style: 'both'",)),
    ("fees --fees mine.toml --notional 0", ("notional",)),
    (f"fees --fees mine.toml {NONE}", ("there is no store at",)),
    *(
        (f"{command} --style maker", ("--style", "with a fee table"))
        for command in ("fees", "screen", "events payoff")
    ),
    ("stats spread --notional 5", ("with a fee table",)),
    ("stats spread --where 'net_share >= 0'", ("net_share",)),
    ("screen --where 'net_share > 0.1'", ("--where: 'net_share'", "with a fee table")),
    (
        f"stats net-episodes {PAIR}",
        ("--fees: nothing is given", "`rail fees --example > fees.toml` writes one"),
    ),
    ("stats funding --fees mine.toml --style transfer", ("is held",)),
    ("events payoff --fees mine.toml --style transfer", ("opens and closes a position",)),
]

PLACES: Mistakes = [
    *(
        (f"{command} {NONE}", ("no store at", "makes one, `rail demo` one to look at"))
        for command in ("status", "stats spread", "stats funding", "stats events", "events payoff")
    ),
    (f"{DASHED} {NONE}", ("none.duckdb; `rail sync --watchlist --store ",)),
    ("stats spread --store nowhere/none.duckdb", ("no store at",)),
    *(
        (f"{command} --store notes.txt", ("is not a store of this toolkit",))
        for command in ("status", "stats spread", f"sync {KEY}", DASHED)
    ),
    ("status --store .", ("is a directory; name a file",)),
    (f"{DASHED} --store .", ("is a directory; name a file",)),
    (f"sync {KEY} --store notes.txt/x.duckdb", ("notes.txt is not a directory",)),
    (f"sync {KEY} --store /proc/x.duckdb", ("/proc/x.duckdb",)),
    ("notebook --to away/my.ipynb", ("no such file",)),
    ("follow --watchlist none.toml", ("watchlist: 'none.toml' is not allowed",)),
    ("report --verify rail.duckdb", ("no recipe in it",)),
    ("import nowhere", ("nowhere/manifest.json is missing",)),
    (f"store publish archive {NONE}", ("there is no store",)),
    ("store publications nowhere", ("nothing is published in nowhere",)),
    ("serve --replay none", ("there is no such file",)),
    ("serve --port 0 --owners none.toml", ("none.toml",)),
    ("status --store other/manifest.json", ("not a manifest of published data",)),
    ("import vendor.csv", ("--stream",)),
    ("import vendor.csv --stream BTC_USD:VENDOR.spot --map price", ("ours=theirs",)),
]

SERVERS: Mistakes = [
    (f"sync {KEY} --base-url 127.0.0.1:8700", ("http://HOST",)),
    (f"sync {KEY} --base-url https://rail.example", ("https://rail.example",)),
    ("symbols --base-url ftp://127.0.0.1", ("http://HOST",)),
    ("doctor --base-url rail", ("http://HOST",)),
    *(
        (f"serve --port 0 --rename {text}", ("--rename", "OLD=NEW, e.g. BTC_USD=BTC_USDT"))
        for text in ("BTC_USD", "=BTC_USDT", "BTC_USD=")
    ),
    ("serve --exchanges binanse", ("'binanse'", "allowed: usual, binance, ", "nearest: binance")),
    ("serve --exchanges ,", ("exchanges: '' is not allowed",)),
    ("serve --exchanges okx --symbols BTCUSDT", ("symbol: 'BTCUSDT' is not allowed",)),
    ("serve --exchanges okx --days 0", ("days: 0 is not allowed; allowed: 1 to 366",)),
    ("serve --exchanges okx --seed 8", ("seed: '8'", "allowed: none beside exchanges")),
    ("serve --exchanges okx --now 2026-11-01", ("now: '",)),
    ("serve --exchanges okx --replay there", ("replay: 'there' is not allowed",)),
    ("serve --symbols BTC_USDT", ("--symbols: 'BTC_USDT'", "one with --exchanges")),
    ("serve --days 2", ("--days: '2'", "one with --exchanges")),
    ("serve --save a.jsonl", ("--save: 'a.jsonl'", "one with --check-exchanges")),
    *((f"{DASHED} --port {port}", ("a free port",)) for port in ("-1", "65536")),
    *(
        (f"{command} --host {host}", ("an address of this machine alone; or add --share",))
        for command, host in (
            *((DASHED, host) for host in ("0.0.0.0", "desk.lan")),
            ("open events/spread --no-browser", "0.0.0.0"),
        )
    ),
    (f"{DASHED} --name desk.example", ("one with --share",)),
    (f"{DASHED} --proxy 10.0.0.1", ("one with --share",)),
    (f"{DASHED} --share --proxy desk.example", ("an address or a network in numbers",)),
    (f"{DASHED} --share", ("a password or an OpenID Connect provider", "--set-password`")),
    (f"{DASHED} --share --name https://desk.example", ("a host name, such as",)),
    *(
        (f"webhook --secret-env {name}", (name, "a variable that is set"))
        for name in ("RAIL_UNSET", "RAIL_BLANK")
    ),
    ("webhook --secret-env RAIL_BAD", ("secret",)),
    ("webhook --secret-env RAIL_HOOK --signed '{timestamp}.{body}'", ("--header",)),
    ("webhook --secret-env RAIL_HOOK --encoding base64", ("--header",)),
    (f"webhook --secret-env RAIL_HOOK --port 0 {NONE}", ("none.duckdb",)),
]

MISTAKES = [*TYPED, *KEYS, *MOMENTS, *OPTIONS, *FEE_TABLES, *PLACES, *SERVERS]


def line_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a refusal."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("rail: ")
    assert not RAW.search(line), line
    assert not any(SECRETS[name] in line for name in ("hook", "bad")), line
    return line


def check_mistake(rail: Rail, service: str, folder: Path, typed: str, *words: str) -> None:
    """Type a mistake in the folder of a store, and judge the line and what is in the folder."""
    (folder / "notes.txt").write_text("ts,price\n" * 1_000)
    (folder / "mine.toml").write_text(FEES)
    (folder / "other").mkdir()
    (folder / "other" / "manifest.json").write_text("{}")
    (folder / "vendor.csv").write_text("ts,price\n1678406400,1.0\n")
    before = sorted(folder.iterdir())
    done = rail(*shlex.split(typed), base_url=service, **SECRETS)
    line = line_of(done)
    assert len(line) <= LONGEST
    assert [word for word in words if word not in line] == [], line
    by_typer = any(typed == each for each, _ in TYPED)
    assert done.returncode == (2 if by_typer else 1)
    assert line.endswith(" --help` lists what there is") == by_typer
    assert "Value error" not in line
    assert ".;" not in line
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(("typed", "words"), MISTAKES, ids=[typed for typed, _ in MISTAKES])
def test_a_mistake_is_one_line_that_says_what_is_right(
    rail: Rail, service: str, held: Store, typed: str, words: tuple[str, ...]
) -> None:
    check_mistake(rail, service, held.path.parent, typed, *words)


def test_a_window_after_the_services_clock(rail: Rail, service: str, held_copy: Store) -> None:
    asked = f"sync {KEY} --start 2030-01-01 --end 2030-01-02"
    said = "nothing in [2030-01-01 00:00 UTC, 2030-01-02 00:00 UTC)"
    clock = "its clock reads 2026-11-04 00:00 UTC"
    check_mistake(rail, service, held_copy.path.parent, asked, said, clock)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("stats spread", "holds no spread; `rail stats spread 'snapshot-spread/*'"),
        (f"stats spread {STEADY} {PAIR}", "keys of one kind: all of spread, or all of snapshot-sp"),
        ("stats spread snapshot-spread/ETH*", "a pattern that matches a key held"),
        (f"stats spread {RATE}", "two legs"),
        (f"stats spread {BRIEF.replace('C.', 'D.')}", "nearest: snapshot-spread/BTC_USDT:A.spot:"),
        (f"stats funding {RATE} --min-coverage 0.5", "for settlements, not for rates in force"),
        (f"stats funding {RATE} --sort funding_bps", "--sort: 'funding_bps' is not allowed"),
        (f"stats funding {RATE} --where 'carry_bps > 1'", "--where: 'carry_bps' is not allowed"),
        (f"stats spread {STEADY} --start 2026-10-01 --end 2026-10-02", "holds nothing in"),
        ("screen snapshot-funding --exclude-flag any", "exclude-flag: 'any' is not allowed"),
        ("events audit", "rail sync"),
    ],
)
def test_what_snapshots_cannot_answer_is_refused(rail: Rail, typed: str, words: str) -> None:
    assert words in line_of(rail(*shlex.split(typed)))


def test_a_wrong_key(rail: Rail, service: str) -> None:
    for command in (("sync", KEY), ("symbols",)):
        line = refused(rail(*command, base_url=service, api_key="sekrit-4711"))
        assert "refused the key (401)" in line
        assert "RAIL_API_KEY" in line
        assert "sekrit-4711" not in line


@pytest.mark.parametrize("command", [f"sync {KEY}", "symbols"])
def test_no_service_at_the_address(rail: Rail, workdir: Path, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    line = refused(rail(*command.split(), base_url=f"http://127.0.0.1:{port}"))
    assert f"no answer from http://127.0.0.1:{port}" in line
    assert "is the service running" in line
    assert "`rail serve` starts a local one" in line
    assert "`rail demo`" in line
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("base_url", ["https://rail.example", "http://rail.example"])
def test_no_key_for_an_address_elsewhere(rail: Rail, base_url: str) -> None:
    assert "set RAIL_API_KEY" in refused(rail("sync", KEY, base_url=base_url))


@pytest.mark.parametrize(
    "command",
    [
        ("sync", KEY),
        ("symbols",),
        ("follow", KEY),
        ("doctor",),
        ("webhook", "--secret-env", "RAIL_HOOK", "--base-url", "http://rail.example"),
    ],
    ids=lambda command: command[0],
)
def test_http_off_this_machine_is_refused_by_every_command_that_asks_a_service(
    rail: Rail, command: tuple[str, ...]
) -> None:
    given = SECRETS | {"api_key": "k9-secret-0042"}
    said = refused(rail(*command, base_url="http://rail.example", **given))
    assert "base_url: 'http://rail.example' is not allowed" in said
    assert "--allow-http or RAIL_ALLOW_HTTP=1" in said
    assert "k9-secret-0042" not in said
    nowhere = "http://no.such.host.invalid"
    other = [nowhere if part == "http://rail.example" else part for part in command]
    allowed = rail(*other, "--allow-http", base_url=nowhere, **given)
    assert "is not allowed" not in allowed.stdout + allowed.stderr
    assert allowed.returncode != 0


def test_a_profile_that_cannot_be_read(rail: Rail, service: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[history.spread]\nfields.mid = { wire = 'm' }\n")
    for name in ("none.toml", "mine.toml"):
        for command in (("sync", KEY), ("doctor",)):
            assert name in refused(rail(*command, base_url=service, profile=name))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((KEY, "--start", "noon"), "--start: 'noon'"),
        ((KEY, "--end", "2026-13-01"), "--end: '2026-13-01'"),
        ((KEY, "--start", "2026-11-03", "--end", "2026-11-02"), "2026-11-03"),
        (("--all-spreads", "--start", "noon"), "--start: 'noon'"),
        (("BTC", "--start", "2026-11-03"), "'BTC'"),
    ],
)
def test_what_is_typed_wrong_is_refused_before_the_service_is_asked(
    rail: Rail, arguments: tuple[str, ...], named: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unasked:
        unasked.settimeout(0)
        port = unasked.getsockname()[1]
        line = refused(rail("sync", *arguments, base_url=f"http://127.0.0.1:{port}"))
        with pytest.raises(BlockingIOError):
            unasked.accept()
    assert named in line


@pytest.mark.usefixtures("held")
def test_a_port_that_is_taken(rail: Rail) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        webhook = ("webhook", "--secret-env", "RAIL_HOOK")
        for command in (("serve",), webhook):
            assert "a free port" in refused(rail(*command, "--port", port, **SECRETS))


@pytest.mark.slow  # it waits as long as a command does
def test_a_store_held_by_another_process(rail: Rail, service: str, tmp_path: Path) -> None:
    StoreWriter(Store(tmp_path / "rail.duckdb")).bind(Source("simulated", "held"))
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import duckdb, sys; c = duckdb.connect('rail.duckdb'); print(1, flush=True); input()",
        ],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.read(1)
    try:
        line = refused(rail("sync", KEY, base_url=service))
    finally:
        holder.communicate(b"\n")
    assert f"held open by process {holder.pid}" in line


@pytest.mark.parametrize("command", [f"sync {KEY}", "demo --once --store rail.duckdb"])
def test_a_store_of_another_source_is_left_as_it_is(
    rail: Rail, service: str, tmp_path: Path, command: str
) -> None:
    elsewhere = Source("live", "elsewhere")
    StoreWriter(Store(tmp_path / "rail.duckdb")).bind(elsewhere)
    line = refused(rail(*command.split(), base_url=service))
    assert "elsewhere" in line
    assert "never mixes sources" in line
    assert Store(tmp_path / "rail.duckdb").source == elsewhere
