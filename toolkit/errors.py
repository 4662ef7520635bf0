"""The error tree. ``except RailError`` catches all of it.

Each error is one line (what was wrong, what is allowed, what to do), with its facts as attributes::

    RailError
        InputError
            UnknownTrajectoryError
        ServiceError
            UnreachableError
            BadRequestError         400
            KeyRefusedError         401
            PlanRefusedError        402, 403
            NotFoundError           404
            QuotaError              429
            UnavailableError        5xx
            WireError
                PagingError
        StoreError
            StoreLockedError
            NotAStoreError
            StoreSourceError
            StoreVersionError
        ExchangeError
            ExchangeRefusedError
            ExchangeOutageError
        ClusterError
        StoppedError
        EmptyWindowError
        MissingExtraError
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence

from toolkit.foreign import plain

_LONGEST_VALUE, _LEAST_VALUE = 160, 20
_LONGEST_LINE = 400
_LONGEST_SHOWN = 4_000
_MOST_NAMES = 14


class RailError(Exception):
    """The root: anything that the toolkit refuses or could not do. Pickling keeps its facts.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(InputError("limit", 0, "1 to 10000"))).value
    0
    """

    def _render_traceback_(self) -> list[str]:
        """Return the one line that a notebook shows instead of a traceback."""
        return [f"{type(self).__name__}: {plain(str(self), _LONGEST_SHOWN)}"]

    def __reduce__(self) -> tuple[Callable[..., RailError], tuple[object, ...], dict[str, object]]:
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[RailError], args: tuple[object, ...]) -> RailError:
    return kind.__new__(kind, *args)


def shown(value: object) -> str:
    """Return a value in one line: long text is cut, a large object is named by its type.

    >>> shown("7 d"), shown(60.0), shown({"a": list(range(100))}), shown(range)
    ("'7 d'", '60.0', 'a dict', 'a type')
    """
    try:
        text = str.__repr__(value) if isinstance(value, str) else repr(value)
    except ValueError:  # a whole number of thousands of digits
        text = ""
    if isinstance(value, str) and len(text) > _LONGEST_VALUE:
        return f"{text[: _LONGEST_VALUE - 1]}…"
    plain = 0 < len(text) <= _LONGEST_VALUE and text.isprintable() and not text.startswith("<")
    return text if plain else f"a {type(value).__name__}"


def nearest(text: object, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the names nearest to a text, the nearest first, whatever their case.

    >>> nearest("Spreads", ["spread", "splash"]), nearest(7, ["spread"])
    (['spread'], [])
    """
    if not isinstance(text, str):
        return []
    known = {name.lower(): name for name in names}
    found = difflib.get_close_matches(text.lower(), known, n=most, cutoff=0.6)
    return [known[name] for name in found]


class InputError(RailError, ValueError):
    """A value that is not allowed. ``allowed`` is a sentence, or the allowed names.

    >>> str(InputError("limit", 0, "a whole number from 1 to 10000"))
    'limit: 0 is not allowed; allowed: a whole number from 1 to 10000'
    >>> str(InputError("fees", None, "a fee table"))
    'fees: nothing is given; allowed: a fee table'
    >>> str(InputError("theme", "Drak", ["light", "dark"]))
    "theme: 'Drak' is not allowed; allowed: light, dark; nearest: dark"
    """

    def __init__(
        self, parameter: str, value: object, allowed: str | Iterable[str], *, advice: str = ""
    ) -> None:
        if not isinstance(allowed, str):
            names = list(map(str, allowed))
            near = nearest(value, names)
            advice = advice or (f"nearest: {near[0]}" if near else "")
            allowed = ", ".join(names[:_MOST_NAMES]) + ", …" * (len(names) > _MOST_NAMES)
        self.parameter = parameter
        self.value = value
        self.allowed = allowed
        self.advice = advice
        found, verdict = shown(value), " is not allowed"
        if value is None:
            found, verdict = "nothing is given", ""
        after = f"{verdict}; allowed: {allowed}" + (f"; {advice}" if advice else "")
        room = max(_LEAST_VALUE, _LONGEST_LINE - len(parameter) - len(after) - 2)
        if len(found) > room:
            found = f"{found[: room - 1]}…"
        super().__init__(f"{parameter}: {found}{after}")


class UnknownTrajectoryError(InputError):
    """A trajectory that the service does not list, or the store does not hold.

    >>> print(UnknownTrajectoryError("BTC_USX:KRAKEN.spot", ["BTC_USD:KRAKEN.spot"]))
    BTC_USX:KRAKEN.spot is not listed by the service; nearest: BTC_USD:KRAKEN.spot
    """

    def __init__(
        self,
        trajectory: str,
        nearest: Sequence[str] = (),
        *,
        where: str = "listed by the service",
        advice: str = "",
    ) -> None:
        self.trajectory = trajectory
        self.nearest = tuple(nearest)
        super().__init__("trajectory", trajectory, f"a trajectory that is {where}", advice=advice)
        others = "nearest: " + ", ".join(nearest) if nearest else ""
        self.args = ("; ".join(filter(None, (f"{trajectory} is not {where}", others, advice))),)


class ServiceError(RailError):
    """The service refused, failed, or could not be understood.

    ``status`` is the HTTP status, or the one in a body of status 200, None without an answer.
    ``url`` has no query. ``detail`` is the body's message, ``code`` its short name and
    ``challenge`` the ``WWW-Authenticate`` header, each "" for none. ``retry_after_s`` (s) is the
    wait that the service asks for, or None.

    >>> refused = ServiceError("busy", status=503, code="unavailable", retry_after_s=2.0)
    >>> refused.code, refused.retry_after_s
    ('unavailable', 2.0)
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        url: str = "",
        detail: str = "",
        code: str = "",
        retry_after_s: float | None = None,
        challenge: str = "",
    ) -> None:
        self.status = status
        self.url = url
        self.detail = detail
        self.code = code
        self.retry_after_s = retry_after_s
        self.challenge = challenge
        super().__init__(message)


class UnreachableError(ServiceError):
    """No answer: the address is wrong, nothing listens there, or the time ran out."""


class BadRequestError(ServiceError):
    """400: the service could not read the request."""


class KeyRefusedError(ServiceError):
    """401: no API key was sent, or it is not accepted."""


class PlanRefusedError(ServiceError):
    """402 or 403: the plan of the key does not include this."""


class NotFoundError(ServiceError):
    """404: the address has no such route."""


class QuotaError(ServiceError):
    """429: the owner's quota is spent, and a longer wait was not allowed."""


class UnavailableError(ServiceError):
    """5xx: the service failed, is overloaded, or is shutting down."""


class WireError(ServiceError):
    """An answer with status 200 whose body has another form, or states an error."""


class PagingError(WireError):
    """Pages that contradict one another, so that completeness cannot be shown."""


class StoreError(RailError):
    """A failure of the DuckDB file at ``path``."""

    def __init__(self, message: str, *, path: str = "") -> None:
        self.path = path
        super().__init__(message)


class StoreLockedError(StoreError):
    """Another process, ``pid``, holds the file, and did not let go in time."""

    def __init__(self, message: str, *, path: str = "", pid: int | None = None) -> None:
        self.pid = pid
        super().__init__(message, path=path)


class NotAStoreError(StoreError):
    """The file is not a store of this toolkit."""


class StoreSourceError(StoreError):
    """The store has data of one source and was offered another's."""


class StoreVersionError(StoreError):
    """The store is of a format that this toolkit does not open."""


class ExchangeError(RailError):
    """An exchange that the local service reads refused or did not answer."""


class ExchangeRefusedError(ExchangeError):
    """An exchange never answers this. ``reach``: the earliest time that it answers for (s)."""

    def __init__(self, message: str, *, reach: int | None = None) -> None:
        self.reach = reach
        super().__init__(message)


class ExchangeOutageError(ExchangeError):
    """An exchange gave no readable answer. ``retry_after_s``: the wait that it asks for (s)."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class ClusterError(RailError):
    """A statistic of ``streams`` (keys) failed on a worker, or the workers are gone."""

    def __init__(self, message: str, *, streams: Iterable[str] = ()) -> None:
        self.streams = tuple(streams)
        super().__init__(message)


class StoppedError(RailError):
    """The user ended a command by Ctrl-C. The message says what is kept and how to go on.

    >>> print(StoppedError())
    stopped; what was committed is kept, the same command goes on from there
    """

    def __init__(
        self, kept: str = "what was committed is kept, the same command goes on from there"
    ) -> None:
        super().__init__(f"stopped; {kept}")


class EmptyWindowError(RailError):
    """The window is empty."""


class MissingExtraError(RailError):
    """A package of an extra is not installed.

    >>> print(MissingExtraError("service", "mcp"))
    mcp is not installed; pip install "machine-rail-toolkit[service]" installs it
    """

    def __init__(self, extra: str, package: str) -> None:
        self.extra = extra
        self.package = package
        advice = f'pip install "machine-rail-toolkit[{extra}]" installs it'
        super().__init__(f"{package} is not installed; {advice}")


@contextlib.contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Raise `MissingExtraError` if the block imports a package that is not installed.

    >>> with needs_extra("dashboard"):
    ...     import no_such_package
    Traceback (most recent call last):
    toolkit.errors.MissingExtraError: no_such_package is not installed; pip install ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        if package == "toolkit":
            raise
        raise MissingExtraError(extra, package) from None
