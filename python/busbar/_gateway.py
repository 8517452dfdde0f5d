# SPDX-License-Identifier: BSD-2-Clause
"""A running gateway: one method for each request that it answers."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Sequence, cast
from urllib.parse import quote, urlencode

from . import _types as types
from ._ask import PREFIX, Answer, Http, Local
from ._errors import Error, ProtocolError, TimedOut, refused
from ._stream import Deadline, PathLike, check_timeout, make_access, parse_url

if TYPE_CHECKING:
    from ._live import Live
    from ._live_async import AsyncLive

_POLL_FIRST_S = 0.02
_POLL_MOST_S = 1.0


class Job:
    """A command that is being carried out. The gateway remembers the last 32 of them."""

    def __init__(self, gateway: Gateway, id: str, method: str, path: str) -> None:
        self.id = id
        self._gateway = gateway
        self._request = method, path
        self._state: types.JobState | None = None

    def done(self) -> bool:
        """Asks the gateway, unless it has said so before."""
        if self._state is None:
            state = self._gateway.job(self.id)
            if state["state"] != "done":
                return False
            self._state = state
        return True

    def wait(self, timeout: float | None = None) -> Any:
        """The body of the command's answer, once it is there; raises what the command itself
        would have raised. After TimedOut it is still being carried out."""
        deadline = Deadline(timeout)
        pause = _POLL_FIRST_S
        while not self.done():
            left = deadline.left(f"job {self.id} is not done")
            time.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 2, _POLL_MOST_S)
        assert self._state is not None
        status, body = self._state.get("status"), self._state.get("body")
        if not isinstance(status, int):
            raise ProtocolError(f"job {self.id}: done, without a status")
        if status >= 400:
            raise refused(status, body, *self._request)
        return body


class Gateway:
    """The gateway at `where`: http://HOST[:PORT] or https://HOST[:PORT], or the path of its
    control socket, which begins with @ if it is abstract.

    Over HTTP `token` or `token_file` is what it is shown (busbar-http(7)); over HTTPS `ca` is
    the authority of its certificate in place of the system's, `cert` and `key` are a
    certificate to show it, or `context` has all of this. `timeout` is in seconds and for a
    whole call, None: for ever.

    A node is named by its name or UUID; a path by its name, UUID or number from 0. Commands
    return True, or False where nothing had to be changed. A gateway may be used by several
    threads, which take turns. No connection is made before the first call.
    """

    def __init__(
        self,
        where: str,
        *,
        token: str | None = None,
        token_file: PathLike | None = None,
        ca: PathLike | None = None,
        cert: PathLike | None = None,
        key: PathLike | None = None,
        context: ssl.SSLContext | None = None,
        timeout: float | None = 30,
    ) -> None:
        check_timeout(timeout)
        self._timeout = timeout
        self._way: Http | Local
        if "://" not in where:
            for name, value in (("token", token), ("token_file", token_file), ("ca", ca),
                                ("cert", cert), ("key", key), ("context", context)):
                if value is not None:
                    raise ValueError(f"{name}: belongs to http:// and https:// only")
            self._way = Local(where, timeout)
            return
        place = parse_url(where, "http", "https")
        if place.path not in ("", "/"):
            raise ValueError(f"{where!r}: expected nothing behind host and port")
        self._access = make_access(place.tls, token, token_file, ca, cert, key, context)
        self._way = Http(place, self._access, timeout)

    def __repr__(self) -> str:
        return f"Gateway({self._way.where!r})"

    def close(self) -> None:
        """Ends the connection. The next call makes another one."""
        self._way.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # ---- any request ----

    def ask(self, method: str, path: str, body: Any = None, accept: str | None = None) -> Answer:
        """Any request: `path` without /api/v2, percent-encoded. Returns whatever is answered,
        also errors and, over HTTP, the status 202 of a job."""
        if not path.startswith("/") or any(c <= " " or c > "~" for c in path):
            raise ValueError(f"{path!r}: expected a path that begins with /, percent-encoded")
        return self._way.ask(method, path, body, accept)

    def begin(self, method: str, path: str, body: Any = None) -> Job:
        """Begins a command and does not wait for its end. Over HTTP only."""
        return self._job(self._good(self._way.ask(method, path, body, None, at_once=True),
                                    method, path), method, path)

    def _good(self, answer: Answer, method: str, path: str) -> Answer:
        if answer.status >= 400:
            raise refused(answer.status, answer.body, method, path)
        return answer

    def _job(self, answer: Answer, method: str, path: str) -> Job:
        place = answer.location or ""
        if answer.status != 202 or not place.startswith(PREFIX + "/job/"):
            raise ProtocolError(f"{self._way.where}: {method} {path}: status {answer.status}, "
                                "expected 202 with the place of a job")
        return Job(self, place[len(PREFIX) + 5:], method, path)

    def _request(self, method: str, path: str, body: Any = None, accept: str | None = None
                 ) -> Answer:
        deadline = Deadline(self._timeout)
        answer = self._good(self._way.ask(method, path, body, accept), method, path)
        if answer.status != 202:
            return answer
        job = self._job(answer, method, path)
        try:
            return Answer(200, "application/json",
                          job.wait(deadline.left(f"job {job.id} is not done")))
        except TimedOut:
            raise TimedOut(f"{self._way.where}: {method} {path}: not carried out within "
                           f"{self._timeout:g} s; it goes on as job {job.id}") from None

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._request(method, path, body)
        if answer.type != "application/json":
            raise ProtocolError(f"{self._way.where}: {method} {path}: the answer has the type "
                                f"{answer.type!r}")
        return answer.body

    def _object(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        o = self._json(method, path, body)
        if not isinstance(o, dict):
            raise ProtocolError(f"{self._way.where}: {method} {path}: expected an object")
        return o

    def _list(self, path: str) -> list[Any]:
        o = self._json("GET", path)
        if not isinstance(o, list):
            raise ProtocolError(f"{self._way.where}: GET {path}: expected a list")
        return o

    def _command(self, path: str) -> bool:
        return not self._object("POST", path).get("unchanged", False)

    # ---- the gateway ----

    def status(self) -> types.Status:
        return cast(types.Status, self._object("GET", "/status"))

    def capabilities(self) -> types.Capabilities:
        """What this build can do."""
        return cast(types.Capabilities, self._object("GET", "/capabilities"))

    def config(self) -> dict[str, Any]:
        """The present configuration."""
        return self._object("GET", "/config")

    def config_text(self) -> str:
        """The same in the language of libconfig. Over HTTP only."""
        if isinstance(self._way, Local):
            raise Error("the control socket gives the configuration as an object only")
        return self._text(self._request("GET", "/config", accept="text/x-libconfig"))

    def config_written(self) -> types.ConfigText:
        """The present configuration as it was written, and where."""
        return cast(types.ConfigText, self._object("GET", "/config/text"))

    def check(self, text: str) -> types.Check:
        """Reads a text as a configuration, says what is wrong with it, and changes nothing."""
        return cast(types.Check, self._object("POST", "/check", {"text": text}))

    def log(self, after: int = 0) -> types.Log:
        """The last lines of the log behind line number `after`."""
        return cast(types.Log, self._object("GET", "/log?after=%d" % after))

    def stats(self) -> types.Stats:
        """Counters of all nodes and paths."""
        return cast(types.Stats, self._object("GET", "/stats"))

    def reset_stats(self) -> bool:
        return self._command("/stats/reset")

    def metrics(self, openmetrics: bool = False) -> str:
        """Counters and histograms as text for Prometheus."""
        accept = "application/openmetrics-text" if openmetrics else "text/plain"
        return self._text(self._request("GET", "/metrics", accept=accept))

    def _text(self, answer: Answer) -> str:
        if not isinstance(answer.body, bytes):
            raise ProtocolError(f"{self._way.where}: expected a text, got {answer.type}")
        return answer.body.decode(errors="replace")

    def graph(self, format: str = "dot", layout: str | None = None) -> bytes:
        """Nodes and paths, drawn: dot, svg, png, pdf, json or plain. All but dot need Graphviz
        on the gateway's host, and what is no text HTTP."""
        path = f"/graph.{_id(format)}"
        if layout is not None:
            path += "?" + urlencode({"layout": layout}, quote_via=quote)
        body = self._request("GET", path, accept="*/*").body
        if isinstance(body, bytes):
            return body
        return json.dumps(body).encode()

    def openapi(self) -> dict[str, Any]:
        """The description of all requests (OpenAPI 3.1)."""
        return self._object("GET", "/openapi.json")

    def reload(self, config: types.Configuration | None = None) -> types.Report:
        """Takes what has changed in the configuration; None: reads the present file again.
        Nodes and paths with the same settings go on. Raises WrongConfiguration, with all
        errors, and nothing was changed then."""
        return cast(types.Report, self._object("POST", "/reload", _config(config)))

    def apply(self, text: str, revision: str | None = None) -> types.Report:
        """As reload(), with the text of a configuration in the place of the present file, which
        is not written. With the revision of config_written() raises NotPossible if there was
        another reload since."""
        body = {"text": text}
        if revision is not None:
            body["revision"] = revision
        return cast(types.Report, self._object("POST", "/reload", body))

    def restart(self, config: types.Configuration | None = None) -> types.Restart:
        """Stops everything and starts anew. Returns before that: requests that come meanwhile
        raise Unavailable or Unreachable."""
        return cast(types.Restart, self._object("POST", "/restart", _config(config)))

    def shutdown(self) -> None:
        """Ends the gateway."""
        self._object("POST", "/shutdown")

    def job(self, id: str) -> types.JobState:
        """How a command goes that takes long; see begin(). Over HTTP only."""
        if isinstance(self._way, Local):
            raise Error("the control socket has no jobs")
        return cast(types.JobState, self._object("GET", f"/job/{_id(id)}"))

    # ---- nodes ----

    def nodes(self) -> list[types.Node]:
        return self._list("/nodes")

    def node(self, id: str) -> types.Node:
        return cast(types.Node, self._object("GET", f"/node/{_id(id)}"))

    def node_stats(self, id: str) -> types.NodeStats:
        """Counters, and what a hook `stats` measures."""
        return cast(types.NodeStats, self._object("GET", f"/node/{_id(id)}/stats"))

    def reset_node_stats(self, id: str) -> bool:
        return self._command(f"/node/{_id(id)}/stats/reset")

    def start_node(self, id: str) -> bool:
        return self._command(f"/node/{_id(id)}/start")

    def stop_node(self, id: str) -> bool:
        return self._command(f"/node/{_id(id)}/stop")

    def pause_node(self, id: str) -> bool:
        return self._command(f"/node/{_id(id)}/pause")

    def resume_node(self, id: str) -> bool:
        return self._command(f"/node/{_id(id)}/resume")

    def restart_node(self, id: str) -> bool:
        return self._command(f"/node/{_id(id)}/restart")

    def rewind_node(self, id: str) -> bool:
        """A node of the type file reads from the beginning."""
        return self._command(f"/node/{_id(id)}/file/rewind")

    # ---- paths ----

    def paths(self) -> list[types.Path]:
        return self._list("/paths")

    def path(self, id: str | int) -> types.Path:
        return cast(types.Path, self._object("GET", f"/path/{_id(id)}"))

    def path_stats(self, id: str | int) -> types.PathStats:
        return cast(types.PathStats, self._object("GET", f"/path/{_id(id)}/stats"))

    def reset_path_stats(self, id: str | int) -> bool:
        return self._command(f"/path/{_id(id)}/stats/reset")

    def start_path(self, id: str | int) -> bool:
        return self._command(f"/path/{_id(id)}/start")

    def stop_path(self, id: str | int) -> bool:
        return self._command(f"/path/{_id(id)}/stop")

    def pause_path(self, id: str | int) -> bool:
        return self._command(f"/path/{_id(id)}/pause")

    def resume_path(self, id: str | int) -> bool:
        return self._command(f"/path/{_id(id)}/resume")

    def restart_path(self, id: str | int) -> bool:
        return self._command(f"/path/{_id(id)}/restart")

    # ---- samples ----

    def _live_settings(self, path: str, format: str, query: str, receives: Sequence[types.Signal],
                       sends: Sequence[types.Signal]) -> dict[str, Any]:
        assert isinstance(self._way, Http)
        place = self._way.place
        url = ("wss" if place.tls else "ws") + f"://{place.authority}{path}"
        return {
            "url": url + ("" if format == "villas.web" else f".{format}") + query,
            "format": format,
            "receives": [s["type"] for s in receives],
            "sends": [s["type"] for s in sends],
            "token": self._access.token,
            "context": self._access.context,
            "timeout": self._timeout,
        }

    def _about(self, node: str) -> types.Node:
        if isinstance(self._way, Local):
            raise Error("samples come over HTTP: expected a gateway at http:// or https://")
        return self.node(node)

    def _node_settings(self, node: str, format: str) -> dict[str, Any]:
        about = self._about(node)
        if about["type"] != "websocket":
            raise Error(f"node {about['name']}: is of the type {about['type']}, and only those of "
                        "the type websocket have clients; tap() looks at any node")
        # What the node is given goes to its clients, what they send is read from it.
        return self._live_settings(f"/{_id(about['name'])}", format, "", about["out"]["signals"],
                                   about["in"]["signals"])

    def _tap_settings(self, node: str, direction: str, format: str, rate: float | None
                      ) -> dict[str, Any]:
        if direction not in ("in", "out"):
            raise ValueError(f"direction {direction!r}: expected 'in' or 'out'")
        about = self._about(node)
        signals = about["in"]["signals"] if direction == "in" else about["out"]["signals"]
        query = "" if rate is None else f"?rate={rate:g}"
        return self._live_settings(f"/tap/{_id(about['name'])}/{direction}", format, query,
                                   signals, ())

    def live(self, node: str, format: str = "villas.web") -> Live:
        """Connects to a node of the type websocket, whose samples are then read and written;
        see Live."""
        from ._live import Live

        return Live(**self._node_settings(node, format))

    def tap(self, node: str, direction: str = "in", format: str = "villas.web",
            rate: float | None = None) -> Live:
        """Looks at the samples that a node of any type reads ("in") or is given ("out"), at most
        `rate` of them a second; see TAPS in busbar-http(7)."""
        from ._live import Live

        return Live(**self._tap_settings(node, direction, format, rate))

    async def live_async(self, node: str, format: str = "villas.web") -> AsyncLive:
        """As live(), for asyncio."""
        from ._live_async import AsyncLive

        return await AsyncLive.connect(**await asyncio.to_thread(
            self._node_settings, node, format))

    async def tap_async(self, node: str, direction: str = "in", format: str = "villas.web",
                        rate: float | None = None) -> AsyncLive:
        """As tap(), for asyncio."""
        from ._live_async import AsyncLive

        return await AsyncLive.connect(**await asyncio.to_thread(
            self._tap_settings, node, direction, format, rate))


def _id(id: str | int) -> str:
    text = str(id)
    if not text or text in (".", ".."):
        raise ValueError(f"{id!r}: expected a name, a UUID or, of a path, a number")
    return quote(text, safe="")


def _config(config: types.Configuration | None) -> dict[str, Any] | None:
    return None if config is None else {"config": config}
