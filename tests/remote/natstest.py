"""A NATS server on loopback, workers with stores of their own, and a client that speaks the protocol by hand."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import servers
from snaptest import SNAP, Skip

PATIENCE = 60  # seconds for what takes one


def needs():
    if os.environ["SNAP_QUEUES"] == "0":
        raise Skip("this build has no libnats")
    where = shutil.which("nats-server") or ("/usr/sbin/nats-server" if Path("/usr/sbin/nats-server").exists() else None)
    if not where:
        raise Skip("nats-server is not installed")
    return where


class Nats(servers.Daemon):
    """nats-server with JetStream in a directory of the test's."""

    name = "nats-server"

    def __init__(self, where, address="127.0.0.1", options=()):
        self.program, self.where, self.address, self.options = needs(), Path(where), address, options
        self.port = servers.free_port()
        self.where.mkdir(exist_ok=True)
        self.start()

    def url(self, name="default"):
        return f"nats://{self.address}:{self.port}/{name}"

    def words(self):
        return [self.program, "-js", "-sd", str(self.where), "-a", self.address, "-p", str(self.port), *self.options]


class Client:
    """As much of the protocol as a test needs."""

    def __init__(self, nats):
        self.sock = socket.create_connection((nats.address, nats.port), PATIENCE)
        self.file = self.sock.makefile("rb")
        self.file.readline()  # INFO
        self.sock.sendall(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\nPING\r\n')
        while self.file.readline() != b"PONG\r\n":
            pass
        self.n = 0

    def request(self, subject, data=b""):
        """Ask, and return the bytes of the answer."""
        self.n += 1
        inbox = f"_INBOX.test.{os.getpid()}.{self.n}"
        self.sock.sendall(b"SUB %s %d\r\nUNSUB %d 1\r\n" % (inbox.encode(), self.n, self.n) +
                          b"PUB %s %s %d\r\n" % (subject.encode(), inbox.encode(), len(data)) + data + b"\r\n")
        while True:
            words = self.file.readline().split()
            if words[0] == b"PING":
                self.sock.sendall(b"PONG\r\n")
            elif words[0] == b"MSG":
                return self.file.read(int(words[-1]) + 2)[:-2]
            elif words[0] == b"HMSG":
                return self.file.read(int(words[-1]) + 2)[int(words[-2]):-2]
            elif words[0] == b"-ERR":
                raise RuntimeError(words)

    def api(self, subject, **ask):
        return json.loads(self.request(f"$JS.API.{subject}", json.dumps(ask).encode() if ask else b""))

    def messages(self, stream):
        return self.api(f"STREAM.INFO.{stream}")["state"]["messages"]

    def result(self, ticket, queue="default", seconds=PATIENCE):
        """The result of a ticket, as soon as it is there."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = self.api("STREAM.MSG.GET.SNAPCOW_RESULTS", last_by_subj=f"snapcow.{queue}.result.{ticket}")
            if "message" in got:
                return json.loads(base64.b64decode(got["message"]["data"]))
            time.sleep(0.05)
        raise AssertionError(f"ticket {ticket} has no result")

    def close(self):
        self.file.close()
        self.sock.close()


class Between:
    """A proxy before a server.  `holds(subject, words)` says which messages to a client wait for release(), by the
    subject of the request that they answer, or None, and the words of their first line."""

    def __init__(self, nats, holds):
        self.nats, self.holds, self.held, self.asked = nats, holds, [], {}
        self.changed = threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def url(self, name="default"):
        return f"nats://127.0.0.1:{self.port}/{name}"

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
                back = socket.create_connection((self.nats.address, self.nats.port), 10)
            except OSError:
                return
            back.settimeout(None)
            for a, b, see in ((client, back, self.see_request), (back, client, self.see_answer)):
                threading.Thread(target=self.copy, args=(a, b, see), daemon=True).start()

    def copy(self, a, b, see):
        try:
            with a.makefile("rb") as lines:
                for line in lines:
                    words = line.split()
                    has_body = words and words[0] in (b"PUB", b"HPUB", b"MSG", b"HMSG")
                    all_of_it = line + (lines.read(int(words[-1]) + 2) if has_body else b"")
                    if not has_body or see(words, all_of_it, b):
                        b.sendall(all_of_it)
            b.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def see_request(self, words, *_):
        if len(words) > (4 if words[0] == b"HPUB" else 3):
            self.asked[words[2].decode()] = words[1].decode()
        return True

    def see_answer(self, words, data, to):
        with self.changed:
            if not self.holds(self.asked.get(words[1].decode()), [word.decode() for word in words]):
                return True
            self.held.append((to, data))
            self.changed.notify_all()
            return False

    def wait(self, n=1):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.held) >= n, PATIENCE), "nothing came"

    def release(self):
        for to, data in self.held:
            to.sendall(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class Worker:
    """A worker with a store of its own; `events` are what it said, and the error that it ended with, if any."""

    def __init__(self, w, nats, remote, *options, name="worker-1", env=None, prefix=()):
        self.world, self.name = w, name
        self.env = {**w.env, "SNAPCOW_STORE": str(w.top / f"store-{name}"), **(env or {})}
        self.events, self.changed = [], threading.Condition()
        self.errors = open(w.top / f"{name}.err", "ab")
        self.process = subprocess.Popen([*prefix, SNAP, "--json", "worker", "--queue", nats.url(), "--remote", remote, "--name", name,
                                         *options], env=self.env, cwd=w.top, stdout=subprocess.PIPE, stderr=self.errors,
                                        stdin=subprocess.DEVNULL)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.events.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.events.append({"event": "ended"})
            self.changed.notify_all()

    def wait(self, event, n=1, seconds=PATIENCE):
        """Until it has said so for the n-th time; that event."""
        def found():
            return [e for e in self.events if e.get("event") == event]
        with self.changed:
            self.changed.wait_for(lambda: len(found()) >= n or self.events[-1:] == [{"event": "ended"}], seconds)
            assert len(found()) >= n, f"{self.name} said {self.events}, and not '{event}': {self.said()}"
            return found()[n - 1]

    def said(self):
        return (self.world.top / f"{self.name}.err").read_text(errors="replace")[-2000:]

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def end(self):
        """End it and its daemon."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.thread.join(10)
        self.errors.close()
        self.world.snap("-q", "stop", "--force", env={"SNAPCOW_STORE": self.env["SNAPCOW_STORE"]})

    def __enter__(self):
        self.wait("ready")
        return self

    def __exit__(self, *_):
        self.end()
