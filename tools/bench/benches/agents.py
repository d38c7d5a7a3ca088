"""How fast `snap mcp` answers: the first time from the start of its process, and call after call."""

import http.client
import json
import re
import subprocess
import time

from row import OURS, at_most

VERSION = "snap version"
CALLS = 200
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """A server of its own, asked for one thing after the other."""

    def __init__(self, session, project):
        self.process = subprocess.Popen([session.snapcow, "mcp"], cwd=project, env=session.store.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, method, **params):
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                           "params": {"_meta": META, **params}})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if b'"result"' not in answer:
            raise RuntimeError(answer.decode()[:500])

    def call(self, tool, **arguments):
        self.ask("tools/call", name=tool, arguments=arguments)

    def resident(self):
        """KiB of memory."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class HttpClient(Client):
    """The same over HTTP, on one connection that stays."""

    def __init__(self, session, project):
        self.process = subprocess.Popen([session.snapcow, "mcp", "--http", "127.0.0.1:0"], cwd=project,
                                        env=session.store.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        port = re.search(rb"http://[^/]*:(\d+)/mcp", self.process.stderr.readline())[1]
        self.token = re.search(r"Bearer (\w+)", self.process.stderr.readline().decode())[1]
        self.link = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)

    def ask(self, method, **params):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                   "Authorization": f"Bearer {self.token}", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        self.link.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                                                      "params": {"_meta": META, **params}}), headers)
        answer = self.link.getresponse().read()
        if b'"result"' not in answer:
            raise RuntimeError(answer.decode()[:500])

    def close(self):
        self.link.close()
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()


def first_answer(session, project, kind=Client):
    begin = time.monotonic()
    client = kind(session, project)
    client.ask("server/discover")
    took = time.monotonic() - begin
    client.close()
    return took * 1000


def calls(client, row, tool, **arguments):
    begin = time.monotonic()
    for _ in range(CALLS):
        client.call(tool, **arguments)
    row.add(OURS, CALLS / (time.monotonic() - begin))


def measure(session, project, kind, over):
    """The rows of one transport; `over` names it."""
    first = session.row(f"`snap mcp`{over}: from its start to its first answer", "ms",
                        *([at_most(1.5, VERSION)] if kind is Client else []))
    status = session.row(f"calls of `snap_status` a second{over}", "/s", rate=True)
    read = session.row(f"calls of `snap_read` a second{over}", "/s", rate=True)
    memory = session.row(f"memory of the server after 10,000 calls{over}", "KiB", at_most(1.1, "after 100"))
    session.rounds(f"first answer{over}", {
        VERSION: lambda _: first.add(VERSION, session.store.timed("version", cwd=project)),
        OURS: lambda _: first.add(OURS, first_answer(session, project, kind))}, [first], count=40, sync=False)
    client = kind(session, project)
    name = str(next(p for p in sorted(project.rglob("*")) if p.is_file()).relative_to(project))
    session.rounds(f"calls{over}", {OURS: lambda _: (calls(client, status, "snap_status", clone="agent"),
                                                     calls(client, read, "snap_read", clone="agent", path=name))},
                   [status, read], sync=False)
    memory.add("after 100", client.resident())
    for _ in range(500 if session.opts.quick else 10000):
        client.call("snap_read", clone="agent", path=name)
    memory.add(OURS, client.resident())
    client.close()


def mcp(session):
    project = session.tree(1000)
    session.clone_now(project, "agent")
    measure(session, project, Client, "")
    measure(session, project, HttpClient, " over HTTP")


PARTS = {"mcp": mcp}
