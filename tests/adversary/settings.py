"""How a service may differ from the interface: switches for tests, all off by default."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from tests.adversary.rest import RestSwitches
from toolkit.errors import InputError


@dataclass(frozen=True, slots=True)
class WebhookSwitches:
    """The shares of deliveries with each fault, all 0 by default.

    ``duplicated`` are made twice, the second up to 100 deliveries later. ``reordered`` are made up
    to 100 deliveries later than their turn. ``replayed`` are made a second time with a signature
    that is one hour old. ``tampered`` have their body changed after it was signed, at the first
    attempt only.

    >>> WebhookSwitches(tampered=1.5)
    Traceback (most recent call last):
    toolkit.errors.InputError: tampered: 1.5 is not allowed; allowed: 0 to 1
    """

    duplicated: float = 0.0
    reordered: float = 0.0
    replayed: float = 0.0
    tampered: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if not 0.0 <= getattr(self, each.name) <= 1.0:
                raise InputError(each.name, getattr(self, each.name), "0 to 1")


@dataclass(frozen=True, slots=True)
class Adversary:
    """What goes wrong, and how often. The same ``seed`` draws the same accidents.

    WebSockets: with ``accept_then_close`` each socket is accepted and closed at once with that
    code. The first ``mute_sockets`` sockets accepted never send a message. Each socket is closed
    (1011) after a time drawn from ``drop_after_s`` (s, the machine's clock), or in place of a
    message whose number is drawn from ``drop_at_message``, and what was not sent is lost. Of the
    event documents that sockets send, ``duplicate_share`` are sent again later, and
    ``reorder_share`` are sent after their followers. The event logs show a document
    ``archive_lag_s`` (s, the service's clock) after the sockets do.

    ``rest`` has the switches of the REST routes, ``webhooks`` those of deliveries.

    >>> Adversary(duplicate_share=2.0)
    Traceback (most recent call last):
    toolkit.errors.InputError: duplicate_share: 2.0 is not allowed; allowed: 0 to 1
    """

    seed: int = 0
    accept_then_close: int | None = None
    mute_sockets: int = 0
    drop_after_s: tuple[float, float] | None = None
    drop_at_message: tuple[int, int] | None = None
    duplicate_share: float = 0.0
    reorder_share: float = 0.0
    archive_lag_s: int = 0
    rest: RestSwitches = field(default_factory=RestSwitches)
    webhooks: WebhookSwitches = field(default_factory=WebhookSwitches)

    def __post_init__(self) -> None:
        for name in ("duplicate_share", "reorder_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(name, getattr(self, name), "0 to 1")
        for name in ("mute_sockets", "archive_lag_s"):
            if getattr(self, name) < 0:
                raise InputError(name, getattr(self, name), "0 or more")


KIND = Adversary()
"""All switches off."""


@dataclass(slots=True)
class ActiveSwitches:
    """The switches in force, which the control route may change while the service runs."""

    adversary: Adversary = KIND


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
