"""Places of published files: a folder, or an object store that obstore reaches.

Both write a file whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from toolkit.errors import StoreError, needs_extra
from toolkit.files import keep_names, locked, replace_file
from toolkit.store.file.engine import first_line, full_disk

MANIFEST = "manifest.json"
"""The name of the one file that is replaced."""

PINNED = re.compile(r"manifests/[0-9a-f]{64}\.json")
"""The names of the manifests of all publications, each by its SHA-256."""

_MANIFEST_AT_END = re.compile(rf"(?:(.*)/)?({MANIFEST}|{PINNED.pattern})", re.DOTALL)

_DRAFT_S = 3600
"""How long the writing of one file may take (s). An older draft is of a process that was killed."""


class StoredFile(NamedTuple):
    """The size of a file and when it was last written (Unix s)."""

    bytes: int
    written_at: int


def place_of(where: str | os.PathLike[str]) -> Destination:
    """Return the place that a path or an address names: itself, or that of the manifest in it."""
    text, _ = _split(where)
    return Bucket(text) if "://" in text else Folder(Path(text))


def manifest_in(where: str | os.PathLike[str]) -> str:
    """Return the name of the manifest that a path or an address means: by default the newest."""
    return _split(where)[1]


def _split(where: str | os.PathLike[str]) -> tuple[str, str]:
    """Split an address into the place and the name of the manifest in it."""
    text = os.fspath(where)
    found = _MANIFEST_AT_END.fullmatch(text)
    if found is None:
        return text.rstrip("/") or "/", MANIFEST
    place = "." if found[1] is None else found[1].rstrip("/") or "/"
    return place, found[2]


def is_published(where: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a path or an address names published files.

    >>> is_published("s3://bucket/archive"), is_published("rail.duckdb")
    (True, False)
    """
    if not isinstance(where, str | os.PathLike):
        return False
    text = os.fspath(where)
    if "\0" in text:
        return False
    named = _MANIFEST_AT_END.fullmatch(text) is not None
    return "://" in text or named or (Path(text) / MANIFEST).is_file()


class Folder:
    """A folder of this machine.

    obstore's own for it neither waits for the disk nor replaces a file on a condition.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    def files(self) -> dict[str, StoredFile]:
        """Return what is there, without drafts. Remove old drafts. A missing place has none."""
        found = {}
        with _failures(self.name):
            for path in self._path.glob("**/*"):
                with contextlib.suppress(FileNotFoundError):
                    if path.name.startswith(".") and path.suffix == ".new":
                        if time.time() - path.stat().st_mtime > _DRAFT_S:
                            path.unlink()
                    elif path.is_file():
                        facts = path.stat()
                        name = path.relative_to(self._path).as_posix()
                        found[name] = StoredFile(facts.st_size, int(facts.st_mtime))
        return found

    def read(self, name: str) -> bytes:
        """Return a file's bytes. Raises `StoreError` where it is missing or cannot be read."""
        with _failures(self.name, name):
            return (self._path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file under another name, wait until it is on the disk, and give it its name."""
        path = self._path / name
        with _failures(self.name, name):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)
            keep_names(path.parent)

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _failures(self.name, name):
            (self._path / name).unlink(missing_ok=True)

    def exchange(self, name: str, before: bytes | None, content: bytes) -> bool:
        """Write a file where it is still ``before``, None for no file. Return whether it was.

        A lock beside it lets in one process at a time.
        """
        path = self._path / name
        with _failures(self.name, name):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.with_name(f"{path.name}.lock").open("a") as lock:
                locked(lock.fileno(), waits=True)
                if (path.read_bytes() if path.exists() else None) != before:
                    return False
                self.write(name, content)
        return True


class Bucket:
    """An object store by its address. Credentials are those of the environment (``AWS_...``)."""

    def __init__(self, address: str) -> None:
        if re.match(r"[^/]*//[^/@]*:[^/@]*@", address):
            raise StoreError(
                "an address of an object store has no password; credentials are read from the "
                "environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3)"
            )
        with needs_extra("publish"):
            import obstore  # noqa: PLC0415 - an extra
            import obstore.store  # noqa: PLC0415 - an extra
        self.name = address
        failures = (obstore.exceptions.BaseError, OSError, ValueError)
        self._told = partial(_failures, address, failures=failures)
        self._calls = obstore
        options: dict[str, Any] = {"mkdir": True} if address.startswith("file:") else {}
        with self._told():
            self._store = obstore.store.from_url(address, **options)

    def files(self) -> dict[str, StoredFile]:
        """Return what is there."""
        with self._told():
            pages = self._calls.list(self._store)
            return {
                each["path"]: StoredFile(each["size"], int(each["last_modified"].timestamp()))
                for page in pages
                for each in page
            }

    def read(self, name: str) -> bytes:
        """Return an object's bytes."""
        with self._told(name):
            return bytes(self._calls.get(self._store, name).bytes())

    def write(self, name: str, content: bytes) -> None:
        """Put an object: object stores do so whole or not at all."""
        with self._told(name):
            self._calls.put(self._store, name, content)

    def remove(self, name: str) -> None:
        """Delete an object."""
        with self._told(name):
            self._calls.delete(self._store, name)

    def exchange(self, name: str, before: bytes | None, content: bytes) -> bool:
        """Put an object where it is still ``before``, by the service's own condition."""
        errors = self._calls.exceptions
        with self._told(name):
            mode: Any = "create"
            if before is not None:
                held = self._calls.get(self._store, name)
                if bytes(held.bytes()) != before:
                    return False
                tags = {"e_tag": held.meta["e_tag"], "version": held.meta["version"]}
                mode = {name: tag for name, tag in tags.items() if tag}
            try:
                self._calls.put(self._store, name, content, mode=mode)
            except (errors.AlreadyExistsError, errors.PreconditionError):
                return False
        return True


Destination = Folder | Bucket
"""A place. Names of files have a ``/`` between folder and file."""


@contextlib.contextmanager
def _failures(
    place: str, name: str = "", failures: tuple[type[Exception], ...] = (OSError,)
) -> Iterator[None]:
    """Raise `StoreError` with one line for what a place refuses."""
    what = f"{place}/{name}" if name else place
    try:
        yield
    except FileNotFoundError:
        raise StoreError(
            f"{what} is missing; publish there again, or name a place that has it", path=what
        ) from None
    except failures as error:
        why = getattr(error, "strerror", None) or _why(error)
        raise full_disk(Path(what), error) or StoreError(
            f"{what} cannot be used ({why})", path=what
        ) from None


def _why(error: Exception) -> str:
    """Return in one line, and without what was sent, why an object store did not do it."""
    text = str(error)
    if "169.254.169.254" in text:  # where a machine at Amazon has its own
        return "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if "BadScheme" in text:
        return "http is refused: use https, or set AWS_ALLOW_HTTP=true"
    if found := re.search(r"status code: (\d{3} [A-Za-z ]*\w)", text):
        code = re.search(r"<Code>(\w+)</Code>", text)
        said = f"{found[1]}, {code[1]}" if code else found[1]
        return f"{said}; check the credentials, their permissions and the bucket's name and region"
    if found := re.search(r"Error performing [A-Z]+ (\w+://[^/\s]+).*error sending request", text):
        return f"no answer from {found[1]}; check AWS_ENDPOINT and the network"
    return first_line(error)
