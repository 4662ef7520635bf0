"""Processes of `rail` and of Python's modules that begin with what is imported already.

To start `rail` takes 1.2 s of CPU, nearly all for its imports. A process of the tests, the nursery,
has them done and forks for each command; the child is the tests' own, with its arguments, folder,
environment and pipes. What is asked for otherwise, or measured by coverage, starts as ever.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import io
import os
import pickle
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RAIL = Path(sys.executable).with_name("rail")
PYTHON = Path(sys.executable).with_name("python3")
"""In place of `sys.executable` for a program whose imports are not what is tested."""
MODULES = {"ipykernel_launcher", "toolkit.dashboard"}
"""Modules that are run as programs: kernels of notebooks, and the dashboard's server."""
IMPORTED = (
    *("toolkit.workspace", "toolkit.series", "toolkit.reports", "toolkit.charts", "toolkit.alerts"),
    *("toolkit.service", "toolkit.loader", "toolkit.statistics.spread", "toolkit.assistant"),
    *("typer._adapters", "rich.console", "ipykernel.kernelapp", "streamlit.web.bootstrap"),
)
"""Without `toolkit.cli`, which looks at its terminal when it is imported."""
_FOLLOWED_BY = 8
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER
_LONGEST = 4_000
"""Room for the arguments of a child, where the system shows those of the nursery."""


class Nursery:
    """The process that forks, and the way to ask it."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), " " * _LONGEST],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def start(self, asked: Mapping[str, Any], streams: tuple[int, int, int]) -> int:
        """Have a child of this process begin; return its id."""
        told = pickle.dumps(asked)
        with self._lock:
            prctl = ctypes.CDLL(None).prctl
            prctl(_ADOPT, 1)  # the nursery's child forks ours and ends, and we are next in line
            try:
                socket.send_fds(self._ours, [len(told).to_bytes(_FOLLOWED_BY)], streams)
                self._ours.sendall(told)
                return int.from_bytes(_received(self._ours, _FOLLOWED_BY))
            finally:
                prctl(_ADOPT, 0)

    def close(self) -> None:
        self._ours.close()
        self._process.wait(60)


def _received(from_: socket.socket, length: int) -> bytes:
    found = bytearray()
    while len(found) < length:
        part = from_.recv(length - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def program(argv: list[str]) -> bool:
    """Return whether the nursery knows how to be this."""
    if argv[0] in {str(RAIL), str(PYTHON)}:
        return True
    return argv[:2] == [sys.executable, "-m"] and argv[2] in MODULES


@contextlib.contextmanager
def commands_are_forked() -> Iterator[None]:
    """Have `subprocess` start those programs so, where nobody measures what they reach."""
    if "COVERAGE_RUN" in os.environ or not sys.platform.startswith("linux"):
        yield
        return
    execute: Any = subprocess.Popen._execute_child
    bound = inspect.signature(execute)
    nursery = functools.cache(Nursery)

    def forked(self: subprocess.Popen[Any], *args: Any, **options: Any) -> None:
        given = bound.bind(self, *args, **options).arguments
        argv = given["args"]
        plain = isinstance(argv, list | tuple) and not (
            given["preexec_fn"] or given["pass_fds"] or given["shell"] or given["executable"]
        )
        argv = list(map(os.fsdecode, argv)) if plain else []
        environment = dict(os.environ if given["env"] is None else given["env"])
        if not plain or not program(argv) or "PYTHONWARNINGS" in environment:
            execute(self, *args, **options)
            return
        pipes = ("p2cread", "c2pwrite", "errwrite")
        streams = tuple(n if given[name] < 0 else given[name] for n, name in enumerate(pipes))
        asked = {
            "argv": argv,
            "cwd": str(Path(os.fsdecode(given["cwd"] or ".")).resolve()),
            "environment": environment,
            "session": given["start_new_session"],
        }
        self.pid = nursery().start(asked, streams)
        self._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in ends))

    subprocess.Popen._execute_child = forked
    try:
        yield
    finally:
        subprocess.Popen._execute_child = execute
        if nursery.cache_info().currsize:
            nursery().close()


def _serve(number: int) -> dict[str, Any]:
    """Fork for whoever asks; returns in each child, what it was asked to be."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a Ctrl-C is for those forked
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as asking:
        while True:
            length, streams, _, _ = socket.recv_fds(asking, _FOLLOWED_BY, 3)
            if not length:
                os._exit(0)
            asked = pickle.loads(_received(asking, int.from_bytes(length)))
            reading, writing = os.pipe()
            between = os.fork()
            if not between:
                child = os.fork()
                if not child:
                    if asked["session"]:  # before anybody asks for its group, to signal all of it
                        os.setsid()
                    os.write(writing, os.getpid().to_bytes(_FOLLOWED_BY))
                    os.close(reading)
                    os.close(writing)
                    break
                os._exit(0)
            os.close(writing)
            pid = os.read(reading, _FOLLOWED_BY)
            os.close(reading)
            os.waitpid(between, 0)
            for each in streams:
                os.close(each)
            asking.sendall(pid)
    for target, each in enumerate(streams):
        os.dup2(each, target)
    os.closerange(3, 1_024)
    return asked


def _show(argv: list[str]) -> None:
    """Have the system show these arguments of this process."""
    status = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = map(int, status[45:47])
    shown = b"\0".join(map(os.fsencode, [*argv, ""]))
    ctypes.memmove(begin, shown[: end - begin].ljust(end - begin, b"\0"), end - begin)


def _become(asked: dict[str, Any]) -> None:
    """Be the program: its environment, folder, arguments and streams."""
    _show(asked["argv"])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    tempfile.tempdir = None
    os.chdir(asked["cwd"])
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    reading = io.BufferedReader(io.FileIO(0, closefd=False))
    writing, complaining = (io.BufferedWriter(io.FileIO(n, "w", closefd=False)) for n in (1, 2))
    sys.stdin, sys.stdout = (
        io.TextIOWrapper(each, encoding="utf-8") for each in (reading, writing)
    )
    sys.stderr = io.TextIOWrapper(complaining, encoding="utf-8", errors="backslashreplace")
    sys.stdout.reconfigure(write_through=at_once, line_buffering=os.isatty(1))
    sys.stderr.reconfigure(line_buffering=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    first, *sys.argv = asked["argv"]
    sys.path[0] = asked["cwd"]
    if first == str(RAIL):
        from toolkit.cli import main  # noqa: PLC0415 - looks at the terminal

        sys.argv.insert(0, first)
        main()
    elif sys.argv[0] == "-c":
        sys.modules["__main__"] = own = types.ModuleType("__main__")
        exec(compile(sys.argv.pop(1), "<string>", "exec"), vars(own))
    elif sys.argv[0] == "-m":
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def _end(code: object) -> None:
    """End as Python does, but for the taking apart of all that was imported: half a second."""
    threading._shutdown()
    atexit._run_exitfuncs()
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    asked = _serve(int(sys.argv[1]))
    try:
        _become(asked)
        _end(0)
    except SystemExit as ended:
        _end(ended.code)
    except BaseException as error:  # noqa: BLE001 - it ends here
        sys.excepthook(*sys.exc_info())
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        _end(1)
