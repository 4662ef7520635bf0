"""What brings the service's rows into the store, completely and once."""

from toolkit.loader.events import sync_events
from toolkit.loader.progress import LoadResult, Progress
from toolkit.loader.snapshots import take_snapshots
from toolkit.loader.sync import sync

__all__ = ["LoadResult", "Progress", "sync", "sync_events", "take_snapshots"]
