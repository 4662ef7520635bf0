"""What brings the service's rows into the store, completely and once."""

from toolkit.loader.capture import CaptureProgress, CaptureResult, capture
from toolkit.loader.progress import LoadResult, Progress
from toolkit.loader.sync import sync

__all__ = ["CaptureProgress", "CaptureResult", "LoadResult", "Progress", "capture", "sync"]
