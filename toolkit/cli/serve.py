"""`rail serve` runs the local service; `rail mcp` serves a store to an assistant."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import typer

from toolkit.cards import counted
from toolkit.cli.options import asks
from toolkit.cli.show import console, errors, warn_of_public, write_new
from toolkit.commands import ExitCode, rail
from toolkit.errors import InputError, needs_extra
from toolkit.market import format_ts, parse_ts
from toolkit.show.printed import plain_table
from toolkit.workspace import Serving, open_workspace, serve_local, store_path
from toolkit.workspace.local import USUAL, ExchangeChoice, archive_beside, check_exchanges


def _check(choice: ExchangeChoice, save: Path | None) -> None:
    """Ask exchanges one by one and show what each answered. Exit with 1 unless all did."""
    found = {}
    for name, each in check_exchanges(choice):
        errors.print(f"{name} was asked")
        found[name] = each
    table = plain_table("exchange", *next(iter(found.values())).cells)
    for name, each in found.items():
        table.add_row(name, *each.cells.values())
    console.print(table)
    for name, each in found.items():
        for line in each.to_do:
            console.print(f"{name}: {line}")
    if save is not None:
        raw = [
            msgspec.json.encode(answer).decode() for each in found.values() for answer in each.raw
        ]
        write_new("--save", save, "\n".join([*raw, ""]))
        console.print(f"{counted(len(raw), 'raw answer')} in {save}: read it before you send it")
    if good := [name.lower() for name, each in found.items() if each.answers]:
        console.print(f"to read what answers: {rail('serve', '--exchanges', ','.join(good))}")
    if len(good) < len(found):
        raise typer.Exit(ExitCode.REFUSED)


@asks(
    replay="A prices.parquet, funding.parquet or pumps.parquet, or their folder.",
    dataset="Serve only this data set of the file. May be repeated.",
    interval="Serve only bars of this many seconds.",
    rename="Rename a symbol of the file, or a quote currency of exchanges: OLD=NEW.",
    days="How many days of the past to read from exchanges. Default: 7.",
    archive="The file that keeps their answers. Default: STORE.exchanges.duckdb.",
    check="--check-exchanges: Show what each exchange answers here, then exit.",
    save="With --check-exchanges: write one raw answer of each kind to a new file.",
    seed="The seed of the SIMULATED market. Default: 7.",
    owners="A TOML file of owners, plans and keys.",
    now="Stop the service's clock at this time, UTC.",
    retention="Answer only for the last N days.",
    webhooks_to_loopback="Let webhooks go to this machine, over http.",
)
def serve_command(
    replay: Path | None = None,
    dataset: list[str] | None = None,
    interval: int | None = None,
    rename: list[str] | None = None,
    exchanges: str | None = None,
    symbols: str | None = None,
    days: int | None = None,
    archive: Path | None = None,
    check: bool = False,
    save: Path | None = None,
    seed: int | None = None,
    owners: Path | None = None,
    now: str | None = None,
    retention: int | None = None,
    webhooks_to_loopback: bool = False,
    port: int = 8700,
    host: str = "127.0.0.1",
) -> None:
    """Run a local service until Ctrl-C: on a SIMULATED market, a replay, or real exchanges.

    Its demo keys are demo-free, demo-builder and demo-pro. It runs by the wall clock unless --now
    stops its clock. A replay serves all of its data unless --retention limits it, a simulated
    market as much as the key's plan reaches back. --rename lets legs in two quote currencies form
    pairs.

    --exchanges reads public endpoints without an account: the last --days, then every minute. The
    answers stay in --archive, from which the same command resumes. Begin with --check-exchanges;
    docs/exchanges.md lists what each exchange offers.

    Example: rail serve --seed 8 --port 8702
    """
    renamed = dict(_renaming(each) for each in rename or ())
    choice = None
    if check or exchanges is not None:
        choice = ExchangeChoice.read(exchanges or USUAL, symbols, renamed, days)
        renamed = {}
    else:
        _refuse("--exchanges", {"--symbols": symbols, "--days": days, "--archive": archive})
    if check and choice:
        _check(choice, save)
        return
    _refuse("--check-exchanges", {"--save": save})
    demo_keys = "" if owners else ", and the demo keys are known to everybody"
    warn_of_public(host, f"keys and answers can be read on the way{demo_keys}")
    serve_local(
        replay=replay,
        datasets=dataset or (),
        interval_s=interval,
        renamed=renamed,
        seed=seed,
        exchanges=choice,
        archive=archive or archive_beside(store_path()),
        owners=owners,
        webhooks_to_loopback=webhooks_to_loopback,
        now=None if now is None else parse_ts(now, parameter="--now"),
        retention_s=None if retention is None else retention * 86_400,
        host=host,
        port=port,
        ready=_announce,
    )


def _refuse(without: str, given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError(option, str(value), f"one with {without}")


def _renaming(text: str) -> tuple[str, str]:
    old, separator, new = text.partition("=")
    if not (separator and old and new):
        raise InputError("--rename", text, "OLD=NEW, e.g. BTC_USD=BTC_USDT")
    return old, new


def _announce(serving: Serving) -> None:
    at = serving.clock_at
    clock = "wall clock" if at is None else f"clock standing at {format_ts(at)}"
    if serving.source.by_ccxt:
        clock = "its clock is where all legs are known, a minute or two ago"
    counts = f"{counted(serving.symbols, 'symbol')}, {counted(serving.legs, 'leg')}"
    console.print(f"{serving.source.label}: {counts}; {clock}")
    console.print(f"listening at {serving.base_url}; keys: {serving.keys}")
    codes = ", ".join(f"{owner} {code}" for owner, code in serving.codes.items())
    console.print(f"to set webhooks up, sign in once by: {codes}")


@asks(
    http="Serve at http://127.0.0.1:PORT/mcp instead of over stdio.",
    port="With --http: the port to listen on; 0 takes a free one.",
)
def mcp_command(
    store: Path | None = None, fees: Path | None = None, http: bool = False, port: int = 8701
) -> None:
    """Serve the store's statistics to an assistant over MCP, by stdio or local HTTP.

    The tools are read-only: search_streams, screen, coverage, chart, sql, and one per analysis,
    such as summary. Each answer states n, coverage, window, interval and unit, and why a figure is
    null. Over stdio the assistant's program starts this command: docs/assistant.md has the
    settings. It ends when its input ends, or by Ctrl-C.

    Example: rail mcp --http --port 0
    """
    with needs_extra("service"):
        from toolkit.assistant.server import serve_http, serve_stdio  # noqa: PLC0415 - an extra
    with open_workspace(store, fees=fees) as rail:
        if http:
            serve_http(rail, port, lambda url: errors.print(f"MCP at {url}/mcp; Ctrl-C ends it"))
            return
        if sys.stdin.isatty():
            errors.print("waiting for a program's messages; Ctrl-C ends it; --http for an address")
        serve_stdio(rail)
