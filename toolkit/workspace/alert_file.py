"""Rules of alerts added to a ``rail.toml``, changed and removed: the rest stays byte for byte."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.alerts import read_alerts
from toolkit.errors import InputError, StoreError, needs_extra
from toolkit.workspace.rules import FILE_NAME, read_settings, settings_file

with needs_extra("dashboard"):
    import tomlkit
    from tomlkit.items import AoT


def alert_file(store: Path) -> Path:
    """Return the file that rules are written to: the one that is read, else one beside the store.

    >>> alert_file(Path("none/rail.duckdb")).name
    'rail.toml'
    """
    return settings_file(store) or store.absolute().parent / FILE_NAME


def keep_rule(path: Path, table: Mapping[str, Any], name: str | None = None) -> None:
    """Write a rule: in place of the one of ``name``, whose other fields stay, or as one more.

    A field that is None is taken out. Raises `InputError`, and changes nothing, for what is not a
    rule, for a name that another rule has, and where there is no rule of ``name``.
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
    kept = document["alert"][place]
    for field, value in table.items():
        if value is None:
            kept.pop(field, None)
        elif kept.get(field) != value:
            kept[field] = value
    _write(path, tomlkit.dumps(document))


def remove_rule(path: Path, name: str) -> None:
    """Take a rule out. Raises `InputError` where there is none of the name."""
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
    """Write a file whole, or leave it as it is. Raises `StoreError` where it cannot be written."""
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}.new")
    try:
        draft.write_bytes(text.encode())
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StoreError(f"{path} cannot be written ({why})", path=str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
