"""An object store of S3's protocol, moto's, which counts what it is asked.

Objects are in memory. As in S3, a request is refused whose key or signature is not right.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import certifi
from moto import settings
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

BUCKET, _REGION, _A_PAGE = "bucket", "us-east-1", 3
_ALL_OF_S3 = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}


@dataclass
class ObjectStore:
    """One bucket and its key, and what came by method, with the bytes that were put."""

    asked: list[tuple[str, str]] = field(default_factory=list)
    put_bytes: int = 0
    busy: int = 0
    """How many of the next requests are answered with 503."""
    base_url: str = ""
    key_id: str = ""
    secret: str = ""
    answer: DomainDispatcherApplication = field(
        default_factory=lambda: DomainDispatcherApplication(create_backend_app)
    )

    def __call__(self, request: dict[str, Any], start: Any) -> Iterable[bytes]:
        """Answer one request of WSGI."""
        name = request["PATH_INFO"].removeprefix(f"/{BUCKET}").lstrip("/")
        self.asked.append((request["REQUEST_METHOD"], name))
        if self.busy:
            self.busy -= 1
            code = "<Error><Code>SlowDown</Code><Message>Please reduce your rate</Message></Error>"
            return Response(code, 503, mimetype="application/xml")(request, start)
        if request["REQUEST_METHOD"] == "PUT":
            self.put_bytes += int(request["CONTENT_LENGTH"])
        return self.answer(request, start)

    @property
    def objects(self) -> dict[str, bytes]:
        """What the bucket holds, by name."""
        bucket = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET]
        return {name: held.value for name, held in bucket.keys.items()}

    def forget(self) -> None:
        """Count from here."""
        self.asked.clear()
        self.put_bytes = 0

    def clear(self) -> None:
        """Remove all objects, and count from here."""
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].keys.clear()
        self.forget()

    @property
    def environment(self) -> dict[str, str]:
        """The settings of somebody who uses this service."""
        return {
            "AWS_ENDPOINT": self.base_url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": _REGION,
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "SSL_CERT_FILE": certifi.where(),  # without any, obstore does not begin
        }


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Write no line per request."""


def _begin(store: ObjectStore) -> None:
    """Make the bucket, and a user whose key may use it."""
    access = {"aws_access_key_id": "first", "aws_secret_access_key": "first"}
    where = {"endpoint_url": store.base_url, "region_name": _REGION}
    users = boto3.client("iam", **where, **access)
    users.create_user(UserName="analyst")
    policy = json.dumps({"Version": "2012-10-17", "Statement": [_ALL_OF_S3]})
    users.put_user_policy(UserName="analyst", PolicyName="all", PolicyDocument=policy)
    key = users.create_access_key(UserName="analyst")["AccessKey"]
    store.key_id, store.secret = key["AccessKeyId"], key["SecretAccessKey"]
    boto3.client("s3", **where, **access).create_bucket(Bucket=BUCKET)
    store.forget()


@contextlib.contextmanager
def serving_objects() -> Iterator[ObjectStore]:
    """Serve an empty bucket at a free port of this machine, three names in a page of a listing."""
    store, before = ObjectStore(), settings.INITIAL_NO_AUTH_ACTION_COUNT
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = str(_A_PAGE)
    try:
        store.base_url = f"http://127.0.0.1:{server.server_port}"
        _begin(store)
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0  # from here on keys and signatures are checked
        yield store
    finally:
        settings.INITIAL_NO_AUTH_ACTION_COUNT = before
        del os.environ["MOTO_S3_DEFAULT_MAX_KEYS"]
        server.shutdown()
        thread.join()
        server.server_close()
        for held in (s3_backends, iam_backends):
            held[DEFAULT_ACCOUNT_ID]["aws"].reset()
