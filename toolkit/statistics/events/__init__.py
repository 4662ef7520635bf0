"""Statistics of events: sizes, durations, rates, what prices did then, and the accuracy of the log.

All start from `event_lifecycles`, which pairs the documents of event logs. `survival` documents
what they share: ``lives``, ``by``, ``held`` and ``cluster``.
"""

from toolkit.statistics.core.windows import LOOK_BACK_S, documents_window
from toolkit.statistics.events.audit import audit, audited, smallest_size_bps
from toolkit.statistics.events.cooccurrence import cooccurrence
from toolkit.statistics.events.documents import channels, detections, with_direction
from toolkit.statistics.events.exposure import with_groups
from toolkit.statistics.events.follow_through import follow_through
from toolkit.statistics.events.hazards import hazard_ratios
from toolkit.statistics.events.lifecycles import STILL_OPEN, event_lifecycles, lifecycles
from toolkit.statistics.events.positions import payoff, positions
from toolkit.statistics.events.rates import league, rate_changes, rates
from toolkit.statistics.events.study import placebo, study
from toolkit.statistics.events.survival import log_rank, survival, survival_curve
from toolkit.statistics.events.timing import clustering, magnitudes, rates_by_hour

__all__ = [
    "LOOK_BACK_S",
    "STILL_OPEN",
    "audit",
    "audited",
    "channels",
    "clustering",
    "cooccurrence",
    "detections",
    "documents_window",
    "event_lifecycles",
    "follow_through",
    "hazard_ratios",
    "league",
    "lifecycles",
    "log_rank",
    "magnitudes",
    "payoff",
    "placebo",
    "positions",
    "rate_changes",
    "rates",
    "rates_by_hour",
    "smallest_size_bps",
    "study",
    "survival",
    "survival_curve",
    "with_direction",
    "with_groups",
]


def __dir__() -> list[str]:
    return __all__
