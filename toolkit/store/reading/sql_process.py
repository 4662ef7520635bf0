"""A user's SQL in another process, which is killed where it takes too long.

An interrupt does not bound a query: one step can take minutes and all memory. So another process
(`toolkit.store.reading.sql_worker`) answers by pickles on its standard streams, and ends with this
process, however that ends.

Source: docs/design.md, "A user's SQL".
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import polars as pl

from toolkit.ending import nobody_waits, under_way
from toolkit.errors import InputError, StoreError
from toolkit.store.file.engine import real_path
from toolkit.store.reading.sql import Parameters, takes_too_much

_PROGRAM = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from toolkit.store.reading.sql_worker import answer_questions; answer_questions()"
)
_IDLE_WORKERS = 2
_LENGTH_BYTES = 8

OUT_OF_MEMORY = 17
"""The status with which a process ends whose memory has no room for a query."""

_ENDS_OF_MEMORY = (OUT_OF_MEMORY, -6, -9)  # aborted by polars, killed by the system


@dataclass(frozen=True, slots=True)
class Question:
    """A query over the store at an absolute path.

    ``values`` are the pickled values of its parameters. ``as_of`` and ``at_most`` are those of
    `toolkit.store.reading.sql.select`. ``wait_s`` is how long to wait for the file.
    """

    store: str
    query: str
    values: bytes
    as_of: int | None
    at_most: int | None
    wait_s: float


def ask(
    store: Path,
    query: str,
    values: Parameters,
    *,
    as_of: int | None,
    at_most: int | None,
    within_s: float | None,
    wait_s: float,
) -> pl.DataFrame:
    """Run `toolkit.store.reading.sql.select` in another process, and raise its errors.

    Raises `InputError` for a query that takes more than ``within_s`` (s) from when the file is
    open, or too much memory, and for values that cannot be sent.
    """
    try:
        pickled = pickle.dumps(values)
    except Exception as error:
        allowed = "values that DuckDB takes, such as numbers, texts and times"
        raise InputError("parameters", values, allowed) from error
    question = Question(str(store.absolute()), query, pickled, as_of, at_most, wait_s)
    asked: list[_Worker] = []

    def interrupt() -> None:
        for worker in asked:
            worker.kill()

    with under_way(interrupt):
        worker = _idle_or_new()
        asked.append(worker)
        try:
            found = worker.answer(question, within_s)
        except BaseException:
            worker.close()
            _start_spare()
            raise
        _keep(worker)
    if isinstance(found, Exception):
        raise found
    return cast("pl.DataFrame", found)


class _Worker:
    """A process that answers questions."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-c", _PROGRAM],
                stdin=subprocess.PIPE,  # it ends with that, should we be killed
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what a crash of DuckDB or polars prints
                process_group=0,  # a Ctrl-C is ours
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise StoreError(f"no process can be started for a query ({error})") from None
        self._questions = cast("BinaryIO", self._process.stdin)
        self._answers = cast("BinaryIO", self._process.stdout)
        self._late = False
        self._drafts = set[str]()
        with contextlib.suppress(OSError):  # of one that ended; the first question tells
            pickle.dump(sys.path, self._questions)
            self._questions.flush()

    @property
    def lives(self) -> bool:
        return not self._late and self._process.poll() is None

    def answer(self, question: Question, within_s: float | None) -> object:
        """Return a frame, or its error. Raises an error if the process has ended."""
        memory = ""
        self._drafts.add(f"{real_path(Path(question.store))}{drafts_end(self._process.pid)}")
        try:
            send(self._questions, astuple(question))
            begun = receive(self._answers)
            if not isinstance(begun, str):
                return begun
            memory = begun
            with self._killed_after(within_s):
                return receive(self._answers)
        except (EOFError, OSError):
            status = self._process.wait()
        if self._late and within_s is not None:
            raise takes_too_much(question.query, f"{within_s:g} s")
        if memory and status in _ENDS_OF_MEMORY:
            raise takes_too_much(question.query, f"{memory} of memory")
        raise StoreError(
            f"{question.store}: the process of the query ended with status {status}; ask again",
            path=question.store,
        )

    @contextlib.contextmanager
    def _killed_after(self, within_s: float | None) -> Iterator[None]:
        if within_s is None:
            yield
            return
        over = threading.Event()
        threading.Thread(target=self._watch, args=(within_s, over), daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _watch(self, within_s: float, over: threading.Event) -> None:
        """End a question that takes too long. Have its successor ready by then."""
        if over.wait(within_s / 2):
            return
        _start_spare()
        if not over.wait(within_s / 2):
            self._late = True
            self.kill()

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """End the process, and remove what it wrote where memory was short."""
        self.kill()
        self._process.wait()
        for stream in (self._questions, self._answers):
            with contextlib.suppress(OSError):
                stream.close()
        for draft in self._drafts:
            shutil.rmtree(draft, ignore_errors=True)

    def forget(self) -> None:
        """Let go of a process of which this one is a fork."""
        self._process.returncode = 0


_idle: list[_Worker] = []
_changing = threading.Lock()


def _idle_or_new() -> _Worker:
    with _changing:
        found = _idle.pop() if _idle else None
    if found is None or found.lives:
        return found or _Worker()
    found.close()
    return _idle_or_new()


def _start_spare() -> None:
    """Have a process ready for the next question."""
    if not _idle and not nobody_waits():
        _keep(_Worker())


def _keep(worker: _Worker) -> None:
    with _changing:
        kept = worker.lives and len(_idle) < _IDLE_WORKERS
        if kept:
            _idle.append(worker)
    if not kept:
        worker.close()


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()


def _forget_idle() -> None:
    while _idle:
        _idle.pop().forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_idle)


def drafts_end(process: int) -> str:
    """Return the end of the name of the folder, beside a store, for what does not fit in memory."""
    return f".sql-{process}.tmp"


def send(stream: BinaryIO, value: object) -> None:
    """Write a value, its length before it."""
    data = pickle.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "big"))
    stream.write(data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read a value that `send` wrote. Raises `EOFError` where the other side has ended."""
    length = int.from_bytes(_read(stream, _LENGTH_BYTES), "big")
    return pickle.loads(_read(stream, length))  # noqa: S301 - of our own process


def _read(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data
