"""Other users approve and reject: the right ones, from their own accounts, and nothing else.

As root, and with --user as an ordinary user, where there is no second user to be.
"""

import contextlib
import fcntl
import grp
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from promotetest import clone  # noqa: E402
from snaptest import SNAP, Skip  # noqa: E402

RIGHT, WRONG, GROUP = "daemon", "bin", "audio"
ASK = r"""
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(sys.argv[2].encode() + b"\n")
    print(s.makefile().read())
except OSError as e:
    print("no way:", e.strerror)
"""


def put(path, text="x\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def me():
    return pwd.getpwuid(os.geteuid()).pw_name


def two_users():
    if os.geteuid() != 0:
        raise Skip("only root can be two users")


@contextlib.contextmanager
def desk(w, *args, snap=None, loud=False, **more):
    """Somebody keeps it; yields the address."""
    w.top.chmod(0o755)
    with subprocess.Popen([SNAP, *([] if loud else ["-q"]), "pipeline", "serve", "--at", str(w.top / "desk"), *args], env=w.env, cwd=w.project,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more) as p:
        try:
            desk.pid, address = p.pid, p.stdout.readline().decode().strip().split()[-1]
            assert address.startswith(str(w.top / "desk")), (address, p.stderr.read())
            yield address
        finally:
            p.send_signal(signal.SIGTERM)
            desk.said = p.communicate(timeout=20)[1]
            assert p.returncode == 0, desk.said
            assert not Path(address).exists(), "the socket goes with its keeper"


def waiting(w, approvers, snap=None, text="new line\n"):
    """The id of a change that waits for those."""
    put(w.home / ".config" / "snapcow" / "pipeline.yaml",
        f"- stages:\n    - {{name: dev, target: ., approve: always, approvers: [{approvers}]}}\n    - {{name: end}}\n")
    put(clone(w) / "a.txt", text)
    return w.snap("ship", "--json", "try").json("snap.ship/1", "change", status=14)["change"]


def by(w, user, *args, groups=()):
    """What that user's command says, from a directory and a home that are nobody's."""
    who = pwd.getpwnam(user)
    return w.snap(*args, cwd="/", env={"HOME": "/nonexistent", "SNAPCOW_STORE": None}, user=who.pw_uid, group=who.pw_gid,
                  extra_groups=[grp.getgrnam(g).gr_gid for g in groups])


def state(w, change):
    return w.ok("pipeline", "status", change, "--json").json("snap.pipeline/1")["changes"][0]


def say(address, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(address)
        with contextlib.suppress(BrokenPipeError):
            s.sendall(line if line.endswith(b"\n") else line + b"\n")
        said = b""
        # One that was refused before it was heard sees the line, then a reset.
        with contextlib.suppress(ConnectionResetError):
            while got := s.recv(65536):
                said += got
        return said


@live_test
def the_named_user_approves_and_another_learns_nothing(w):
    two_users()
    change = waiting(w, RIGHT)
    assert b"pipeline serve" in w.ok("pipeline").out
    with desk(w) as at:
        assert f"snap approve --at {at} {change[:8]}".encode() in w.ok("pipeline").out
        got = w.ok("pipeline", "--json").json("snap.pipeline/1", "address")
        assert got["address"] == at, got
        for words in (("approve", change), ("approve", change[:6]), ("approve", "--show", change), ("reject", change, "-m", "no")):
            said = by(w, WRONG, words[0], "--at", at, *words[1:]).ends(7)
            assert f"'{WRONG}' may not decide".encode() in said.err and b"dev" not in said.err, said.err
        missing = by(w, WRONG, "approve", "--at", at, "0" * 16).ends(7)
        assert missing.err == by(w, WRONG, "approve", "--at", at, change).err.replace(change.encode(), b"0" * 16)
        assert b"nothing waits for you" in by(w, WRONG, "approve", "--at", at).ends(0).out
        assert state(w, change)["state"] == "waiting" and not state(w, change)["waits_for"]["approved"]
        listed = by(w, RIGHT, "approve", "--at", at).ends(0).out.decode()
        assert change[:8] in listed and "waits at stage dev" in listed and str(w.project) in listed, listed
        assert by(w, RIGHT, "-q", "approve", "--at", at).ends(0).out.decode().split() == [change]
        patch = by(w, RIGHT, "approve", "--at", at, "--show", change).ends(0).out
        assert b"+new line" in patch and b"+++ b/a.txt" in patch, patch
        by(w, RIGHT, "approve", "--at", at, change[:6], "-m", "looked at it").ends(0)
        said = by(w, RIGHT, "approve", "--at", at, change).ends(7)
        assert b"nothing to decide" in said.err, said.err
    got = w.ok("ship", "--continue", change, "--json").json("snap.ship/1")
    assert got["state"] == "shipped" and got["receipts"][0]["approved_by"] == RIGHT, got
    assert got["receipts"][0]["reason"] == "looked at it" and (w.project / "a.txt").exists()
    w.ok("pipeline", "verify")
    said = by(w, RIGHT, "approve", "--at", at, change).ends(4)
    assert b"nobody takes approvals" in said.err and b"pipeline serve" in said.err, said.err


@live_test
def a_group_counts_and_only_for_those_who_have_it_now(w):
    two_users()
    change = waiting(w, f'"%{GROUP}"')
    with desk(w) as at:
        by(w, RIGHT, "approve", "--at", at, change).ends(7)
        got = by(w, RIGHT, "reject", "--at", at, change, "-m", "not tonight", "--json", groups=[GROUP]).json("snap.reject/1", "state")
        assert got["state"] == "rejected" and f"rejected by {RIGHT}: not tonight" in got["why"], got
    said = w.snap("ship", "try").ends(7)
    assert b"barred" in said.err, said.err


@live_test
def the_keeper_may_be_an_ordinary_user(w):
    two_users()
    nobody = pwd.getpwnam(livetest.ORDINARY)
    livetest.open_fuse_for_all()
    for path in (w.top, w.home, w.project, *w.project.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    w.top.chmod(0o755)
    as_owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    put(w.home / ".config" / "snapcow" / "pipeline.yaml",
        f"- stages:\n    - {{name: dev, target: ., approve: always, approvers: [{RIGHT}, root]}}\n")
    there = Path(w.snap("-q", "clone", "-n", "try", **as_owner).ends(0).out.decode().strip())
    subprocess.run(["sh", "-c", f"echo x > {there}/a.txt"], check=True, **as_owner)
    change = w.snap("ship", "--json", "try", **as_owner).json("snap.ship/1", "change", status=14)["change"]
    # Root may decide, but at the desk: what it wrote in this store its owner could not read.
    for words in (("approve", change), ("approve", "--dry-run", change), ("reject", change, "-m", "no"), ("ship", "--continue", change)):
        assert b"belongs to user" in w.snap(*words).err, words
    assert not [p for p in (w.store / "changes").rglob("*") if p.stat().st_uid == 0]
    with desk(w, **as_owner) as at:
        by(w, WRONG, "approve", "--at", at, change).ends(7)
        # In a user namespace of its own a process may call itself what it likes, and is not heard.
        who = pwd.getpwnam(RIGHT)
        inside = subprocess.run(["unshare", "-U", "-r", str(SNAP), "approve", "--at", at, change], cwd="/", env=w.env,
                                capture_output=True, check=False, user=who.pw_uid, group=who.pw_gid, extra_groups=[])
        assert b"user namespace of its own" in inside.stderr or b"unshare" in inside.stderr, inside
        by(w, RIGHT, "approve", "--at", at, change).ends(0)
    got = w.snap("ship", "--continue", change, "--json", **as_owner).json("snap.ship/1")
    assert got["state"] == "shipped" and got["receipts"][0]["approved_by"] == RIGHT, got


@live_test
def a_run_in_a_sandbox_gains_nothing_though_its_user_may_approve(w):
    change = waiting(w, me())
    put(w.top / "ask.py", ASK)
    question = json.dumps({"ask": "approve", "change": change, "stage": "dev"})
    with desk(w) as at:
        for more in ((), ("--ro", str(w.top / "desk")), ("--rw", str(w.top / "desk")),
                     ("--rw", str(w.top / "desk"), "--net", "host")):
            said = w.snap("run", "try", "--ro", str(w.top / "ask.py"), *more, "--", "/usr/bin/python3", str(w.top / "ask.py"),
                          at, question)
            assert b"no way" in said.out or b"user namespace of its own" in said.out, f"{more}\n{said}"
            assert not state(w, change)["waits_for"]["approved"], more
        # What it says would do, if it were said outside.
        said = subprocess.run([livetest.python(), str(w.top / "ask.py"), at, question], capture_output=True, check=True).stdout
        assert change.encode() in said, said
        assert state(w, change)["waits_for"]["approved"]


@live_test
def an_approval_is_for_the_stage_that_was_seen(w):
    change = waiting(w, me())
    with desk(w) as at:
        said = say(at, json.dumps({"ask": "approve", "change": change, "stage": "end"}).encode())
        assert b"is at stage 'dev' now, not at 'end'" in said, said
        assert b"names its stage" in say(at, json.dumps({"ask": "approve", "change": change}).encode())
        assert b"its reason" in say(at, json.dumps({"ask": "reject", "change": change, "stage": "dev"}).encode())
        assert not state(w, change)["waits_for"]["approved"]


@live_test
def what_is_approved_is_what_was_listed(w):
    change = waiting(w, me())
    with desk(w) as at:
        listed = w.ok("approve", "--at", at).out.decode()
        assert f"--at {at} --stage dev" in listed, listed
        assert b"not at 'end'" in w.snap("approve", "--at", at, "--stage", "end", change).ends(7).err
        w.snap("approve", "--at", at, "try").ends(7)  # the clone's name would be another change tomorrow
        assert not state(w, change)["waits_for"]["approved"]
        w.ok("approve", "--at", at, "--stage", "dev", change)


@live_test
def a_desk_that_lies_neither_crashes_nor_paints(w):
    waiting(w, me())
    with desk(w) as at:
        answer = json.loads(say(at, json.dumps({"ask": "list"}).encode()))
    good = answer["answer"]["changes"][0]
    place = w.top / "liar"
    place.mkdir()
    place.chmod(0o711)
    for change in ({**good, "stage": "\x1b[2Jx", "risk": "\x1b]0;x\x07"}, {**good, "state": 3, "passed": []}, {**good, "state": 70000000}):
        with socket.socket(socket.AF_UNIX) as door:
            (place / "a.sock").unlink(missing_ok=True)
            door.bind(str(place / "a.sock"))
            door.listen(1)
            asker = subprocess.Popen([SNAP, "approve", "--at", str(place / "a.sock")], env=w.env, cwd=w.project,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            link, _ = door.accept()
            link.recv(4096)
            link.sendall(json.dumps({"answer": {"changes": [change]}}).encode() + b"\n")
            link.close()
            out, said = asker.communicate(timeout=60)
        assert (asker.returncode == 0) == (change["state"] == good["state"]), (change, asker.returncode, said)
        assert 0 <= asker.returncode < 125, "it crashed"
        assert b"\x1b" not in out + said and b"\x07" not in out + said, out


@live_test
def a_private_directory_stays_private(w):
    waiting(w, me())
    place = w.top / "private"
    place.mkdir(mode=0o700)
    assert b"chmod go+x" in w.snap("pipeline", "serve", "--at", str(place)).fails(1).err
    assert place.stat().st_mode & 0o777 == 0o700


@live_test
def nonsense_and_silence_keep_nobody_waiting(w):
    change = waiting(w, me())
    with desk(w) as at, contextlib.ExitStack() as open_ones:
        for line in (b"", b"{", b"[]", b'{"ask":7}', b'{"ask":"ship"}', b'{"ask":"look"}', b'{"ask":"list","x":1}' * 9,
                     b'{"ask":"look","change":"../../x"}', b"\0" * 100, b"\xff\xfe", b"x" * 100000):
            said = say(at, line)
            assert change.encode() not in said and b"answer" not in said, (line[:40], said)
        for _ in range(4):
            s = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            s.connect(at)
        assert b"too many connections" in say(at, b'{"ask":"list"}')
        open_ones.close()
        said = say(at, b'{"ask":"list"}')
        assert change.encode() in said, said


@live_test
def one_who_does_not_read_keeps_nobody_waiting_and_gets_all_of_it_later(w):
    change = waiting(w, me(), text="a long line of text\n" * 12_000)
    with desk(w) as at, socket.socket(socket.AF_UNIX) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(at)
        slow.sendall(json.dumps({"ask": "look", "change": change, "patch": True}).encode() + b"\n")
        for _ in range(3):
            assert change.encode() in say(at, b'{"ask":"list"}')
            time.sleep(1)
        said = b""
        while got := slow.recv(65536):
            said += got
        assert len(json.loads(said)["answer"]["patch"]) > 240_000


@live_test
def what_is_too_long_to_be_shown_is_approved_by_its_digest_alone(w):
    change = waiting(w, me(), text="a long line of text\n" * 20_000)
    digest = state(w, change)["sha256"]
    with desk(w) as at:
        shown = w.ok("approve", "--at", at, "--show", change).out.decode()
        assert f"this is its beginning; the digest of all is {digest}" in shown, shown[-200:]
        assert b"longer than is shown" in w.snap("approve", "--at", at, change).ends(7).err
        w.snap("approve", "--at", at, "--digest", "0" * 64, change).fails(7, f"has the digest {digest}")
        w.snap("approve", "--digest", "0" * 64, change).fails(7, f"has the digest {digest}")
        assert not state(w, change)["waits_for"]["approved"]
        w.ok("approve", "--at", at, "--digest", digest, change)
    assert state(w, change)["waits_for"]["approved"]


@live_test
def nobody_fills_the_log_of_the_keeper(w):
    waiting(w, me())
    with desk(w, loud=True) as at:
        for _ in range(100):
            assert b"error" in say(at, b'{"ask":"ship"}')
        say(at, b'{"ask":"list"}')
    lines = desk.said.decode().splitlines()
    told = [line for line in lines if "one can list, look" in line]
    # A minute may have ended meanwhile.
    assert 30 <= len(told) <= 60 and any("is only counted" in line for line in lines), lines


@live_test
def a_group_is_looked_up_once_however_many_changes_name_it(w):
    if not shutil.which("strace"):
        raise Skip("needs strace")
    waiting(w, f"'%{GROUP}'")
    for i in range(4):
        put(clone(w, f"more{i}") / f"{i}.txt", f"{i}\n")
        w.snap("ship", f"more{i}").ends(14)
    with desk(w) as at:
        log = w.top / "trace"
        tracer = subprocess.Popen(["strace", "-o", str(log), "-e", "trace=openat", "-p", str(desk.pid)], stderr=subprocess.PIPE)
        if b"attached" not in tracer.stderr.readline():
            raise Skip("strace may not attach here")
        assert b'"changes":[]' in say(at, b'{"ask":"list"}')
        tracer.terminate()
        tracer.communicate(timeout=30)
    assert log.read_text().count('"/etc/group"') == 1, log.read_text()


@live_test
def who_looks_for_the_keeper_does_not_keep_it_from_beginning(w):
    waiting(w, me())
    with desk(w) as at:
        assert w.ok("pipeline", "--json").json("snap.pipeline/1")["address"] == at
    # Lookers of an earlier version held the file like this for a moment.
    with open(w.store / "run" / "desk", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert w.ok("pipeline", "--json").json("snap.pipeline/1")["address"] is None
        with desk(w) as at:
            assert w.ok("pipeline", "--json").json("snap.pipeline/1")["address"] == at


@live_test
def an_approval_is_for_the_stage_as_it_was_configured(w):
    conf = w.home / ".config" / "snapcow" / "pipeline.yaml"
    stage = "- stages:\n    - {name: dev, target: %s, approve: always, checks: [%s]}\n"
    put(conf, stage % (".", '"false"'))
    put(clone(w) / "a.txt", "new line\n")
    change = w.snap("ship", "--json", "try").json("snap.ship/1", "change", status=14)["change"]
    w.ok("approve", change)
    assert w.snap("ship", "--json", "--continue", change).json("snap.ship/1", "state", status=8)["state"] == "held"
    # The same again is approved still; but nobody approved that it lands elsewhere, or unchecked.
    assert w.snap("ship", "--json", "--continue", change).json("snap.ship/1", "state", status=8)["state"] == "held"
    for target, check in ((str(w.home), '"false"'), (".", '"true"')):
        put(conf, stage % (target, check))
        got = w.snap("ship", "--json", "--continue", change).json("snap.ship/1", "state", status=14)
        assert got["state"] == "waiting" and not (w.project / "a.txt").exists(), got


@live_test
def one_keeper_and_a_place_that_is_not_only_its_own_is_refused(w):
    waiting(w, me())
    with desk(w):
        said = w.snap("pipeline", "serve", "--at", str(w.top / "other")).ends(11)
        assert b"another process takes approvals" in said.err, said.err
    (w.top / "open").mkdir()
    (w.top / "open").chmod(0o777)
    assert b"others can write" in w.snap("pipeline", "serve", "--at", str(w.top / "open")).fails(1).err
    w.snap("pipeline", "serve", "--at", "here").ends(2)
    assert b"is no address" in w.snap("approve", "--at", "x", "3f2a").ends(2).err
    # A socket that somebody else could put there is not asked.
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(w.top / "open" / "a.sock"))
        s.listen()
        assert b"not theirs alone" in w.snap("approve", "--at", str(w.top / "open" / "a.sock"), "3f2a").fails(1).err


if __name__ == "__main__":
    sys.exit(livetest.main())
