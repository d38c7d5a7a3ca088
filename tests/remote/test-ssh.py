#!/usr/bin/env python3
"""ssh:// remotes: a real sshd, connections that break, and a far end or a client that lies."""

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys

from remotetest import noise  # noqa: F401  (sets the path for what follows)
from depots import Other, blobs, names_are_complete, pushed, traced
from snaptest import SNAP, Skip, main, test
from sshtest import Sshd, StandIn


def fill(w, n=40):
    for i in range(n):
        (w.project / "src" / f"f{i}").write_bytes(noise(4000, i))


def content(project):
    return {str(p.relative_to(project)): p.read_bytes() for p in project.rglob("*") if p.is_file()}


def doctor(w, remote, status=0, env=None):
    got = w.snap("doctor", "--json", "--remote", remote, env=env).json("snap.doctor/1", status=status)
    return {c["name"]: c for c in got["checks"]}


def pull(w, url, env):
    o = Other(w)
    env = {**env, "SNAPCOW_STORE": str(o.store)}
    w.snap("pull", url, cwd=o.project, env=env).ends(0)
    assert content(o.project) == content(w.project)
    o.end()


@test
def a_project_travels_through_a_real_sshd(w):
    with Sshd(w) as s:
        fill(w)
        w.ok("init")
        w.ok("remote", "add", "team", s.url(f"{w.top}/depot"))
        first = pushed(w.ok("--json", "push", "team:main", env=s.env()))
        (w.project / "src" / "f3").write_text("changed\n")
        second = pushed(w.ok("--json", "push", "team:main", env=s.env()))
        assert second["bytes_sent"] < first["bytes_sent"] / 3, (first, second)
        assert names_are_complete(w) > 3
        pull(w, "team:main", s.env())
        found = doctor(w, "team", env=s.env())
        assert list(found) == ["address", "reach", "depot", "space", "push", "clock", "latency", "pull"], found
        assert all(c["ok"] for c in found.values()), found
        # Keys that nobody knows, and a host that is another.
        found = doctor(w, "team", 13, env=s.env("stranger"))
        assert "Permission denied" in found["login"]["detail"] and "ssh -v" in found["login"]["fix"], found
        w.snap("push", "team:main", env=s.env("stranger")).fails(1, "Permission denied")
        found = doctor(w, "team", 13, env=s.env(known="may"))
        assert "verification failed" in found["login"]["detail"], found
        found = doctor(w, "team", 13, env={**s.env(), "SNAPCOW_SSH_PROGRAM": "no-such-program"})
        assert "no snapcow in its PATH" in found["reach"]["detail"] and "install" in found["reach"]["fix"], found


@test
def a_key_can_be_kept_to_one_directory(w):
    inside = w.top / "inside"
    inside.mkdir()
    with Sshd(w, f"{SNAP} serve {inside}") as s:
        w.ok("init")
        w.ok("push", s.url("/app:main"), env=s.env())
        assert (inside / "app" / "index.json").exists()
        w.snap("push", s.url("/../app:main"), env=s.env()).fails(2, "cannot be the path of a depot")
        w.snap("push", s.url("/x/../../app:main"), env=s.env()).fails(2, "cannot be the path of a depot")
        assert not (w.top / "app").exists()


@test
def connections_that_break_are_made_again(w):
    s = StandIn(w)
    fill(w)
    w.ok("init")
    url = f"ssh://far{w.top}/depot:main"
    for i, faults in enumerate((["die"], ["in 1"], ["in 100", "out 8"], ["out 20"], ["in 3000"], ["in 90000"],
                                ["out 200", "in 160000"])):
        (w.project / "src" / "more").write_bytes(noise(150_000, 100 + i))
        s.faults(*faults)
        w.ok("push", "--whole", url, env=s.env)
        assert names_are_complete(w) > 3, faults
        assert s.file.read_text() == "", f"{faults} were not all met"
    o = Other(w)
    env = {**s.env, "SNAPCOW_STORE": str(o.store)}
    w.snap("init", cwd=o.project, env=env).ends(0)
    s.faults("out 30", "out 50000", "out 1000")
    w.snap("pull", url, cwd=o.project, env=env).ends(0)
    assert content(o.project) == content(w.project) and s.file.read_text() == ""
    o.end()
    # A connection that never holds is an error, and the name means what it meant.
    before = (w.top / "depot" / "index.json").read_bytes()
    (w.project / "README.md").write_text("more\n")
    s.faults(*["die"] * 9)
    w.snap("push", url, env=s.env).fails(1, "ssh to 'far' ended", "Connection refused")
    assert len(s.file.read_text().splitlines()) == 6, "three tries"
    assert (w.top / "depot" / "index.json").read_bytes() == before


@test
def a_manifest_whose_answer_was_lost_is_looked_at_and_not_refused(w):
    """The far end moved the name; its OK never came. Asked again, it would say that somebody moved the name."""
    s = StandIn(w)
    w.ok("init")
    url = f"ssh://far{w.top}/depot:main"
    w.ok("push", "--whole", url, env=s.env)
    # All that comes back in a push of one small change is counted once; then it breaks before the last of it.
    count = w.top / "count"
    for i in range(2):
        (w.project / "README.md").write_text(f"{i}{i}\n")
        s.faults(f"out {int(count.read_text()) - 2}" if i else f"out {1 << 30}")
        w.ok("push", "--whole", url, env={**s.env, "SSH_COUNT": str(count) if not i else ""})
    assert len(s.calls()) == 4, s.calls()
    assert names_are_complete(w) > 3


@test
def what_is_no_depot_is_told(w):
    s = StandIn(w)
    w.ok("init")
    url = f"ssh://far{w.top}/depot:main"
    s.faults("say Welcome to far, friend")
    w.snap("push", url, env=s.env).fails(13, "does not answer as snapcow does: 'Welcome '")
    w.snap("push", url, env={**s.env, "SNAPCOW_SSH": "no-such-ssh"}).fails(13, "cannot start 'no-such-ssh'")
    w.snap("push", url, env={**s.env, "SNAPCOW_SSH_PROGRAM": "true #"}).fails(1, "ssh to 'far' ended")
    w.snap("push", url, env={**s.env, "SNAPCOW_SSH_PROGRAM": "no-such"}).fails(13, "no snapcow in its PATH")
    for bad in ("ssh://-oProxyCommand=x/p", "ssh://a@-b/p", "ssh://host", "ssh://host/", "ssh://h:x/p", "ssh://h;x/p"):
        w.snap("push", f"{bad}:main" if bad.endswith("p") else bad, env=s.env).fails(2)
    assert not (w.top / "depot").exists()


@test
def a_far_end_that_does_not_end_is_ended(w):
    s = StandIn(w)
    w.ok("init")
    s.faults("stay Welcome to far, friend")
    w.snap("push", f"ssh://far{w.top}/depot:main", env=s.env).fails(13, "does not answer as snapcow does")


@test
def a_list_of_tags_has_an_end_and_no_names_that_are_no_tags(w):
    s = StandIn(w)
    w.ok("init")
    url = f"ssh://far{w.top}/depot"
    w.ok("push", f"{url}:main", env=s.env)
    s.faults("tags 1000001")
    w.snap("remote", "log", url, env=s.env).fails(13, "has a list of tags without end")
    index = w.top / "depot" / "index.json"
    listed = json.loads(index.read_text())
    listed["manifests"].append({**listed["manifests"][0], "annotations": {
        "org.opencontainers.image.ref.name": "docker.io/library/debian:latest"}})
    index.write_text(json.dumps(listed))
    got = w.ok("--json", "remote", "log", url, env=s.env).json("snap.remote/1")
    assert [one["name"] for one in got["snapshots"]] == ["main"], got
    w.ok("remote", "gc", url, "--grace", "0", env=s.env)
    assert b"debian" in index.read_bytes() and names_are_complete(w) > 3


@test
def the_one_connection_has_the_whole_rate(w):
    s = StandIn(w)
    fill(w)
    w.ok("init")
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    log, rate = w.top / "calls", 80 << 10
    words = ["-e", "trace=?nanosleep,?clock_nanosleep"]
    args = ["push", "--rate", "80K", f"ssh://far{w.top}/depot:main"]
    assert traced(words, args, w.project, {**w.env, **s.env}, log) == 0
    # However slow the machine is, it waits no longer than the bytes may take.
    slept = sum(int(a) + int(b) / 1e9 for a, b in
                re.findall(r"nanosleep\([^{]*\{tv_sec=(\d+), tv_nsec=(\d+)", log.read_text()))
    due = sum(blobs(w).values()) / rate
    assert due > 1.5 and slept < 2 * due, (slept, due)


# --- the far end alone, asked by something that is no client of ours -----------------------------

OPEN, HAS, PUT, GET, PUT_MANIFEST, GET_MANIFEST, TAGS, DELETE, COLLECT, PROBE = range(1, 11)
DATA, ITEM, OK, FAIL = 32, 33, 64, 65


def message(kind, body=b""):
    return struct.pack("<IB", len(body) + 1, kind) + body


def text(s):
    return struct.pack("<I", len(s)) + s


def talk(w, *messages, status=None, path="/depot"):
    """All messages at once, after the first that opens; the answers."""
    p = subprocess.run([SNAP, "serve", str(w.top)], env=w.env, capture_output=True, timeout=60, check=False,
                       input=message(OPEN, text(path.encode())) + b"".join(messages))
    assert b"Sanitizer" not in p.stderr and p.returncode in (0, 13), p
    if status is not None:
        assert p.returncode == status, p
    out, answers = p.stdout, []
    assert out[:8] == b"SNAPDEP1", out[:40]
    out = out[8:]
    while out:
        length, kind = struct.unpack_from("<IB", out)
        answers.append((kind, out[5:4 + length]))
        out = out[4 + length:]
    return answers


@test
def the_far_end_believes_nothing(w):
    data = noise(300_000)
    right = hashlib.sha256(data).digest()
    put = message(PUT, right + struct.pack("<Q", len(data)))
    pieces = b"".join(message(DATA, data[i:i + 100_000]) for i in range(0, len(data), 100_000))
    kinds = [a[0] for a in talk(w, put + pieces, message(HAS, right), message(GET, right + struct.pack("<QQ", 5, 10)),
                                put)]
    assert kinds == [OK, OK, OK, OK, DATA, OK, OK, OK], kinds
    folder = w.top / "depot" / "blobs" / "sha256"
    assert [p.name for p in folder.iterdir()] == [right.hex()]
    wrong = hashlib.sha256(b"other").digest()
    answers = talk(w, message(PUT, wrong + struct.pack("<Q", len(data))) + pieces, message(HAS, wrong))
    assert answers[2][0] == FAIL and b"changed" in answers[2][1] and answers[3][1][0] == 0, answers
    # Broken off, too long, too short, out of turn: no blob, no rest of one.
    for bad in (put.replace(right, wrong) + pieces[:150_000],
                message(PUT, wrong + struct.pack("<Q", 10)) + pieces,
                message(PUT, wrong + struct.pack("<Q", len(data))) + pieces + message(TAGS),
                message(PUT, wrong + struct.pack("<Q", len(data))) + message(TAGS)):
        talk(w, bad)
        assert [p.name for p in folder.iterdir()] == [right.hex()], bad[:60]
    # Lengths without end, types that there are not, texts that lie about their length.
    for bad in (struct.pack("<IB", 0xFFFFFFFF, HAS), struct.pack("<I", 0), message(77), message(HAS, b"short"),
                message(GET_MANIFEST, struct.pack("<I", 0xFFFFFFF0) + b"x"), message(OPEN, text(b"/twice")),
                message(PUT_MANIFEST, text(b"../../x") + text(b"t") + bytes(36) + b"{}"),
                message(DELETE, text(b"a\0b")), message(COLLECT, struct.pack("<IQI", 0, 0, 0xFFFFFF)),
                message(DATA, b"x")):
        talk(w, bad, status=13)
    assert [a[0] for a in talk(w, path="/../x")] == [FAIL]
    assert not (w.top / "x").exists()
    # A name may lead nowhere outside, and a manifest must have what it names.
    listed = b'{"config":{"digest":"sha256:%s","size":5},"layers":[]}' % (b"ab" * 32)
    answers = talk(w, message(PUT_MANIFEST, text(b"main") + text(b"t") + bytes(36) + listed))
    assert answers[1][0] == FAIL and b"push once more" in answers[1][1], answers
    assert not (w.top / "depot" / "index.json").exists()


@test
def gc_and_rates_work_through_ssh_and_a_terminal_is_refused(w):
    s = StandIn(w)
    fill(w, 5)
    w.ok("init")
    url = f"ssh://far{w.top}/depot"
    for i in range(3):
        (w.project / "README.md").write_text(f"{i}\n")
        w.ok("push", "--whole", "--rate", "50M", f"{url}:main", env=s.env)
    got = w.ok("--json", "remote", "gc", url, "--keep-last", "1", "--grace", "0", env=s.env).json("snap.remote/1")
    assert len(got["removed"]) == 2 and got["bytes"] > 0 and names_are_complete(w) == len(blobs(w)), got
    assert w.ok("--json", "serve").json("snap.serve/1")["protocol"] == "SNAPDEP1"
    w.snap("serve", "relative").fails(2, "no absolute path")
    assert os.environ.get("TMPDIR") or not list(w.top.glob("snapcow-ssh-*"))


if __name__ == "__main__":
    sys.exit(main())
