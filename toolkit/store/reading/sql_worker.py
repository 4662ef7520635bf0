"""The process that answers a user's queries, started by `toolkit.store.reading.sql_process`.

DuckDB has a quarter of the machine's memory, the process twice that where the platform can bound
it, since DuckDB does not count all that a function of SQL takes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

import duckdb

from toolkit.errors import InputError, RailError, StoreError
from toolkit.store.file.engine import first_line, keep_bounded, real_path
from toolkit.store.ledger.history import check_history
from toolkit.store.reading.sql import select
from toolkit.store.reading.sql_process import OUT_OF_MEMORY, Question, drafts_end, receive, send
from toolkit.store.store import Store

_MEMORY = "25%"


def answer_questions() -> None:
    """Answer questions from the standard input until that ends, also while one is answered."""
    answers = _own_output()
    questions: SimpleQueue[Question] = SimpleQueue()
    stores = set[Path]()
    threading.Thread(target=_read, args=(questions, stores), daemon=True).start()
    keep_bounded(_MEMORY, drafts_end(os.getpid()))
    while True:
        question = questions.get()
        send(answers, _answer(question, answers, stores))


def _own_output() -> BinaryIO:
    """Return the standard output, and give its place to nothing: a print would be an answer."""
    own = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
    return own


def _read(questions: SimpleQueue[Question], stores: set[Path]) -> None:
    """Pass questions on. End the process where nobody is left to ask one."""
    try:
        while True:
            questions.put(Question(*receive(sys.stdin.buffer)))
    finally:
        for store in list(stores):
            shutil.rmtree(f"{store}{drafts_end(os.getpid())}", ignore_errors=True)
        os._exit(0)


def _answer(question: Question, answers: BinaryIO, stores: set[Path]) -> object:
    """Return the rows, or the error. Send when it begins, and its bound."""
    try:
        path = Path(question.store)
        stores.add(real_path(path))
        try:
            values = pickle.loads(question.values)  # noqa: S301 - of our own process
        except Exception as error:  # noqa: BLE001 - whatever the class of a value raises
            allowed = "values that DuckDB takes, such as numbers, texts and times"
            return InputError("parameters", first_line(error), allowed)
        with Store(path, wait_s=question.wait_s).reading() as connection:
            check_history(connection, question.as_of)
            (memory,) = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0]
            _bound(memory)
            send(answers, memory)
            try:
                return select(connection, question.query, values, question.as_of, question.at_most)
            except (duckdb.OutOfMemoryException, MemoryError):  # what is left is in pieces
                os._exit(OUT_OF_MEMORY)
    except RailError as error:
        return error
    except Exception as error:  # noqa: BLE001 - who asked raises it
        return StoreError(f"{question.store}: {first_line(error)}", path=question.store)


def _bound(memory: str) -> None:
    """Let all of the process take twice ``memory`` more, on Linux, where it has no bound yet."""
    if sys.platform != "linux":  # elsewhere the bound counts what is not in use, or is none
        return
    import resource  # noqa: PLC0415 - POSIX has it

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        return
    number, unit = memory.split()
    more = 2 * float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB").index(unit)
    with contextlib.suppress(OSError, ValueError):  # no /proc, or a bound that may not be raised
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        bound = pages * resource.getpagesize() + int(more)
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
