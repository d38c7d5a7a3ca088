#!/usr/bin/env python3
"""worker status: who did what, as a chart, as lines and as JSON; and workers of other versions."""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

from remotetest import CLIENT  # noqa: F401  (finds the modules below)
from natstest import PATIENCE, Nats, Worker
from schematest import fits
from snaptest import SNAP, main, needs_fuse, test

DASHBOARD = Path(__file__).resolve().parents[2] / "docs/grafana/snapcow.json"


def depot(w):
    return f"dir:{w.top}/depot"


def run(w, nats, label, command, *options, status=0):
    return w.snap("run", "--on", nats.url(), "--remote", depot(w), "--label", label, *options, "--", "sh", "-c",
                  command).ends(status)


def status(w, nats):
    got = w.ok("--json", "worker", "status", "--queue", nats.url()).json("snap.worker/1", "workers", "done")
    fits(got)
    return got, {one["name"]: one for one in got["workers"]}


def on_terminal(w, nats, columns):
    """What it prints on a terminal that is so wide."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([SNAP, "worker", "status", "--queue", nats.url()], cwd=w.project, stdout=theirs,
                               stderr=theirs, stdin=subprocess.DEVNULL, env={**w.env, "TERM": "xterm", "NO_COLOR": "1"})
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(PATIENCE) == 0, said
    return said.decode().replace("\r", "").splitlines()


class Stranger:
    """Answers the question who works with a text of its own."""

    def __init__(self, nats, *answers):
        self.answers = [json.dumps(a).encode() for a in answers]
        self.sock = socket.create_connection((nats.address, nats.port), PATIENCE)
        self.file = self.sock.makefile("rb")
        self.file.readline()  # INFO
        self.sock.sendall(b'CONNECT {"verbose":false}\r\nSUB snapcow.default.question.all 1\r\nPING\r\n')
        while self.file.readline() != b"PONG\r\n":
            pass
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            for line in self.file:
                words = line.split()
                if words and words[0] == b"PING":
                    self.sock.sendall(b"PONG\r\n")
                elif words and words[0] == b"MSG" and len(words) == 5:
                    for text in self.answers:
                        self.sock.sendall(b"PUB %s %d\r\n%s\r\n" % (words[3], len(text), text))
        except (OSError, ValueError):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


@test
def a_chart_a_line_and_an_object_have_the_same_numbers(w):
    needs_fuse()
    with Nats(w.top / "nats") as nats, \
            Worker(w, nats, depot(w), "--jobs", "2", "--labels", "big", name="alpha") as alpha, \
            Worker(w, nats, depot(w), "--labels", "small", name="beta"):
        for _ in range(3):
            run(w, nats, "big", "head -c 200000 /dev/urandom > noise")
        run(w, nats, "small", "true")
        run(w, nats, "small", "sleep 600", "--time", "1s", status=124)
        caller = subprocess.Popen([SNAP, "run", "--on", nats.url(), "--remote", depot(w), "--label", "big", "--", "sleep", "600"],
                                  cwd=w.project, env=w.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  stdin=subprocess.DEVNULL)
        alpha.wait("taken", 4)
        got, by = status(w, nats)
        assert [(by[n]["done"], by[n]["failed"], len(by[n]["running"])) for n in ("alpha", "beta")] == [
            (3, 0, 1), (1, 1, 0)], by
        for name, one in by.items():
            for key in ("fetched", "pushed"):
                assert one[key] == sum(d[key] for d in got["done"] if d["worker"] == name), (name, key, got)
            assert one["busy_share"] == round(one["busy_ms"] / one["up_ms"] / one["jobs"], 4) < 1, one
        assert by["alpha"]["pushed"] > 600000 and by["alpha"]["fetched"] > 0, by
        assert by["beta"]["busy_ms"] >= 1000, "the one that met its limit"
        least = sum(d["duration_ms"] for d in got["done"] if d["worker"] == "alpha")
        assert by["alpha"]["busy_ms"] >= least + by["alpha"]["running"][0]["running_ms"], by
        shares = by
        _, by = status(w, nats)
        assert by["alpha"]["busy_ms"] > shares["alpha"]["busy_ms"], "what runs counts"
        assert by["beta"]["busy_ms"] == shares["beta"]["busy_ms"], "what is over counts once"

        text = w.ok("worker", "status", "--queue", nats.url()).out.decode()
        lines = {line.split()[0]: line for line in text.splitlines()}
        assert re.fullmatch(r"alpha  1 of 2 busy, 3 done, 0 failed, busy \d+ % of \S+, in \S+ \S+, out \S+ \S+  big  up to \S+ GiB, \d+ cpus",
                            lines["alpha"]), text
        assert "1 done, 1 failed, busy" in lines["beta"] and "#" not in text, text

        wide = on_terminal(w, nats, 120)
        assert re.fullmatch(r"WORKER +NOW +DONE +FAILED +BUSY +MOVED", wide[1]), wide
        rows = {line.split()[0]: line for line in reversed(wide[1:4])}
        assert re.match(r"alpha +1/2 +3 ########## +0 +\d+ % #* +[\d.]+ KiB ##########$", rows["alpha"]), wide
        assert re.match(r"beta +0/1 +1 ### +1 ########## +\d+ % #* +[\d.]+ (B|KiB)$", rows["beta"]), wide
        assert len({line.index("%") for line in rows.values() if "%" in line}) == 1, "columns"
        assert any(re.match(r"  [0-9a-f]{12}  for \S+  alpha  sleep$", line) for line in wide), wide
        assert "alpha  big" in wide, wide
        for columns in (80, 60):
            narrow = on_terminal(w, nats, columns)
            assert max(map(len, narrow[1:4])) <= columns, narrow
            assert any("#" in line for line in narrow) == (columns == 80), narrow
        numbers = w.ok("metrics", "--queue", nats.url()).out.decode()
        asked = set(re.findall(r"snapcow_worker_[a-z_]+", DASHBOARD.read_text()))
        assert len(asked) == 6, asked
        for name in asked:
            assert f'\n{name}{{worker="alpha"}} ' in numbers, (name, numbers)
        assert '\nsnapcow_worker_jobs{worker="alpha"} 2\n' in numbers, numbers
        caller.send_signal(signal.SIGINT)
        caller.wait(PATIENCE)


@test
def workers_of_other_versions_and_strangers_have_a_row(w):
    old = {"name": "old", "host": "h", "pid": 1, "started": 1, "jobs": 1, "done": 7, "failed": 0, "refused": 0,
           "draining": True, "labels": [], "running": []}
    liar = {**old, "name": "\x1b[2Jliar" + "\u00e9" * 40, "jobs": 2, "draining": False, "up_ms": 10, "busy_ms": 2**64 - 1,
            "fetched": 2**64 - 1, "pushed": 2**64 - 1, "done": 2**64 - 1}
    none = {**old, "name": "none", "jobs": 0, "up_ms": 10, "busy_ms": 10, "fetched": 0, "pushed": 0}
    with Nats(w.top / "nats") as nats:
        with Worker(w, nats, depot(w), name="real") as real, Stranger(nats, old, liar, none):
            real.wait("ready")
            _, by = status(w, nats)
            assert by["old"]["busy_share"] is None and by["old"]["done"] == 7, by
            assert by["none"]["busy_share"] is None, by
            assert [one["busy_share"] for name, one in by.items() if "liar" in name] == [1], by
            lines = on_terminal(w, nats, 100)
            rows = [line for line in lines if re.search(r" \d+/\d+ ", line)]
            assert len(rows) == 4 and not any("\x1b" in line for line in rows), lines
            assert next(r for r in rows if r.startswith("old")).endswith("draining"), rows
            text = w.ok("worker", "status", "--queue", nats.url()).out.decode()
            assert re.search(r"^old  0 of 1 busy, 7 done, 0 failed  draining$", text, re.M), text


if __name__ == "__main__":
    sys.exit(main())
