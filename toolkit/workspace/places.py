"""Where the toolkit keeps what nobody has named a place for: data, settings, state and cache.

The rule is that of the XDG Base Directory Specification, which is five lines: a folder is below the
one that a variable names, where that is an absolute path, else below its place in the user's home.
The package platformdirs would add what is usual elsewhere, where this rule does as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import StoreError
from toolkit.market import Source
from toolkit.store import Store
from toolkit.wire.secrets import ENVIRONMENT

_FOLDER = "machine-rail"


def data_folder(environment: Mapping[str, str] = ENVIRONMENT) -> Path:
    """Return the toolkit's folder for data of this user, which need not be there yet.

    >>> data_folder({"XDG_DATA_HOME": "/srv/data"}), data_folder({"HOME": "/srv/jane"}).parts[-3:]
    (PosixPath('/srv/data/machine-rail'), ('.local', 'share', 'machine-rail'))
    """
    return _folder(environment, "XDG_DATA_HOME", ".local/share")


def config_folder(environment: Mapping[str, str] = ENVIRONMENT) -> Path:
    """Return the toolkit's folder for what this user has set for every store.

    >>> config_folder({"XDG_CONFIG_HOME": "/srv/config"})
    PosixPath('/srv/config/machine-rail')
    """
    return _folder(environment, "XDG_CONFIG_HOME", ".config")


def state_folder(environment: Mapping[str, str] = ENVIRONMENT) -> Path:
    """Return the toolkit's folder for what its processes remember between runs, and may lose.

    >>> state_folder({"XDG_STATE_HOME": "/srv/state"})
    PosixPath('/srv/state/machine-rail')
    """
    return _folder(environment, "XDG_STATE_HOME", ".local/state")


def cache_folder(environment: Mapping[str, str] = ENVIRONMENT) -> Path:
    """Return the toolkit's folder for what can be made again, which need not be there yet.

    >>> cache_folder({"XDG_CACHE_HOME": "/srv/cache"})
    PosixPath('/srv/cache/machine-rail')
    """
    return _folder(environment, "XDG_CACHE_HOME", ".cache")


def _folder(environment: Mapping[str, str], name: str, below: str) -> Path:
    named = Path(environment.get(name, ""))
    return (named if named.is_absolute() else Path.home() / below) / _FOLDER


def demo_store(source: Source, folder: Path | None = None) -> tuple[Path, list[Path]]:
    """Return the path of the demo's store of a source, and the demo's stores of other sources.

    The file is named after the end of its source's id, a hash of what makes the market. So another
    version of the simulated market, whose prices differ, begins a file of its own, and the file of
    the earlier version stays as it is. Creates the folder. Raises `StoreError` where it cannot be
    created.
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

    A store of another SIMULATED market, as of an earlier version, stays as it is, and the file
    beside it is named after the market, as in `demo_store`. A store of any other source is not
    made way for: to load into it is refused.
    """
    if not path.is_file():
        return path
    held = Store(path).source
    if held.id == source.id or {held.kind, source.kind} != {"simulated"}:
        return path
    return path.with_name(f"{path.stem}-{_market(source)}{path.suffix}")


def _market(source: Source) -> str:
    """Return the end of a source's id, a hash of what makes its market."""
    return source.id.rpartition("-")[2]
