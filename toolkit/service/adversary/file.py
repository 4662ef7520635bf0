"""Reading of switches: from a TOML file, or from a body sent to the control route."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from toolkit.errors import InputError
from toolkit.service.adversary.settings import Adversary


def read_adversary(path: str | Path) -> Adversary:
    r"""Read the switches of a TOML file: `Adversary`, with tables ``[rest]``, ``[webhooks]``.

    A missing file, a file that is not TOML, an unknown switch and a value that is not allowed are
    an `InputError` that names what is allowed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "odd.toml"
    ...     done = file.write_text('[rest]\nat_end = "echo"\n')
    ...     read_adversary(file).rest.at_end
    'echo'
    """
    try:
        said = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        told = " ".join(str(error).split())
        raise InputError("adversary", str(path), "a TOML file of switches", advice=told) from None
    return adversary_of(said)


def adversary_of(said: Mapping[str, Any]) -> Adversary:
    """Convert a document to switches. An unknown one is an `InputError` naming those allowed.

    >>> adversary_of({"rest": {"at_ende": "echo"}})
    Traceback (most recent call last):
    toolkit.errors.InputError: adversary switch: 'rest.at_ende' is not allowed; allowed: ...
    """
    _check_names(Adversary, said, "")
    try:
        return msgspec.convert(said, Adversary)
    except msgspec.ValidationError as error:
        raise InputError("adversary", str(error), "values of the kinds documented") from None


def _check_names(kind: type, said: Mapping[str, Any], where: str) -> None:
    """Refuse a name that the switches, or those inside them, do not have."""
    kinds = get_type_hints(kind)
    for name, value in said.items():
        if name not in kinds:
            raise InputError("adversary switch", where + name, ", ".join(kinds))
        for inner in (kinds[name], *get_args(kinds[name])):
            if isinstance(inner, type) and dataclasses.is_dataclass(inner):
                for each in value if isinstance(value, list) else [value]:
                    if isinstance(each, Mapping):
                        _check_names(inner, each, f"{where}{name}.")
