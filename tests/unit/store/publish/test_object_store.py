"""Published over HTTP to a service that speaks S3: what is sent, and what is read there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import toolkit as tk
from tests.object_store import ObjectStore, serving_objects
from toolkit.errors import StoreError
from toolkit.store import Store
from toolkit.store.publish import import_store, publications, publish
from toolkit.store.publish.destinations import Bucket

from ..conftest import FEBRUARY, FIRST, minutes, same

pytestmark = pytest.mark.slow

WHERE = "s3://bucket/rail"


@pytest.fixture(scope="module")
def service() -> Iterator[ObjectStore]:
    with serving_objects() as running:
        yield running


@pytest.fixture
def objects(
    service: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[ObjectStore]:
    """An empty bucket, named with its key by the environment."""
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield service
    service.clear()


def test_it_is_uploaded_once_and_after_a_day_the_months_that_changed(
    full: Store, objects: ObjectStore, commit: Callable
) -> None:
    first = publish(full, WHERE)
    assert objects.put_bytes == first.uploaded_bytes == sum(map(len, objects.objects.values()))
    assert len(objects.objects) == first.files + 2
    objects.forget()
    assert publish(full, WHERE).uploaded_bytes == 0
    assert objects.put_bytes == 0
    assert {method for method, _ in objects.asked} == {"GET"}
    before = dict(objects.objects)
    commit(FIRST, minutes(FEBRUARY + 86_400, 1_440), answered=(FEBRUARY, FEBRUARY + 172_800))
    objects.forget()
    later = publish(full, WHERE)
    fresh = {name: body for name, body in objects.objects.items() if before.get(name) != body}
    folders = sorted(name.rpartition("/")[0] for name in fresh)
    assert folders == ["rail", "rail/edge_change", "rail/manifests", "rail/price"]
    assert objects.put_bytes == later.uploaded_bytes == sum(map(len, fresh.values()))
    assert [name for method, name in objects.asked if method == "PUT"][-1] == "rail/manifest.json"
    kept = publish(full, WHERE, keep="1h")
    assert (kept.removed_files, publications(WHERE)["newest"].to_list()) == (0, [True, False])


def test_it_is_read_there_and_imported_as_an_equal_store(
    full: Store, objects: ObjectStore, tmp_path: Path
) -> None:
    publish(full, WHERE)
    made = import_store(WHERE, tmp_path / "made.duckdb")
    assert same(made, full)
    objects.forget()
    assert publish(made, WHERE).uploaded_bytes == objects.put_bytes == 0
    with tk.open(f"{WHERE}/manifest.json") as rail:
        assert rail.store.series(FIRST).equals(full.series(FIRST))
    objects.forget()
    with tk.open(WHERE):
        pass
    assert objects.asked == [("GET", "rail/manifest.json")]


def test_a_large_file_comes_whole_and_a_busy_service_is_asked_again(objects: ObjectStore) -> None:
    place, content = Bucket(WHERE), bytes(range(256)) * 50_000
    place.write("price/large", content)
    assert objects.objects["rail/price/large"] == content == place.read("price/large")
    objects.busy = 2
    place.write("price/small", b"1")
    sizes = {name: file.bytes for name, file in place.files().items()}
    assert sizes == {"price/large": len(content), "price/small": 1}


FAULTS = {
    "another key": (
        {"AWS_ACCESS_KEY_ID": "AKIDOTHER"},
        "403 Forbidden, InvalidAccessKeyId; check the credentials",
    ),
    "another secret": (
        {"AWS_SECRET_ACCESS_KEY": "another-secret"},
        "403 Forbidden, SignatureDoesNotMatch; check the credentials",
    ),
    "http": ({"AWS_ALLOW_HTTP": "false"}, "http is refused: use https, or set AWS_ALLOW_HTTP=true"),
    "nobody there": (
        {"AWS_ENDPOINT": "http://127.0.0.1:9"},
        "no answer from http://127.0.0.1:9; check AWS_ENDPOINT and the network",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_refused_is_one_line_without_the_key(
    full: Store, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    settings, words = FAULTS[fault]
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    for work in (
        lambda: publish(full, WHERE),
        lambda: import_store(WHERE, tmp_path / "made.duckdb"),
        lambda: tk.open(WHERE),
    ):
        with pytest.raises(StoreError) as refused:
            work()
        line = str(refused.value)
        assert line.startswith(WHERE)
        assert words in line
        assert not [
            secret
            for secret in ("\n", objects.secret, objects.key_id, "AKIDOTHER", "another-secret")
            if secret in line
        ]
    assert objects.objects == {}
    assert not (tmp_path / "made.duckdb").exists()


@pytest.mark.usefixtures("objects")
def test_a_bucket_that_is_not_there_is_named(full: Store) -> None:
    with pytest.raises(
        StoreError, match=r"^s3://other cannot be used \(404 .*, NoSuchBucket; check"
    ):
        publish(full, "s3://other")


def test_a_password_in_an_address_is_refused_and_not_repeated(full: Store) -> None:
    with pytest.raises(StoreError, match="has no password") as refused:
        publish(full, "s3://name:hidden@bucket/rail")
    assert "hidden" not in str(refused.value)
