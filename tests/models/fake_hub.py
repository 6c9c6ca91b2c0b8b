"""A model hub on this machine: just enough of its HTTP interface for `huggingface_hub`."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub(ThreadingHTTPServer):
    """Serves repositories of files; after `break_after` bytes of them every connection breaks."""

    daemon_threads = True

    def __init__(self, repositories: dict[str, dict[str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories = repositories
        self.requests: list[str] = []
        self.break_after: int | None = None
        self.silent = False
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.released.set()
        hub.shutdown()
        thread.join()
        hub.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        self.server.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        if self.server.silent:
            self.server.released.wait(10)
            self.close_connection = True
            return
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/"):
            self._describe(path.removeprefix("/api/models/").partition("/revision/")[0])
        else:
            self._file(path, with_body)

    def _describe(self, repository: str) -> None:
        files = self.server.repositories.get(repository)
        if files is None:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        siblings = [
            {
                "rfilename": name,
                "size": len(data),
                "lfs": {"sha256": _sha256(data), "size": len(data), "pointerSize": 130},
            }
            for name, data in files.items()
        ]
        document = {"id": repository, "sha": COMMIT, "siblings": siblings}
        self._send(200, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def _file(self, path: str, with_body: bool) -> None:
        repository, _, name = path.strip("/").partition("/resolve/")
        name = name.partition("/")[2]
        data = self.server.repositories.get(repository, {}).get(name)
        if data is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        headers: dict[str, Any] = {
            "ETag": f'"{_sha256(data)}"',
            "X-Repo-Commit": COMMIT,
            "Accept-Ranges": "bytes",
        }
        wanted = self.headers.get("Range", "")
        if wanted.startswith("bytes="):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, stop = int(first or 0), int(last) + 1 if last else len(data)
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
            self._send(206, data[start:stop], headers, with_body)
        else:
            self._send(200, data, headers, with_body)

    def _send(self, status: int, body: bytes, headers: dict[str, Any], with_body: bool = True) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not with_body:
            return
        if self.server.break_after is not None and status in (200, 206) and "resolve" in self.path:
            self.wfile.write(body[: self.server.break_after])
            self.server.break_after -= min(self.server.break_after, len(body))
            self.close_connection = True
            return
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
