"""One part of the work: statistics of some whole trajectories, wherever they are computed."""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import polars as pl

from toolkit.errors import ClusterError, InputError, RailError
from toolkit.statistics.passes import Analysis
from toolkit.store.publish import PublishedPart


class Software(NamedTuple):
    """The software that computes. Results of other software may differ and are never reused."""

    python: str
    polars: str
    toolkit: str

    @classmethod
    def here(cls) -> Self:
        """Return that of this process. Of the toolkit it is a hash of its code."""
        return cls(platform.python_version(), pl.__version__, _code())


@functools.cache
def _code() -> str:
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Task:
    """Statistics of one part. ``key`` names its result: data, functions, parameters, software."""

    part: PublishedPart
    functions: bytes
    software: Software
    key: str

    @classmethod
    def of(cls, part: PublishedPart, functions: bytes, sources: str, software: Software) -> Self:
        """Make the task. ``functions`` and ``sources`` are those of `packed`."""
        files = [(key, [file.sha256 for file in files]) for key, files in part.streams]
        facts = repr((part.kind, tuple(part.window), files, sources, software)).encode()
        return cls(part, functions, software, hashlib.sha256(facts + functions).hexdigest()[:32])

    def run(self) -> list[pl.DataFrame]:
        """Compute the statistics, a frame for each. Raises `ClusterError` that names the stream."""
        here = Software.here()
        for name, asked, found in zip(here._fields, self.software, here, strict=True):
            if asked != found:
                raise ClusterError(
                    f"the worker on {platform.node()} has {name} {found}, the caller {asked}; "
                    "install the same on all machines"
                )
        functions = pickle.loads(self.functions)  # noqa: S301 - the caller's own, as all of a task
        try:
            rows = self.part.read()
            return [function(rows) for function in functions]
        except Exception as error:  # noqa: BLE001 - a function of the caller's raises anything
            raise self._named(functions, error) from None

    def _named(self, functions: Sequence[Analysis], error: Exception) -> ClusterError:
        """Return the error with the trajectory that it is of, which is found by trying each."""
        for one in self.part.each():
            try:
                rows = one.read()
                for function in functions:
                    function(rows)
            except Exception as found:  # noqa: BLE001 - as above
                return ClusterError(f"{one.keys[0]} failed: {line_of(found)}", streams=one.keys)
        return ClusterError(
            f"{shown(self.part.keys)} failed: {line_of(error)}", streams=self.part.keys
        )


def packed(functions: Sequence[Analysis]) -> tuple[bytes, str]:
    """Return functions as bytes for another process, and the identity of their code.

    That is the toolkit's code, and the source of the caller's modules. Raises `InputError` for a
    function without a module to import.
    """
    try:
        content = pickle.dumps(tuple(functions))
    except (pickle.PicklingError, AttributeError, TypeError):
        content = b""
    modules = {inspect.getmodule(each) for function in functions for each in _parts_of(function)}
    if not content or any(each is None or each.__name__ == "__main__" for each in modules):
        raise InputError(
            "function",
            functions[0],
            "functions of a module that the workers can import, or functools.partial of one",
        )
    own = sorted(str(each.__name__) for each in modules if each is not None)
    sources = [
        hashlib.sha256(inspect.getsource(each).encode()).hexdigest()
        for each in modules
        if each is not None and not each.__name__.startswith("toolkit.")
    ]
    return content, repr((own, sorted(sources)))


def _parts_of(function: Callable[..., object]) -> Iterator[Callable[..., object]]:
    if not isinstance(function, functools.partial):
        yield getattr(function, "__func__", function)
        return
    yield from _parts_of(function.func)
    for given in (*function.args, *function.keywords.values()):
        if callable(given):
            yield from _parts_of(given)


def shown(keys: Sequence[str]) -> str:
    """Name trajectories: one by its key, many by the first and the last."""
    return keys[0] if len(keys) == 1 else f"{len(keys)} trajectories, {keys[0]} to {keys[-1]}"


def line_of(error: Exception) -> str:
    """Return an error as one line, with its type unless it is the toolkit's."""
    words = " ".join(str(error).split()) or "no message"
    return words if isinstance(error, RailError) else f"{type(error).__name__}: {words}"
