"""The fee table in force: the one given, else the one that ``rail.toml`` names."""

from __future__ import annotations

from pathlib import Path

from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel
from toolkit.workspace.rules import read_settings, settings_file


def find_fees(store: Path, given: FeeModel | str | Path | None = None) -> FeeModel | None:
    """Return the table given, or read the one named, or None where there is neither.

    ``given`` is a table or its file. Without it, ``fees = "fees.toml"`` in the ``rail.toml`` beside
    the store, or else in the working directory, names a file beside that. Raises `InputError` for a
    file that is named and is not there or no fee table.
    """
    if given is not None:
        return given if isinstance(given, FeeModel) else FeeModel.read(given)
    path = fees_file(store)
    return None if path is None else FeeModel.read(path)


def fees_file(store: Path) -> Path | None:
    """Return the file of the fee table that ``rail.toml`` names, None where none is named."""
    settings = settings_file(store)
    if settings is None:
        return None
    named = read_settings(settings, "settings").get("fees")
    if named is None:
        return None
    if not isinstance(named, str) or not named:
        raise InputError(f"{settings} fees", named, 'the name of a file, e.g. "fees.toml"')
    return settings.parent / named
