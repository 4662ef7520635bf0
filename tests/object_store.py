"""A service that speaks as much of S3 as publishing asks for, and counts what it is asked.

Objects are in memory. A request that is not of the one key is refused, as S3 refuses it. A large
object comes in parts, and is there when the last request puts them together.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from xml.sax.saxutils import escape, unescape

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

BUCKET, KEY_ID, SECRET = "bucket", "AKIDEXAMPLE", "a-secret-that-no-line-shows"
_A_PAGE = 3
_CHANGED = formatdate(1_767_225_600, usegmt=True)


@dataclass
class ObjectStore:
    """One bucket: its objects, and what came by method, with the bytes that were put."""

    objects: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    put_bytes: int = 0
    busy: int = 0
    """How many of the next requests are answered with 503."""
    base_url: str = ""

    def forget(self) -> None:
        """Count from here."""
        self.asked.clear()
        self.put_bytes = 0

    @property
    def environment(self) -> dict[str, str]:
        """The settings of somebody who uses this service."""
        return {
            "AWS_ENDPOINT": self.base_url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    async def answer(self, request: Request) -> Response:
        """Answer one request, as S3 does."""
        body, name = await request.body(), request.path_params.get("name", "")
        self.asked.append((request.method, name))
        if f"Credential={KEY_ID}/" not in request.headers.get("authorization", ""):
            return _refused(403, "InvalidAccessKeyId", "The key ID is not in our records.")
        if request.path_params["bucket"] != BUCKET:
            return _refused(404, "NoSuchBucket", "The specified bucket does not exist")
        if self.busy:
            self.busy -= 1
            return _refused(503, "SlowDown", "Please reduce your request rate.")
        if request.method in {"GET", "HEAD"}:
            return self._get(name) if name else self._list(request.query_params)
        change = self._put if request.method == "PUT" else self._post
        return change(name, body, request.query_params)

    def _get(self, name: str) -> Response:
        if name not in self.objects:
            return _refused(404, "NoSuchKey", "The specified key does not exist.")
        return Response(self.objects[name], headers=_facts(self.objects[name]))

    def _put(self, name: str, body: bytes, query: Mapping[str, str]) -> Response:
        if "uploadId" in query:
            self.parts[query["uploadId"]][int(query["partNumber"])] = body
        else:
            self.objects[name] = body
        self.put_bytes += len(body)
        return Response(headers=_facts(body))

    def _post(self, name: str, body: bytes, query: Mapping[str, str]) -> Response:
        """Remove objects, or begin or end an upload in parts."""
        if "delete" in query:
            names = [unescape(found) for found in re.findall(r"<Key>(.*?)</Key>", body.decode())]
            for gone in names:
                self.objects.pop(gone, None)
            deleted = "".join(f"<Deleted><Key>{escape(gone)}</Key></Deleted>" for gone in names)
            return _xml(f"<DeleteResult>{deleted}</DeleteResult>")
        where = f"<Bucket>{BUCKET}</Bucket><Key>{escape(name)}</Key>"
        if "uploads" in query:
            number = str(len(self.parts) + 1)
            self.parts[number] = {}
            begun = f"{where}<UploadId>{number}</UploadId>"
            return _xml(f"<InitiateMultipartUploadResult>{begun}</InitiateMultipartUploadResult>")
        content = b"".join(part for _, part in sorted(self.parts.pop(query["uploadId"]).items()))
        self.objects[name] = content
        ended = f"{where}<ETag>{escape(_facts(content)['ETag'])}</ETag>"
        return _xml(f"<CompleteMultipartUploadResult>{ended}</CompleteMultipartUploadResult>")

    def _list(self, query: Mapping[str, str]) -> Response:
        """Answer a few names at a time, so that whoever lists must follow the pages."""
        after, prefix = query.get("continuation-token", ""), query.get("prefix", "")
        names = sorted(n for n in self.objects if n.startswith(prefix) and n > after)
        page, more = names[:_A_PAGE], len(names) > _A_PAGE
        found = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z"
            f"</LastModified><ETag>{escape(_facts(self.objects[name])['ETag'])}</ETag>"
            f"<Size>{len(self.objects[name])}</Size></Contents>"
            for name in page
        )
        token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if more else ""
        return _xml(
            f"<ListBucketResult><Name>{BUCKET}</Name><KeyCount>{len(page)}</KeyCount>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{found}</ListBucketResult>"
        )


def _facts(content: bytes) -> dict[str, str]:
    tag = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return {"ETag": f'"{tag}"', "Last-Modified": _CHANGED}


def _xml(text: str, status: int = 200) -> Response:
    return Response(
        f'<?xml version="1.0" encoding="UTF-8"?>\n{text}', status, media_type="application/xml"
    )


def _refused(status: int, code: str, words: str) -> Response:
    return _xml(f"<Error><Code>{code}</Code><Message>{words}</Message></Error>", status)


@contextlib.contextmanager
def serving_objects() -> Iterator[ObjectStore]:
    """Serve an empty bucket at a free port of this machine."""
    store = ObjectStore()
    ways = ["GET", "HEAD", "PUT", "POST"]
    paths = ("/{bucket}", "/{bucket}/", "/{bucket}/{name:path}")
    app = Starlette(routes=[Route(path, store.answer, methods=ways) for path in paths])
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        store.base_url = f"http://127.0.0.1:{port}"
        yield store
    finally:
        server.should_exit = True
        thread.join()
