"""Chat and mail by apprise, a library that knows the interfaces of a hundred such services."""

from __future__ import annotations

import logging
import warnings

from toolkit.errors import InputError, needs_extra


class Chat:
    """Some addresses of apprise. They hold secrets, so no error and no log shows them.

    The library is loaded here and nowhere else.

    >>> Chat("nothing://like/that")
    Traceback (most recent call last):
    toolkit.errors.InputError: RAIL_ALERT_CHAT: '***' is not allowed; allowed: addresses of ...
    """

    def __init__(self, urls: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of what it imports itself
            with needs_extra("alerts"):
                import apprise  # noqa: PLC0415 - a large package, for those who use it
            logging.getLogger("apprise").disabled = True  # it logs addresses, as does the next
            logging.getLogger("urllib3.connectionpool").setLevel(logging.WARNING)
            self._to = apprise.Apprise()
            self._plain = apprise.NotifyFormat.TEXT
            known = all(self._to.add(url) for url in urls.split())
        if not known:
            allowed = "addresses of apprise with spaces between, e.g. slack://..., mailto://..."
            raise InputError("RAIL_ALERT_CHAT", "***", allowed)

    def send(self, title: str, text: str) -> bool:
        """Send a text to each address, once. Returns whether each took it."""
        return bool(self._to.notify(title=title, body=text, body_format=self._plain))
