"""Empty commands on another machine: tickets through one worker, against `ssh host true`.

All of it is on loopback: nats-server and sshd are our own. A ticket is posted as `snap run --on` does it, and
is over when its result is stored; a worker makes a clone and a sandbox for each. ssh makes a connection
for each command, as a script that spreads work does.
"""

import json
import os
import pwd
import shutil
import socket
import subprocess
import time

from arena import Store, run, timed
from row import OURS, at_most

TICKETS, JOBS = 100, 2
SSH = "ssh host true"
LIMITS = ("mem", "cpus_milli", "pids", "time_ms", "disk", "inodes", "fsize", "nofile", "output", "net_out")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process):
    for _ in range(200):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens on port {port}")


def find(name):
    return shutil.which(name) or next((p for p in (f"/usr/sbin/{name}",) if os.access(p, os.X_OK)), None)


class Fleet:
    """A queue, a worker with a store of its own, and a state that it has."""

    def __init__(self, session, top):
        self.port, project = free_port(), top / "project"
        project.mkdir()
        (project / "file").write_text("content\n")
        self.depot = f"dir:{top}/depot"
        self.nats = subprocess.Popen([find("nats-server"), "-js", "-sd", str(top / "nats"), "-a", "127.0.0.1", "-p",
                                      str(self.port)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.nats)
        self.store = Store(session.arena, session.snapcow, "tickets/store")
        session.store.snap("init", cwd=project)
        self.manifest = session.store.snap("push", f"{self.depot}:queue-bench", cwd=project)["manifest"]
        said = top / "worker"
        with open(said, "wb") as to:
            self.worker = subprocess.Popen([session.snapcow, "--json", "worker", "--queue", f"nats://127.0.0.1:{self.port}",
                                            "--remote", self.depot, "--jobs", str(JOBS)], cwd=top,
                                           env={**os.environ, **self.store.env}, stdin=subprocess.DEVNULL, stdout=to)
        while b'"ready"' not in said.read_bytes():
            assert self.worker.poll() is None, "the worker does not start"
            time.sleep(0.05)
        self.sock = socket.create_connection(("127.0.0.1", self.port), 120)
        self.lines = self.sock.makefile("rb")
        self.sock.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nSUB snapcow.default.result.* 1\r\nPING\r\n')
        while self.lines.readline() != b"PONG\r\n":
            pass

    def ticket(self):
        fields = {"schema": "snapcow.ticket/1", "snapshot": self.manifest, "name": "queue-bench", "remote": self.depot,
                  "profile": None, "command": ["true"], "workdir": "", "env": [], "pass_env": [],
                  "limits": {k: 0 for k in LIMITS}, "deadline": 0, "labels": [], "experiment": None, "arm": None,
                  "nonce": os.urandom(16).hex()}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    def run(self):
        texts = [self.ticket() for _ in range(TICKETS)]
        self.sock.sendall(b"".join(b"PUB snapcow.default.ticket.any %d\r\n%s\r\n" % (len(t), t) for t in texts))
        left = TICKETS
        while left > 0:
            words = self.lines.readline().split()
            if words[:1] == [b"PING"]:
                self.sock.sendall(b"PONG\r\n")
            elif words[:1] == [b"MSG"]:
                result = json.loads(self.lines.read(int(words[-1]) + 2))
                assert (result["outcome"], result["code"]) == ("exit", 0), result
                left -= 1

    def end(self):
        self.sock.close()
        self.worker.terminate()
        self.worker.wait()
        self.nats.terminate()
        self.nats.wait()
        self.store.end()


class Sshd:
    """A server of our own, with keys of its own."""

    def __init__(self, top):
        self.top, self.port = top / "sshd", free_port()
        self.top.mkdir(mode=0o700)
        for name in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.top / name)
        (self.top / "known").write_text(f"[127.0.0.1]:{self.port} {(self.top / 'host.pub').read_text()}")
        (self.top / "config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.top}/host\nPidFile none\n"
            f"AuthorizedKeysFile {self.top}/user.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nPermitRootLogin yes\nLogLevel ERROR\n")
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # Debian's sshd wants it
        self.process = subprocess.Popen([find("sshd"), "-D", "-e", "-f", self.top / "config"], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)
        self.line = ["ssh", "-F", "none", "-i", self.top / "user", "-p", str(self.port), "-oIdentitiesOnly=yes",
                     "-oIdentityAgent=none", f"-oUserKnownHostsFile={self.top}/known", "-oBatchMode=yes",
                     f"{pwd.getpwuid(os.geteuid()).pw_name}@127.0.0.1", "true"]

    def run(self):
        """As many at once as the worker does."""
        left, running = TICKETS, []
        while left > 0 or running:
            while left > 0 and len(running) < JOBS:
                running.append(subprocess.Popen(self.line, stdin=subprocess.DEVNULL))
                left -= 1
            assert running.pop(0).wait() == 0

    def end(self):
        self.process.terminate()
        self.process.wait()


def tickets(session):
    """The time of one, with as many at once on both sides."""
    row = session.row(f"an empty command on another machine, of {TICKETS} with {JOBS} at once", "ms", at_most(0.1, SSH))
    for name in ("nats-server", "sshd", "ssh-keygen"):
        if not find(name):
            row.skip(f"{name} is not installed", OURS if name == "nats-server" else SSH)
            return
    top = session.arena.fresh_dir("tickets")
    fleet, server = Fleet(session, top), Sshd(top)
    try:
        session.rounds("tickets", {OURS: lambda _: row.add(OURS, timed(fleet.run) / TICKETS),
                                   SSH: lambda _: row.add(SSH, timed(server.run) / TICKETS)}, [row])
    finally:
        server.end()
        fleet.end()
        shutil.rmtree(top, ignore_errors=True)


PARTS = {"tickets": tickets}
