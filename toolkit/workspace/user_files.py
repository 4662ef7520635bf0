"""Alert rules and fee tables written to the user's files, other bytes unchanged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.alerts import read_alerts
from toolkit.errors import InputError, StoreError, needs_extra
from toolkit.files import replace_file
from toolkit.statistics.fees import FeeModel
from toolkit.workspace.rail_toml import FILE_NAME, fees_file, read_settings, settings_file

with needs_extra("dashboard"):
    import tomlkit
    from tomlkit.items import AoT


def alert_file(store: Path) -> Path:
    """Return the ``rail.toml`` to write rules to: the one read, else beside the store.

    >>> alert_file(Path("none/rail.duckdb")).name
    'rail.toml'
    """
    return settings_file(store) or store.absolute().parent / FILE_NAME


def keep_rule(path: Path, table: Mapping[str, Any], name: str | None = None) -> None:
    """Write a rule: over the one of ``name``, whose other fields stay, or as a new one.

    None removes a field. Raises `InputError`, and changes nothing, for an invalid rule, a name that
    another rule has, and an unknown ``name``.
    """
    text = _text(path)
    given = {field: value for field, value in table.items() if value is not None}
    if name is None:
        rule = tomlkit.dumps({"alert": [given]})
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        if not isinstance(tomlkit.parse(text).get("alert", AoT([])), AoT):
            raise _other_form(path)
        _write(path, f"{text}{gap}{rule}")
        return
    document, place = _found(path, text, name)
    _change(document["alert"][place], table)
    _write(path, tomlkit.dumps(document))


def _change(kept: Any, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is None:
            kept.pop(name, None)
        elif kept.get(name) != value:
            kept[name] = value


def remove_rule(path: Path, name: str) -> None:
    """Remove a rule. Raises `InputError` for an unknown name."""
    document, place = _found(path, _text(path), name)
    rules = document["alert"]
    if len(rules) == 1:
        del document["alert"]
    else:
        del rules[place]
    _write(path, tomlkit.dumps(document))


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    read_settings(path, "alerts")  # refuses what is none of ours
    return path.read_bytes().decode()


def _found(path: Path, text: str, name: str) -> tuple[tomlkit.TOMLDocument, int]:
    document = tomlkit.parse(text)
    rules = document.get("alert", [])
    names = [rule.get("name") for rule in rules]
    if name not in names:
        raise InputError("rule", name, names or "none: the file has no [[alert]]")
    if not isinstance(rules, AoT):
        raise _other_form(path)
    return document, names.index(name)


def _other_form(path: Path) -> InputError:
    return InputError(f"{path} alert", "alert = [...]", "tables [[alert]]: change it by hand")


def _write(path: Path, text: str) -> None:
    document = tomlkit.parse(text).unwrap()
    read_alerts(document.get("alert", []), f"{path} alert")
    write_whole(path, text)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically. Raises `StoreError` if it cannot be written."""
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        replace_file(target, text.encode(), mode=mode)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StoreError(f"{path} cannot be written ({why})", path=str(path)) from None


FORM_FIELDS = ("maker_bps", "taker_bps", "slippage_bps", "gas_quote")
"""The fields of an entry in the form."""

_NAME = "fees.toml"


def fee_file(store: Path) -> Path:
    """Return the fee table's file: the one in force, else ``fees.toml`` beside `alert_file`.

    >>> fee_file(Path("none/rail.duckdb")).name
    'fees.toml'
    """
    return fees_file(store) or alert_file(store).parent / _NAME


def keep_table(store: Path, text: str) -> FeeModel:
    """Write a whole fee table, put it in force, and return it.

    The replaced file gets the suffix ``.before``. Raises `InputError`, and changes nothing, for a
    text that is not a fee table.
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

    ``fees`` has the `FORM_FIELDS` by exchange, in the table's units, None for unknown. They change
    or become the exchange's entry of that date without a market. Raises `InputError`, and changes
    nothing, for an invalid fee.
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
            _change(entry, dict.fromkeys(FORM_FIELDS) | known)
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
