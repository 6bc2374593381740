"""A server on loopback that answers every GET with one body, as a list of models is asked for."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


def models(*names: str) -> str:
    return json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


class ModelsList:
    """Listens while used as a context; `paths` are those that were asked for."""

    def __init__(self, body: str, *, status: int = 200) -> None:
        self.paths: list[str] = []
        answer, paths = body.encode(), self.paths

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths.append(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                try:
                    self.wfile.write(answer)
                except OSError:
                    pass  # it was too much for whoever asked

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the class above
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
