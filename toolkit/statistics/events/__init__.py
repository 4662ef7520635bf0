"""How long events last, how often they come, what comes with them, and how true their log is.

`lifecycles` and `event_lifecycles` pair the documents of event logs. `magnitudes` says how large
events are, `survival` how long they last and `hazard_ratios` what makes them last. `detections`
says when they became known, and `study`, `placebo` and `follow_through` what prices, spreads and
rates did then. `positions` and `payoff` say what spread events would have paid. `cooccurrence` says
which events come together. `audit` holds a log to the trajectories, and `channels` the ways by
which it came to each other.
"""

from toolkit.statistics.core.windows import LOOK_BACK_S, documents_window
from toolkit.statistics.events.audit import audit, audited, smallest_size_bps
from toolkit.statistics.events.channels import channels
from toolkit.statistics.events.cooccurrence import cooccurrence
from toolkit.statistics.events.documents import detections, with_direction
from toolkit.statistics.events.follow_through import follow_through
from toolkit.statistics.events.groups import with_groups
from toolkit.statistics.events.hazards import hazard_ratios
from toolkit.statistics.events.lifecycles import STILL_OPEN, event_lifecycles, lifecycles
from toolkit.statistics.events.magnitudes import magnitudes
from toolkit.statistics.events.payoff import payoff
from toolkit.statistics.events.placebo import placebo
from toolkit.statistics.events.positions import positions
from toolkit.statistics.events.rate_changes import rate_changes
from toolkit.statistics.events.rates import league, rates
from toolkit.statistics.events.study import study
from toolkit.statistics.events.survival import log_rank, survival, survival_curve
from toolkit.statistics.events.timing import clustering, rates_by_hour

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
