"""Files where the system has no POSIX: a store is made, loaded and read there all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.files import open_own, read_own, replace_file, write_own

ELSEWHERE = '''
import asyncio, concurrent.futures.process, http.server, logging.handlers, multiprocessing, ssl
import mcp.server.stdio, platformdirs.unix  # go by the name of the system, which stays
import os, signal, subprocess, sys, warnings
from importlib.abc import MetaPathFinder

MODULES = {"crypt", "curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource",
    "spwd", "syslog", "termios", "tty"}
NAMES = {os: """chown fchmod fchown forkpty getegid geteuid getgid getgroups getloadavg getpgid
    getuid killpg lchown mkfifo nice posix_fallocate posix_fadvise posix_spawn pread preadv
    pwrite pwritev sched_getaffinity sched_yield sendfile setsid statvfs sync wait3 wait4
    O_CLOEXEC O_DIRECTORY
    O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC O_TMPFILE""",
    signal: """SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1
    SIGUSR2 SIGWINCH alarm pthread_kill pthread_sigmask setitimer siginterrupt sigwait"""}


class Lacking(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


for module in MODULES:
    sys.modules.pop(module, None)
sys.meta_path.insert(0, Lacking())
warnings.filterwarnings("ignore", "only soft file lock")  # of Windows filelock has the kernel's
subprocess.Popen.kill = subprocess.Popen.terminate  # as on Windows, which has no SIGKILL
for place, names in NAMES.items():
    for name in names.split():
        if hasattr(place, name):
            delattr(place, name)
'''
LOADS = (
    ELSEWHERE
    + """
import importlib, pkgutil, toolkit.cli
import toolkit as tk
from toolkit.service import Config, Simulated, running
from toolkit.store.file.maintenance import back_up_store

for found in pkgutil.iter_modules(toolkit.cli.__path__, "toolkit.cli."):
    importlib.import_module(found.name)
with running(Config(Simulated(7), port=0)) as service:
    rail = tk.open("rail.duckdb", base_url=service.base_url, api_key="demo-pro")
    rail.sync("BTC_USDT:AURORA.spot", "1h")
    rail.follow("BTC_USDT:AURORA.spot", since="2h", once=True)
    spread = "BTC_USDT:AURORA.spot:CORONA.futures"
    rail.sync(spread, "1h")
    held = rail.prices("BTC_USDT:AURORA.spot").df
    assert held.height >= 119 and held["time"][0].tzinfo, held
    assert rail.spread(spread).summary()["n"].item() >= 59
    assert rail.sql("select ts from prices").height == held.height
    back_up_store(rail.store, "copy.duckdb")
    rail.close()
print(tk.Store("copy.duckdb").sql("select * from prices").height == held.height)
"""
)


def test_bytes_from_a_place_on_take_the_place_of_all_that_were_there(tmp_path: Path) -> None:
    file = open_own(tmp_path / "small")
    write_own(file, b"much that was", 1)
    write_own(file, b"short", 1)
    assert (read_own(file, 1), (tmp_path / "small").read_bytes()) == (b"short", b"\0short")


@pytest.mark.slow
def test_without_anything_of_posix_every_command_imports_and_a_store_is_loaded_copied_and_read(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "True\n")


def test_a_file_is_replaced_as_a_whole_or_left_as_it_is(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for content, mode in ((b"old", None), (b"new", 0o600), (b"open", 0o644)):
        replace_file(kept, content, mode=mode)
        assert kept.read_bytes() == content
        assert mode is None or kept.stat().st_mode & 0o777 == mode
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "folder", b"no file")
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "folder"}
