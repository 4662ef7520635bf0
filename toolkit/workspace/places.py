"""The user's folders for data, settings, state and cache, by the XDG Base Directory Specification.

A folder is below the one that a variable names, where that is an absolute path, else below its
place in the user's home.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from toolkit.errors import StoreError
from toolkit.market import Source
from toolkit.store import Store
from toolkit.wire.secrets import ENVIRONMENT

_FOLDER = "machine-rail"


def _folder(name: str, below: str, environment: Mapping[str, str] = ENVIRONMENT) -> Path:
    """Return a folder of this user's, which need not be there yet.

    >>> data_folder({"XDG_DATA_HOME": "/srv/data"}), data_folder({"HOME": "/srv/jane"}).parts[-3:]
    (PosixPath('/srv/data/machine-rail'), ('.local', 'share', 'machine-rail'))
    """
    named = Path(environment.get(name, ""))
    return (named if named.is_absolute() else Path.home() / below) / _FOLDER


data_folder = partial(_folder, "XDG_DATA_HOME", ".local/share")
"""The toolkit's folder for data of this user."""
config_folder = partial(_folder, "XDG_CONFIG_HOME", ".config")
"""The toolkit's folder for what this user has set for every store."""
state_folder = partial(_folder, "XDG_STATE_HOME", ".local/state")
"""The toolkit's folder for what its processes remember between runs, and may lose."""
cache_folder = partial(_folder, "XDG_CACHE_HOME", ".cache")
"""The toolkit's folder for what can be made again."""


def demo_store(source: Source, folder: Path | None = None) -> tuple[Path, list[Path]]:
    """Return the path of the demo's store of a source, and the demo's stores of other sources.

    The file is named after the hash in its source's id, so that another version of the simulated
    market begins a file of its own. Creates the folder. Raises `StoreError` where it cannot.
    """
    folder = _made(folder or data_folder())
    path = folder / f"demo-{_market(source)}.duckdb"
    return path, sorted(other for other in folder.glob("demo-*.duckdb") if other != path)


def real_store() -> Path:
    """Return the path of the demo's store of real exchanges. Creates its folder as `demo_store`."""
    return _made(data_folder()) / "real.duckdb"


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(
            f"the folder {folder} for the demo's store cannot be made: {reason}; "
            "name a file: rail demo --store FILE",
            path=str(folder),
        ) from None
    return folder


def store_beside(path: Path, source: Source) -> Path:
    """Return where a source's rows go if ``path`` is named: there, or beside a store that stays.

    A store of another SIMULATED market stays as it is: the file beside it is named as in
    `demo_store`. No way is made for a store of any other source, into which loading is refused.
    """
    if not path.is_file():
        return path
    held = Store(path).source
    if held.id == source.id or {held.kind, source.kind} != {"simulated"}:
        return path
    return path.with_name(f"{path.stem}-{_market(source)}{path.suffix}")


def _market(source: Source) -> str:
    return source.id.rpartition("-")[2]
