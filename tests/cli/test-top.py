"""snap top: what runs and what the daemon does, as it happens."""

import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import threading

from snaptest import SNAP, main, needs_fuse, test


def looks(w, *args):
    return [json.loads(line) for line in w.ok("top", "--json", *args).out.splitlines()]


class Top:
    """The program, read look by look."""

    def __init__(self, w):
        self.process = subprocess.Popen([SNAP, "top", "--json", "--every", "100ms"], cwd=w.project, env=w.env,
                                        stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(30) == 0
        self.process.stdout.close()

    def until(self, seen):
        """The first look of which that is true."""
        for line in self.process.stdout:
            look = json.loads(line)
            if seen(look):
                return look
        raise AssertionError("it ended")


@test
def nothing_is_started_by_looking(w):
    w.take()
    w.ok("stop")
    look, = looks(w, "-n", "1")
    assert look["up"] is False and look["runs"] == [] and look["clones"] == []
    assert b"does not run" in w.ok("top", "-n", "1").out
    assert len(looks(w, "-n", "3", "--every", "100ms")) == 3
    w.snap("top", "--every", "1ms").fails(2, "--every")


@test
def operations_are_counted_while_they_happen(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "try")
    there = w.store / "clones" / "try"

    def rate(look, operation):
        return next((o["rate"] for o in look["operations"] if o["operation"] == operation), 0)

    with Top(w) as top:
        first = top.until(lambda look: True)
        assert first["up"] and [c["clone"] for c in first["clones"]] == ["try"] and rate(first, "mkdir") == 0
        n = 0

        def busy(look):
            nonlocal n
            for n in range(n, n + 50):
                (there / f"d{n}").mkdir()
            n += 1
            return rate(look, "mkdir") > 0

        top.until(busy)
        top.until(lambda look: rate(look, "mkdir") == 0)


@test
def each_clone_has_its_own_operations_and_bytes(w):
    needs_fuse()
    w.take()
    for name in ("busy", "idle"):
        w.ok("clone", "-n", name)

    def of(look, clone):
        return next(c for c in look["clones"] if c["clone"] == clone)

    with Top(w) as top:
        first = top.until(lambda look: True)
        assert all(c["operations"] == 0 and c["written"] == 0 for c in first["clones"]), first

        def works(look):
            (w.store / "clones" / "busy" / "data").write_bytes(b"x" * 300000)
            return of(look, "busy")["written"] > 300000 and of(look, "busy")["operations"] > 0

        look = top.until(works)
        assert of(look, "idle")["operations"] == 0 and of(look, "idle")["written"] == 0, look
        assert [c["clone"] for c in look["clones"]] == ["busy", "idle"], "the busiest comes first"
    text = w.ok("metrics").out.decode()
    written = int(re.search(r'^snapcow_clone_written_bytes_total\{clone="busy"\} (\d+)$', text, re.M)[1])
    assert written >= 600000 and written % 300000 == 0, written
    assert 'snapcow_clone_written_bytes_total{clone="idle"} 0\n' in text, text
    assert 'snapcow_clone_waiting{clone="idle"} 0\n' in text, text
    assert b"OPS/S" in w.ok("top", "-n", "1").out


@test
def a_run_is_there_while_it_runs(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "try")
    run = w.ok("-q", "run", "--detach", "try", "--", "sh", "-c", "while :; do :; done").out.decode().strip()
    with Top(w) as top:
        look = top.until(lambda look: look["runs"] and look["runs"][0]["cpu"] > 5)
        assert look["runs"][0]["run"] == run and look["runs"][0]["clone"] == "try" and look["runs"][0]["memory"] > 0
        assert look["runs"][0]["waits"] is None, look
        w.ok("cancel", run)
        top.until(lambda look: not look["runs"])


@test
def a_daemon_that_stops_and_comes_back_is_followed(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "try")
    with Top(w) as top:
        for stop in (lambda: w.ok("stop"), w.kill_daemon):
            look = top.until(lambda look: look["up"])
            assert [c["clone"] for c in look["clones"]] == ["try"], look
            stop()
            look = top.until(lambda look: not look["up"])
            assert look["clones"] == [] and look["operations"] == [] and w.daemons() == [], look
            w.ok("start")
        top.until(lambda look: look["up"])


class Between:
    """In the place of the daemon's socket: passes all on, and kills the daemon when it is asked `word`, or has
    answered that."""

    def __init__(self, w, word, answered):
        self.w, self.word, self.answered = w, f'"ask":"{word}"'.encode(), answered
        self.at = w.store / "run" / "cowfsd.sock"
        self.behind = self.at.with_name("behind.sock")
        self.at.rename(self.behind)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.at))
        self.listener.listen()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def kill(self):
        self.listener.close()
        self.at.unlink()
        self.w.kill_daemon()

    def run(self):
        while self.listener.fileno() >= 0:
            client, _ = self.listener.accept()
            with client, socket.socket(socket.AF_UNIX) as daemon:
                daemon.connect(str(self.behind))
                self.carry(client, daemon)

    def carry(self, client, daemon):
        asked = False
        while True:
            for one in select.select([client, daemon], [], [])[0]:
                data = one.recv(1 << 20)
                asked |= one is client and self.word in data
                if asked and (not self.answered or (one is daemon and b'"answer"' in data)):
                    if self.answered:
                        client.sendall(data)
                    return self.kill()
                if not data:
                    return None
                (daemon if one is client else client).sendall(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join(30)


@test
def one_that_goes_between_two_questions_or_at_one_is_neither_an_error_nor_started_again(w):
    needs_fuse()
    w.take()
    for word, answered in (("metrics", True), ("list", False)):
        w.ok("clone", "-n", word)
        with Between(w, word, answered):
            first, second = looks(w, "-n", "2", "--every", "100ms")
        for look in (first, second):
            assert not look["up"] and look["clones"] == [], look
        assert w.daemons() == [], "it was started by looking"
    w.ok("start")
    w.stop()


@test
def on_a_terminal_it_says_that_the_daemon_stopped_and_a_key_ends_it(w):
    w.take()
    master, slave = pty.openpty()
    before = subprocess.run(["stty", "-g"], stdin=slave, stdout=subprocess.PIPE, check=True).stdout
    process = subprocess.Popen([SNAP, "top", "--every", "200ms"], cwd=w.project, env=w.env, stdin=slave, stdout=slave, stderr=slave)
    said = b""
    while b"q ends" not in said:
        assert select.select([master], [], [], 60)[0], said
        said += os.read(master, 65536)
    assert b" clones, " in said, said
    w.ok("stop")
    while b"the daemon does not run: " not in said:
        assert select.select([master], [], [], 60)[0], said
        said += os.read(master, 65536)
    assert process.poll() is None, said
    os.write(master, b"xq")
    assert process.wait(30) == 0
    while select.select([master], [], [], 0)[0]:
        said += os.read(master, 65536)
    # Long lines are cut on the page, and broken again below it.
    assert b"".join(re.findall(rb"\x1b\[\?7[lh]|\x1b\[2J|q ends", said)) \
        == b"\x1b[?7l\x1b[2Jq ends\x1b[?7h" * said.count(b"q ends"), said
    assert subprocess.run(["stty", "-g"], stdin=slave, stdout=subprocess.PIPE, check=True).stdout == before
    os.close(master)
    os.close(slave)


if __name__ == "__main__":
    sys.exit(main())
