"""A server of `snap mcp --http` for tests, and a client of it in either era of the protocol."""

import base64
import http.client
import json
import queue
import re
import socket
import subprocess
import threading

from mcptest import VERSION, Client
from snaptest import SNAP

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Server:
    """The program on a port of its own; `port` and `token` are what it printed."""

    def __init__(self, w, *options, command=None, env=None):
        self.process = subprocess.Popen(command or [SNAP, "mcp", "--http", "127.0.0.1:0", *options],
                                        cwd=w.project, env={**w.env, **(env or {})},
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = [self.process.stderr.readline().decode()]
        url = re.search(r"http://([^/]*):(\d+)/mcp", self.said[0])
        assert url, (self.said, self.process.stderr.read())
        self.host, self.port, self.token = url[1], int(url[2]), None
        if "--token-file" not in options and not command:
            self.said.append(self.process.stderr.readline().decode())
            self.token = re.search(r"Bearer (\w+)", self.said[1])[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, seconds=30):
        self.process.terminate()
        status = self.process.wait(seconds)
        self.process.stderr.close()
        assert status == 0, status

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def headers(self, **more):
        """What every request has; None takes one away."""
        given = {"Content-Type": "application/json",
                 "Accept": "application/json, text/event-stream",
                 **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
                 **{k.replace("_", "-"): v for k, v in more.items()}}
        return {k: v for k, v in given.items() if v is not None}

    def ask(self, body=b"", method="POST", path="/mcp", **headers):
        """The response of HTTP with what it holds as `content`."""
        link = self.connect()
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        link.request(method, path, body, self.headers(**headers))
        got = link.getresponse()
        got.content = got.read()
        link.close()
        return got

    def socket(self):
        return socket.create_connection((self.host, self.port), timeout=60)


def modern(method, number=1, capable=None, meta=None, **params):
    """A request of the newer era, and the headers that go with it."""
    params["_meta"] = {"io.modelcontextprotocol/protocolVersion": VERSION,
                       "io.modelcontextprotocol/clientCapabilities": capable or {}, **(meta or {})}
    headers = {"MCP_Protocol_Version": VERSION, "Mcp_Method": method}
    if method in NAMED and NAMED[method] in params:
        headers["Mcp_Name"] = params[NAMED[method]]
        if not headers["Mcp_Name"].isascii():
            coded = base64.b64encode(headers["Mcp_Name"].encode()).decode()
            headers["Mcp_Name"] = f"=?base64?{coded}?="
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}, headers


def events(response):
    """Each message of a stream."""
    for line in response:
        if line.startswith(b"data:"):
            yield json.loads(line[5:])


class HttpClient(Client):
    """The client of mcptest, but that each message is a request of HTTP."""

    def __init__(self, server, era=VERSION, can_ask=False):
        # pylint: disable=super-init-not-called
        self.server, self.era, self.session = server, era, None
        self.ids, self.got, self.links = iter(range(1, 1 << 30)), queue.Queue(), {}
        self.capable = {"elicitation": {}} if can_ask else {}
        self.failures, self.asked, self.says_yes = [], [], True
        if era != VERSION:
            self.opened = self.ask("initialize", protocolVersion=era, capabilities=self.capable,
                                   clientInfo={"name": "test", "version": "1"})["result"]
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __exit__(self, *_):
        if self.session:
            got = self.server.ask(method="DELETE", **self.legacy())
            assert got.status in (200, 404), got.status

    def legacy(self):
        if not self.session:
            return {}
        return {"Mcp_Session_Id": self.session, "MCP_Protocol_Version": self.era}

    def send(self, message):
        got = self.server.ask(message, **self.legacy())
        assert got.status == 202 and got.content == b"", (got.status, got.content)

    def start(self, method, **params):
        number = next(self.ids)
        if self.era == VERSION:
            body, headers = modern(method, number, self.capable, params.pop("_meta", None), **params)
        else:
            body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            headers = self.legacy()
        link = self.links[number] = self.server.connect()
        link.request("POST", "/mcp", json.dumps(body).encode(), self.server.headers(**headers))
        threading.Thread(target=self.receive, args=(link, method, number), daemon=True).start()
        return number

    def receive(self, link, method, number):
        try:
            got = link.getresponse()
            if method == "initialize":
                self.session = got.headers["Mcp-Session-Id"]
            if got.headers["Content-Type"] == "text/event-stream":
                for message in events(got):
                    self.got.put(message)
            else:
                self.got.put(json.loads(got.read()))
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as e:
            if number in self.links:
                self.got.put(e)

    def read(self, seconds=60):
        got = self.got.get(timeout=seconds)
        if isinstance(got, Exception):
            raise got
        return got

    def hang_up(self, number):
        """Close the connection of a request."""
        link = self.links.pop(number)
        link.sock.shutdown(socket.SHUT_RDWR)
        link.close()
