"""Results of parts, kept by their key: a run that was stopped goes on where it stopped."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from pathlib import Path

import polars as pl

from toolkit.errors import StoreError

_UNUSED_S = 30 * 86_400
"""After how long results that nobody asked for again are removed (s)."""


class KeptResults:
    """Results in a folder, each in a folder named by its key, whole or not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the folder {folder} for results cannot be made: {error.strerror}",
                path=str(folder),
            ) from None
        self._forget()

    def get(self, key: str) -> list[pl.DataFrame] | None:
        """Return a result, None where it is not kept."""
        held = self._folder / key
        if not held.is_dir():
            return None
        os.utime(held)
        files = sorted(held.glob("*.arrow"), key=lambda path: int(path.stem))
        return [pl.read_ipc(path) for path in files]

    def put(self, key: str, frames: list[pl.DataFrame]) -> None:
        """Keep a result. One that is there already stays."""
        draft = self._folder / f".{uuid.uuid4().hex}"
        draft.mkdir()
        try:
            for number, frame in enumerate(frames):
                frame.write_ipc(draft / f"{number}.arrow", compression="zstd")
            draft.rename(self._folder / key)
        except OSError as error:
            if not (self._folder / key).is_dir():
                raise StoreError(
                    f"a result cannot be kept in {self._folder}: {error.strerror}",
                    path=str(self._folder),
                ) from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _forget(self) -> None:
        """Remove what was not asked for in a month, and what killed processes left."""
        for held in self._folder.iterdir():
            if time.time() - held.stat().st_mtime > _UNUSED_S:
                shutil.rmtree(held, ignore_errors=True)
