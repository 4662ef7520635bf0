"""The tables of alerts: what `rail follow` found, and what became of each delivery."""

from __future__ import annotations

from enum import StrEnum

from toolkit.columns import Column, Table


class AlertChange(StrEnum):
    """What became of an alert: it opened, or it is over."""

    OPENED = "opened"
    CLEARED = "cleared"


class AlertOutcome(StrEnum):
    """What became of the delivery of a change of an alert.

    ``waiting``: it is still to be sent, perhaps again. ``sending``: it is being sent.
    ``delivered``: the receiver took it. ``failed``: the receiver refused it. ``late``: it was found
    or waited too long to be sent. ``unknown``: the process ended while it was being sent, and a
    repeat would be seen twice.
    """

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"
    LATE = "late"
    UNKNOWN = "unknown"


ALERT = Table(
    "alert",
    "Changes of alerts that `rail follow` found: one row each time that one opened or was over.",
    (
        Column("change_id", "BIGINT", "", "number of the change inside this store"),
        Column("alert_id", "VARCHAR", "", "the same wherever it is sent, also as webhook-id"),
        Column("rule", "VARCHAR", "", "name of the rule"),
        Column("kind", "VARCHAR", "", "spread, funding, event, stale or loss"),
        Column("subject", "VARCHAR", "", "the stream's key, or the id of the event"),
        Column("stream", "VARCHAR", "", "the stream's key"),
        Column("about", "VARCHAR", "", "for a reader: the stream, or symbol and legs of the event"),
        Column("change", "VARCHAR", "", "opened or cleared (`AlertChange`)"),
        Column("ts", "BIGINT", "s", "time of the row, document or look, Unix UTC"),
        Column("found_at", "BIGINT", "s", "the service's clock when it was found"),
        Column("value", "DOUBLE", "as unit", "what was compared, if anything", nullable=True),
        Column("level", "DOUBLE", "as unit", "the level of the rule"),
        Column("unit", "VARCHAR", "", "the unit of value and level"),
        Column("words", "VARCHAR", "", "the same in a sentence"),
        Column("load_id", "BIGINT", "", "the follow that found it"),
        Column("recorded_at", "BIGINT", "s", "the local clock at its commit"),
    ),
    key=("change_id",),
)

ALERT_DELIVERY = Table(
    "alert_delivery",
    "What became of each change of an alert, by where it was sent.",
    (
        Column("alert_id", "VARCHAR", "", "the change"),
        Column("channel", "VARCHAR", "", "webhook or chat"),
        Column("outcome", "VARCHAR", "", "see `AlertOutcome`"),
        Column("attempts", "INTEGER", "count", "how often it was sent"),
        Column("reason", "VARCHAR", "", "why it was not delivered", nullable=True),
        Column("changed_at", "BIGINT", "s", "the local clock at the last change of this row"),
    ),
    key=("alert_id", "channel"),
)

ALERTS = (ALERT, ALERT_DELIVERY)
"""The history of alerts, which `toolkit.store.alerts` reads and writes."""
