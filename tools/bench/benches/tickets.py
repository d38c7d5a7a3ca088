"""Empty commands on another machine: tickets through one worker, against `ssh host true`.

All of it is on loopback: nats-server, docker-registry and sshd are our own. A ticket is over when its
result is stored; the worker makes a clone and a sandbox for each. ssh makes a connection for each
command, as a script that spreads work does. The tickets of the first row are posted as the queue has
them, so it is the worker that is measured; an experiment and `run --on` post and judge theirs, too.
"""

import json
import os
import shutil
import socket
import subprocess

from arena import timed
from fleet import Fleet
from row import OURS, at_most
from servers import Sshd, missing

JOBS = 2
FEW, QUICK, ALL = 20, 100, 1000  # tickets: to warm up, in a quick run, in a full one
ROUNDS = 2  # a thousand times ssh takes minutes
SSH = "ssh host true"
QUEUE = "bench"
LIMITS = ("mem", "cpus_milli", "pids", "time_ms", "disk", "inodes", "fsize", "nofile", "output", "net_out")


def several(count, words, **more):
    """Run a command so many times, as many at once as the worker does."""
    left, running = count, []
    while left > 0 or running:
        while left > 0 and len(running) < JOBS:
            running.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more))
            left -= 1
        status = running.pop(0).wait()
        if status:
            raise SystemExit(f"error: '{words[0]} ...' ended with status {status}")


class Poster:
    """A client of the queue that speaks NATS by hand."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.sock = socket.create_connection(("127.0.0.1", fleet.nats.port), 120)
        self.lines = self.sock.makefile("rb")
        self.sock.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\n'
                          b'SUB snapcow.%s.result.* 1\r\nPING\r\n' % QUEUE.encode())
        while self.lines.readline() != b"PONG\r\n":
            pass

    def ticket(self):
        fields = {"schema": "snapcow.ticket/1", "snapshot": self.fleet.manifest, "name": "queue-bench",
                  "remote": self.fleet.remote, "profile": None, "command": ["true"], "workdir": "", "env": [],
                  "pass_env": [], "limits": {k: 0 for k in LIMITS}, "deadline": 0, "labels": [], "experiment": None,
                  "arm": None, "nonce": os.urandom(16).hex()}
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    def run(self, count):
        texts, subject = [self.ticket() for _ in range(count)], f"snapcow.{QUEUE}.ticket.any".encode()
        self.sock.sendall(b"".join(b"PUB %s %d\r\n%s\r\n" % (subject, len(t), t) for t in texts))
        while count > 0:
            words = self.lines.readline().split()
            if words[:1] == [b"PING"]:
                self.sock.sendall(b"PONG\r\n")
            elif words[:1] == [b"MSG"]:
                result = json.loads(self.lines.read(int(words[-1]) + 2))
                if (result["outcome"], result["code"]) != ("exit", 0):
                    raise SystemExit(f"error: a ticket came to {result}")
                count -= 1
            elif not words or words[0] == b"-ERR":
                raise SystemExit(f"error: the queue says {words}")

    def end(self):
        self.lines.close()
        self.sock.close()


def by_ssh(session, count, rows):
    """What ssh does in a round, unless it is missing."""
    why = missing(*Sshd.needs)
    if why:
        session.skipped[SSH] = why
        return {}
    server = session.once("sshd", lambda: Sshd(session.arena, session.arena.path / "sshd"))

    def turn(number):
        n = count if number else FEW
        took = timed(lambda: several(n, [*server.ssh, server.host, "true"])) / n
        for row in rows:
            row.add(SSH, took)
    return {SSH: turn}


def tickets(session):
    """The time of one, with as many at once on both sides."""
    count = QUICK if session.opts.quick else ALL
    row = session.row(f"an empty command on another machine, of {count:,} tickets with {JOBS} at once", "ms",
                      at_most(0.1, SSH))
    arms = session.row(f"the same as {count:,} arms of one `experiment --on`", "ms", at_most(0.1, SSH))
    runs = session.row(f"the same by {QUICK} commands `run --on`", "ms")
    rows = [row, arms, runs]
    why = Fleet.missing()
    if why:
        for one in rows:
            one.skip(why)
        session.skipped["workers"] = why
        return
    top = session.arena.fresh_dir("tickets")
    fleet = Fleet(session, top)
    fleet.worker("worker", QUEUE, JOBS)
    poster = Poster(fleet)
    run_on = [session.snapcow, "-q", "run", "--on", fleet.url(QUEUE), "--remote", fleet.remote, "--", "true"]
    here = {"cwd": fleet.project, "env": {**os.environ, **session.store.env}}

    def ours(number):
        n = count if number else FEW
        row.add(OURS, timed(lambda: poster.run(n)) / n)
        arms.add(OURS, timed(lambda: fleet.experiment(QUEUE, ["true"] * n)) / n)
        few = min(n, QUICK)
        runs.add(OURS, timed(lambda: several(few, run_on, **here)) / few)
    acts = {OURS: ours, **by_ssh(session, count, rows)}
    try:
        session.rounds("tickets", acts, rows, count=min(session.opts.rounds, ROUNDS))
    finally:
        poster.end()
        fleet.end()
        shutil.rmtree(top, ignore_errors=True)


PARTS = {"tickets": tickets}
