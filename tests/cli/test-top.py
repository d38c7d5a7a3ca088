"""snap top: what runs and what the daemon does, as it happens."""

import json
import os
import pty
import re
import select
import subprocess
import sys

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
def on_a_terminal_a_key_ends_it_and_leaves_the_terminal_as_it_was(w):
    w.take()
    master, slave = pty.openpty()
    before = subprocess.run(["stty", "-g"], stdin=slave, stdout=subprocess.PIPE, check=True).stdout
    process = subprocess.Popen([SNAP, "top", "--every", "1h"], cwd=w.project, env=w.env, stdin=slave, stdout=slave, stderr=slave)
    said = b""
    while b"q ends" not in said:
        assert select.select([master], [], [], 60)[0], said
        said += os.read(master, 65536)
    os.write(master, b"xq")
    assert process.wait(30) == 0
    assert subprocess.run(["stty", "-g"], stdin=slave, stdout=subprocess.PIPE, check=True).stdout == before
    os.close(master)
    os.close(slave)


if __name__ == "__main__":
    sys.exit(main())
