"""Settings in TOML: files are read and fields checked, and each fault is one `InputError`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from toolkit.errors import InputError, nearest


def read_toml(
    path: str | Path, parameter: str, allowed: str, *, advice: str = "", text: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the text and the table of a TOML file in UTF-8, or of a ``text``.

    Raises `InputError` about ``parameter``, with the reason, if it cannot be read.

    >>> read_toml("none.toml", "fees", "a fee table")
    Traceback (most recent call last):
    toolkit.errors.InputError: fees: 'none.toml' is not allowed; allowed: a fee table; ...
    """
    try:
        found = Path(path).read_text(encoding="utf-8") if text is None else text
        return found, tomllib.loads(found)
    except (AttributeError, TypeError):
        given = path if text is None else text
        raise InputError(parameter, given, allowed, advice=advice) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None)
        why = reason.lower() if reason else " ".join(str(error).split())
        reasons = "; ".join(filter(None, (why, advice)))
        raise InputError(parameter, str(path), allowed, advice=reasons) from None


def check_names(where: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise `InputError` for an unknown name, with the nearest known one.

    >>> check_names("rail.toml follow", {"stream": []}, ["streams"])
    Traceback (most recent call last):
    toolkit.errors.InputError: rail.toml follow: 'stream' is not allowed; allowed: streams; ...
    """
    names = list(known)
    for name in given:
        if name not in names:
            near = "".join(f"nearest: {each}" for each in nearest(name, names))
            raise InputError(where, name, ", ".join(names), advice=near)


def texts(parameter: str, value: object) -> tuple[str, ...]:
    """Check a list of texts, and return each once.

    >>> texts("symbols", ["BTC_USDT", "BTC_USDT"])
    ('BTC_USDT',)
    """
    several = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [None]
    found = [each for each in several if isinstance(each, str) and each]
    if len(found) != len(several):
        raise InputError(parameter, value, 'a list of texts, e.g. ["BTC_USDT"]')
    return tuple(dict.fromkeys(found))


def among(names: Iterable[str]) -> Callable[[str, object], tuple[str, ...]]:
    """Make a check of a list of texts: all are among some names.

    >>> among(["price", "spread"])("families", ["spread"])
    ('spread',)
    """
    known = list(map(str, names))

    def check(parameter: str, value: object) -> tuple[str, ...]:
        found = texts(parameter, value)
        for each in found:
            if each not in known:
                raise InputError(parameter, each, known)
        return found

    return check


def typed(kind: Any, allowed: str, *, advice: str = "", **bounds: Any) -> Callable[..., Any]:
    """Make a check of a value by its type, within bounds as `msgspec.Meta` names them.

    >>> share = typed(float, "0 to 1", ge=0, le=1)
    >>> share("share", 1)
    1.0
    >>> share("share", True)
    Traceback (most recent call last):
    toolkit.errors.InputError: share: True is not allowed; allowed: 0 to 1
    """
    wanted: Any = Annotated[kind, msgspec.Meta(**bounds)] if bounds else kind

    def check(parameter: str, value: object) -> Any:
        try:
            return msgspec.convert(value, wanted)
        except msgspec.ValidationError:
            raise InputError(parameter, value, allowed, advice=advice) from None

    return check


def optional(check: Callable[[str, object], Any]) -> Callable[[str, object], Any]:
    """Make a check that lets None pass.

    >>> optional(switch)("net", None)
    """
    return lambda parameter, value: None if value is None else check(parameter, value)


switch = typed(bool, "true or false")
"""The check of a switch."""
