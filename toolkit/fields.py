"""The fields of a settings file, checked: each fault is one `InputError` that names the field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from toolkit.errors import InputError, nearest


def check_names(where: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise `InputError` for a name that is none of those known, with the nearest one.

    >>> check_names("rail.toml follow", {"stream": []}, ["streams"])
    Traceback (most recent call last):
    toolkit.errors.InputError: rail.toml follow: 'stream' is not allowed; allowed: streams; ...
    """
    names = list(known)
    for name in given:
        if name not in names:
            near = nearest(name, names)
            advice = f"nearest: {near[0]}" if near else ""
            raise InputError(where, name, ", ".join(names), advice=advice)


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
    """Make the check of a list of texts that are all among some names.

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


def switch(parameter: str, value: object) -> bool:
    """Check a switch: true or false.

    >>> switch("net", True)
    True
    """
    if not isinstance(value, bool):
        raise InputError(parameter, value, "true or false")
    return value


def number(value: object) -> float | None:
    """Return a number as it is, None for anything else. A switch is no number.

    >>> number(1), number(True)
    (1, None)
    """
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
