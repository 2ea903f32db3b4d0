#!/usr/bin/env python3
"""A small HTTP server that keeps documents as a good one does: ETag, If-Match, requests held back.

usage: store.py FOLDER [PORT]      serves the files of FOLDER; prints its address; PORT 0 is any
       store.py FOLDER VERB        changes the file "policy" from outside, for the conformance kit

VERB is set, delete, break, restore or second, given by the kit; documents come on standard input.
While there is a file "broken" in FOLDER everything is answered with 503.
"""

import hashlib
import http.server
import os
import pathlib
import sys
import tempfile
import threading
import time

FOLDER = pathlib.Path(sys.argv[1])
BROKEN = FOLDER / "broken"
WRITING = threading.Lock()  # held from comparing to storing


def store(name: str, document: bytes) -> None:
    """Replaces a file as a whole."""
    with tempfile.NamedTemporaryFile(dir=FOLDER, prefix=".new-", delete=False) as f:
        f.write(document)
    os.replace(f.name, FOLDER / name)


def etag_of(document: bytes) -> str:
    """Names the very bytes."""
    return '"' + hashlib.sha256(document).hexdigest()[:32] + '"'


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves the files of the folder."""

    protocol_version = "HTTP/1.1"

    def _document(self):
        name = self.path.lstrip("/")
        if not name or "/" in name or name.startswith("."):
            return None
        try:
            return (FOLDER / name).read_bytes()
        except FileNotFoundError:
            return None

    def _answer(self, status, document=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if status != 304:
            self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document)

    def do_GET(self):
        known, headers = self.headers.get("If-None-Match"), {}
        prefer = self.headers.get("Prefer", "")
        if prefer.startswith("wait="):
            headers["Preference_Applied"] = prefer
            end = time.monotonic() + float(prefer[5:])
            while time.monotonic() < end and not BROKEN.exists():
                document = self._document()
                if document is None or etag_of(document) != known:
                    break
                time.sleep(0.02)
        document = self._document()
        if BROKEN.exists():
            self._answer(503)
        elif document is None:
            self._answer(404)
        elif etag_of(document) == known:
            self._answer(304, ETag=known, **headers)
        else:
            self._answer(200, document, ETag=etag_of(document), Content_Type="application/yaml", **headers)

    def do_PUT(self):
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match, none = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        with WRITING:
            now = self._document()
            if BROKEN.exists():
                self._answer(503)
            elif match and (now is None or etag_of(now) != match) or none == "*" and now is not None or not (match or none):
                self._answer(412)
            else:
                store(self.path.lstrip("/"), content)
                self._answer(204 if now is not None else 201, ETag=etag_of(content))

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """As many requests held back as come."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Callers that hang up are nothing to tell of; everything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def change(verb: str) -> int:
    """Does what the kit asks for; 3 says that it is not known here."""
    if verb == "set":
        store("policy", sys.stdin.buffer.read())
    elif verb == "delete":
        (FOLDER / "policy").unlink(missing_ok=True)
    elif verb == "break":
        BROKEN.touch()
    elif verb == "restore":
        BROKEN.unlink(missing_ok=True)
    elif verb == "second":
        store("second", sys.stdin.buffer.read())
        print((FOLDER / ".address").read_text() + "/second")
    else:
        return 3
    return 0


def main() -> int:
    """Serves, or changes what is served."""
    what = sys.argv[2] if len(sys.argv) > 2 else "0"
    if not what.isdigit():
        return change(what)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with Server(("127.0.0.1", int(what)), Handler) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}"
        (FOLDER / ".address").write_text(address)
        print(address, flush=True)
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
