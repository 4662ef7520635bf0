"""Snapshots: dashboards, activity and the symbol listing, kept whole with the time they stood."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.client import Client
from toolkit.loader.sync import begin_load, bound_source
from toolkit.store import Store

__all__ = ["take_snapshots"]


def take_snapshots(client: Client, store: Store, kinds: Sequence[str]) -> dict[str, int]:
    """Ask for each kind once and keep the answer's bytes; gives their lengths.

    Kinds are those of `toolkit.wire.profile.Profile.snapshots`: symbols, activity, spread, funding.
    Each stands in the store with the service's clock at its answer. What came before an error is
    kept. Raises `InputError` for another kind, `ServiceError` for a refusal.
    """
    client.discover()
    bound_source(client, store)
    load_id = begin_load(client, store, client.served_at())
    lengths = {}
    for kind in dict.fromkeys(kinds):
        document = client.snapshot(kind)
        store.keep_snapshot(load_id, kind, client.served_at(), document)
        lengths[kind] = len(document)
    store.finish_load(load_id, [])
    return lengths
