"""How fast `snap mcp` answers: the first time from the start of its process, and call after call."""

import json
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


def first_answer(session, project):
    begin = time.monotonic()
    client = Client(session, project)
    client.ask("server/discover")
    took = time.monotonic() - begin
    client.close()
    return took * 1000


def mcp(session):
    first = session.row("`snap mcp`: from its start to its first answer", "ms", at_most(1.5, VERSION))
    status = session.row("calls of `snap_status` a second", "/s", rate=True)
    read = session.row("calls of `snap_read` a second", "/s", rate=True)
    memory = session.row("memory of the server after 10,000 calls", "KiB", at_most(1.1, "after 100"))
    project = session.tree(1000)
    session.clone_now(project, "agent")
    session.rounds("first answer", {
        VERSION: lambda _: first.add(VERSION, session.store.timed("version", cwd=project)),
        OURS: lambda _: first.add(OURS, first_answer(session, project))}, [first], count=40, sync=False)
    client = Client(session, project)
    name = str(next(p for p in sorted(project.rglob("*")) if p.is_file()).relative_to(project))

    def calls(row, tool, **arguments):
        begin = time.monotonic()
        for _ in range(CALLS):
            client.call(tool, **arguments)
        row.add(OURS, CALLS / (time.monotonic() - begin))
    session.rounds("calls", {OURS: lambda _: (calls(status, "snap_status", clone="agent"),
                                              calls(read, "snap_read", clone="agent", path=name))},
                   [status, read], sync=False)
    memory.add("after 100", client.resident())
    for _ in range(500 if session.opts.quick else 10000):
        client.call("snap_read", clone="agent", path=name)
    memory.add(OURS, client.resident())
    client.close()


PARTS = {"mcp": mcp}
