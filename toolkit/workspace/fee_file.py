"""The user's fee table written from a form or an upload, and named by ``rail.toml``.

What the form does not change stays byte for byte: other dates, comments, withdrawals.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.errors import InputError, needs_extra
from toolkit.statistics.fees import FeeModel
from toolkit.workspace.alert_file import alert_file, write_whole
from toolkit.workspace.rules import fees_file

with needs_extra("dashboard"):
    import tomlkit
    from tomlkit.items import AoT

FORM_FIELDS = ("maker_bps", "taker_bps", "slippage_bps", "gas_quote")
"""What the form has of an entry."""

_NAME = "fees.toml"


def fee_file(store: Path) -> Path:
    """Return the file that the table is written to: the one in force, else ``fees.toml`` beside it.

    >>> fee_file(Path("none/rail.duckdb")).name
    'fees.toml'
    """
    return fees_file(store) or alert_file(store).parent / _NAME


def keep_table(store: Path, text: str) -> FeeModel:
    """Write a whole table, put it in force, and return it.

    The file of that name before is kept with ``.before`` at its end. Raises `InputError`, and
    changes nothing, for a text that is not a fee table.
    """
    table, path = FeeModel.parse(text), fee_file(store)
    if path.exists() and path.read_bytes() != text.encode():
        write_whole(path.with_name(f"{path.name}.before"), path.read_bytes().decode())
    write_whole(path, text)
    _put_in_force(store, path)
    return table


def keep_fees(
    store: Path, fees: Mapping[str, Mapping[str, float | None]], since: dt.date
) -> FeeModel:
    """Write the fees of some exchanges from a date on, put the table in force, and return it.

    ``fees`` has the `FORM_FIELDS` by exchange, in the units of the table, None for unknown. The
    entry of the exchange that begins at that date, without a market, is changed, else one more is
    written, none of only unknown fees. Raises `InputError`, and changes nothing, for a fee that no
    table may have.
    """
    path = fee_file(store)
    text = path.read_bytes().decode() if path.exists() else 'name = "my fees"\n'
    FeeModel.parse(text)
    document = tomlkit.parse(text)
    entries = document.get("fee", AoT([]))
    if not isinstance(entries, AoT):
        raise InputError(f"{path} fee", "fee = [...]", "tables [[fee]]: change it by hand")
    new: list[dict[str, Any]] = []
    for exchange, given in fees.items():
        known = {name: value for name, value in given.items() if value is not None}
        entry = next((e for e in entries if _same(e, exchange, since)), None)
        if entry is not None:
            for name in FORM_FIELDS:
                if name not in known:
                    entry.pop(name, None)
                elif entry.get(name) != known[name]:
                    entry[name] = known[name]
        elif known:
            new.append({"exchange": exchange, "valid_from": since, **known})
    text = tomlkit.dumps(document)
    if new:
        text = f"{text}{'' if text.endswith(chr(10)) else chr(10)}\n{tomlkit.dumps({'fee': new})}"
    table = FeeModel.parse(text)
    write_whole(path, text)
    _put_in_force(store, path)
    return table


def _same(entry: Mapping[str, Any], exchange: str, since: dt.date) -> bool:
    return (
        entry.get("exchange") == exchange
        and entry.get("market") is None
        and entry.get("valid_from") == since
    )


def _put_in_force(store: Path, path: Path) -> None:
    if fees_file(store) is None:
        settings = alert_file(store)
        before = settings.read_bytes().decode() if settings.exists() else ""
        gap = "\n" if before else ""
        write_whole(settings, f'fees = "{path.name}"\n{gap}{before}')
