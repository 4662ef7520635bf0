"""What brings the service's rows into the store, completely and once."""

from toolkit.loader.follow import follow
from toolkit.loader.follow_progress import FollowProgress, FollowResult
from toolkit.loader.planned import PlannedLoad, plan_load
from toolkit.loader.polls import Pace
from toolkit.loader.progress import LoadResult, Progress
from toolkit.loader.sweep import Since
from toolkit.loader.sync import sync

__all__ = [
    "FollowProgress",
    "FollowResult",
    "LoadResult",
    "Pace",
    "PlannedLoad",
    "Progress",
    "Since",
    "follow",
    "plan_load",
    "sync",
]
