"""The Chromium of this machine, and a server for what it opens: for the tests of the book, and for its PDF."""

import functools
import http.server
import shutil
import sys
import threading
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ("--no-sandbox", "--disable-gpu")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing; a connection serves many of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Says nothing of a reader who left before all was sent."""

    def handle_error(self, *args):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*args)


@contextmanager
def serve(folder):
    """Serve a folder on localhost; gives its address."""
    handler = functools.partial(Quiet, directory=str(folder))
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
