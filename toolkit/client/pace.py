"""The file in which this user's processes share what is known of one key's quota at one address."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from toolkit.files import locked, open_own, read_own, write_own
from toolkit.wire.allowance import Allowance
from toolkit.wire.pace import QuotaLeft
from toolkit.wire.secrets import Secret

_LOOK_S, _LOOKS = 0.005, 100
_OLD_S = 86_400


class SharedPace:
    """Lets the requests of a key go as its quota allows, over all processes of this user.

    The file is named by a keyed digest and readable by its owner alone. It holds no key. Where it
    is lost, unreadable or kept locked, requests go as if nothing was known.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = (SharedPace(Path(folder), "http://h", "key") for _ in range(2))
    ...     one.learn(Allowance("free", quota=2, window_s=60, left=1, reset_s=60), None)
    ...     other.wait_s(), one.wait_s() > 59
    (0.0, True)
    """

    def __init__(self, folder: Path, base_url: str, api_key: str | Secret) -> None:
        api_key = Secret(api_key)
        secret = hashlib.blake2b(api_key.reveal().encode()).digest()
        name = hashlib.blake2b(base_url.encode(), key=secret, digest_size=16).hexdigest()
        self.path = folder / f"{name}.quota"
        self._seen = QuotaLeft()
        for other in folder.glob("*.quota"):
            with contextlib.suppress(OSError):
                if other.stat().st_mtime < time.time() - _OLD_S:
                    other.unlink()

    def wait_s(self) -> float:
        """Take the next request's place, and return 0, or the seconds until one may be free."""
        with self._held() as file:
            state, wait_s = _read(file).ask(time.time())
            self._keep(file, state)
        return wait_s

    def learn(self, told: Allowance | None, wait_s: float | None) -> None:
        """Note an answer's quota, and what a refusal asks to wait (s)."""
        if self._seen.learn(told, wait_s, time.time()) == self._seen:
            return
        with self._held() as file:
            self._keep(file, _read(file).learn(told, wait_s, time.time()))

    def _keep(self, file: int | None, state: QuotaLeft) -> None:
        self._seen = state
        if file is not None:
            with contextlib.suppress(OSError):
                write_own(file, state.written)

    @contextlib.contextmanager
    def _held(self) -> Iterator[int | None]:
        """Yield the file, locked, None where it cannot be had."""
        file = None
        try:
            with contextlib.suppress(OSError):
                file = self._opened()
            yield file if file is not None and _locked(file) else None
        finally:
            if file is not None:
                os.close(file)

    def _opened(self) -> int:
        try:
            return open_own(self.path)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return open_own(self.path)


def _locked(file: int) -> bool:
    """Lock a file against other processes and threads. One that is stopped does not stop others."""
    with contextlib.suppress(OSError):  # where the system has no locks
        for _ in range(_LOOKS):
            if locked(file):
                return True
            time.sleep(_LOOK_S)
    return False


def _read(file: int | None) -> QuotaLeft:
    with contextlib.suppress(OSError):
        if file is not None:
            return QuotaLeft.read(read_own(file)).believed(time.time())
    return QuotaLeft()
