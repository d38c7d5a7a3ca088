"""snapshot inside a run: of the run's own clone, if its profile says so, so many and no more."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from promotetest import daemon  # noqa: E402
from runtest import clone, clones, line_of, run, sh, start  # noqa: E402
from snaptest import SNAP, Skip, gone, stop_process  # noqa: E402

ASK = 0x534e4150
INSIDE = ("--ro", str(Path(SNAP).parent), "--env", "ASAN_OPTIONS=detect_leaks=0")


def needs_snap_inside():
    if livetest.SANITIZED and os.geteuid() != 0:
        raise Skip("the sanitizer maps more than a run of an ordinary user may have")


# What a hostile program does: the system call itself, with whatever descriptor, again and again.
HAMMER = f"""
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
number = {{'x86_64': 16, 'aarch64': 29}}[os.uname().machine]
def ask(fd=-1, what=0, cmd={ASK}):
    said = libc.syscall(ctypes.c_long(number), ctypes.c_long(fd), ctypes.c_ulong(cmd), ctypes.c_long(what))
    return said if said != -1 else -ctypes.get_errno()
"""


def allow(w, n, name="snaps"):
    folder = w.home / ".config" / "snapcow" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(f"snapshots: {n}\n")


def taken(w, clone_name, *args):
    listed = w.ok("log", clone_name, "--json", *args).json("snap.log/1")["snapshots"]
    return [s for s in listed if "run" in s["meta"]]


def hammer(w, script, *args, **more):
    return run(w, *args, "--", "python3", "-c", HAMMER + script, **more)


@live_test
def a_command_takes_snapshots_of_its_own_clone(w):
    needs_snap_inside()
    allow(w, 3)
    top = clone(w)
    got = sh(w, f"for i in 1 2 3; do echo $i > f; {SNAP} -q snapshot || exit 9; done; echo 4 > f; {SNAP} snapshot",
             "try", "--profile", "snaps", *INSIDE, status=9)
    ids = got["stdout"].split()
    assert len(ids) == 3 and "has taken all snapshots" in got["stderr"], got
    listed = taken(w, "try")
    assert [s["snapshot"] for s in listed] == ids[::-1], listed
    assert all(s["meta"] == {"run": got["run"]} and s["automatic"] and s["origin"] == "try" for s in listed), listed
    assert [s["snapshot"] for s in taken(w, "try", "--meta", f"run={got['run']}")] == ids[::-1]
    assert ids[0][:8] in w.ok("log", "try").out.decode(), "people see them, too"
    for number, name in ((2, ids[1]), (1, ids[0]), (3, ids[2])):
        w.ok("rollback", "try", name)
        assert (top / "f").read_text() == f"{number}\n"
    w.ok("rollback", "try")  # a bare one goes to what a person took, or the start
    assert not (top / "f").exists(), "what a run took is not where a bare rollback leads"
    events = [json.loads(line) for line in w.ok("events", "--json").out.splitlines()]
    assert set(ids) <= {e["data"].get("snapshot") for e in events if e["kind"] == "snapshot"}
    got = sh(w, f"{SNAP} snapshot --json", "try", "--profile", "snaps", *INSIDE)
    assert json.loads(got["stdout"]) == {"schema": "snap.snapshot/1", "snapshot": taken(w, "try")[0]["snapshot"],
                                         "inside": True}, got
    for words in ("-m text", "-t tag", "--meta a=b", "try"):
        got = sh(w, f"{SNAP} snapshot {words}", "try", "--profile", "snaps", *INSIDE, status=2)
        assert "no words and no options" in got["stderr"], got
    assert len(taken(w, "try")) == 4


@live_test
def what_was_written_before_it_was_asked_is_in_it(w):
    allow(w, 20)
    top = clone(w)
    hammer(w, """
for i in range(20):
    with open(f'f{i}', 'w') as f:
        f.write('x' * 5000)
        f.flush()
        assert ask() not in range(-4095, 0), i
""", "try", "--profile", "snaps")
    listed = taken(w, "try")
    assert len(listed) == 20
    for i, s in enumerate(reversed(listed)):
        assert w.ok("show", f"{s['snapshot']}:f{i}").out == b"x" * 5000, i
    assert (top / "f19").exists()


@live_test
def without_a_profile_that_says_so_it_gains_nothing(w):
    """The control is the same program with a profile that allows one."""
    needs_snap_inside()
    clone(w)
    allow(w, 1)
    script = "print([ask(fd, what, cmd) for fd in (-1, 0, os.open('.', 0)) " \
        f"for what in (0, 1) for cmd in ({ASK}, {ASK} | 1 << 32)])"
    for profile in ("default", "strict", "build"):
        got = hammer(w, script, "try", "--profile", profile, "--allow-missing", "memory", "--allow-missing", "cpu")
        assert json.loads(got["stdout"]) == [-1] * 12, got
        assert any(r["what"] == "ioctl" for r in got["refusals"]), got
        assert taken(w, "try") == []
    got = sh(w, f"{SNAP} snapshot", "try", *INSIDE, status=1)
    assert "profile allows no snapshots" in got["stderr"], got
    assert taken(w, "try", "--all") == []
    said = json.loads(hammer(w, script, "try", "--profile", "snaps")["stdout"])
    assert sum(s not in range(-4095, 1) for s in said) == 1 == len(taken(w, "try")), said
    assert {s for s in said if s in range(-4095, 1)} == {0, -122}, "looking costs nothing, then the count is used up"


@live_test
def it_is_counted_and_bounded_however_it_is_asked(w):
    allow(w, 5)
    clone(w)
    clone(w, "other")
    got = hammer(w, """
said = []
def work():
    for _ in range(400):
        open('f', 'a').write('x')
        said.append(ask())
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(sum(s not in range(-4095, 1) for s in said), sorted({s for s in said if s in range(-4095, 1)}))
""", "try", "--profile", "snaps")
    assert got["stdout"] == "5 [-122]\n", got
    kept = len(taken(w, "try"))
    assert 1 <= kept <= 5, "where nothing was written in between, the newest serves"
    assert taken(w, "other", "--all") == [], taken(w, "other", "--all")
    again = hammer(w, "print(ask() not in range(-4095, 1))", "try", "--profile", "snaps")
    assert again["stdout"] == "True\n" and len(taken(w, "try")) == kept + 1, "each run has its own count"


@live_test
def a_throw_away_clone_leaves_none_of_them(w):
    allow(w, 2)
    w.take()
    before = w.ok("stats", "--json").json("snap.stats/1")["snapshots"]
    got = hammer(w, "open('f', 'w').write('x'); print(ask() not in range(-4095, 1))", "--profile", "snaps")
    assert got["stdout"] == "True\n" and clones(w) == [], got
    w.ok("gc")
    left = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]
    assert not [s for s in left if "run" in s["meta"]], left
    assert w.ok("stats", "--json").json("snap.stats/1")["snapshots"] <= before + 1


@live_test
def who_may_not_say_so_is_refused(w):
    allow(w, 101)
    clone(w)
    w.snap("run", "try", "--profile", "snaps", "--", "true").fails(2, "100 snapshots at most")
    folder = w.project / ".snap" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("snapshots: 1\n")
    w.snap("run", "--profile", "mine", "--", "true").fails(125, "takes more snapshots than 'default'")
    shown = w.ok("profile", "show", "default", "--json").json("snap.profile/1")["profile"]
    assert shown["snapshots"] == 0, shown


@live_test
def a_cowfsd_that_was_killed_is_an_error_or_a_new_one_and_the_run_goes_on(w):
    allow(w, 3)
    clone(w)
    w.ok("snapshot", "try")
    script = HAMMER + "print('ready', flush=True); input(); said = ask(); print(said if said < 0 else 'taken')"
    with start(w, "try", "--profile", "snaps", "--", "python3", "-c", script, stdin=subprocess.PIPE) as process:
        assert line_of(process) == b"ready\n"
        pid = daemon(w)
        os.kill(pid, signal.SIGKILL)
        assert gone(pid, 20)
        process.stdin.write(b"go\n")
        process.stdin.close()
        said = line_of(process)
        process.wait(60)
    assert said and process.returncode == 0, said
    assert len(taken(w, "try")) == (said != b"-5\n"), said
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(word) for word in f.read().split()]


class Stopped:
    """A cowfsd that answers nobody, while the command asks it."""

    def __init__(self, w, script, *args):
        allow(w, 3)
        clone(w)
        script = HAMMER + "print('ready', flush=True)\nos.read(0, 1)\n" + script
        self.run = start(w, "try", "--profile", "snaps", *args, "--", "python3", "-B", "-c", script,
                         stdin=subprocess.PIPE)
        assert line_of(self.run) == b"ready\n"
        self.inside = children_of(self.run.pid)
        self.daemon = daemon(w)

    def __enter__(self):
        stop_process(self.daemon)
        self.run.stdin.write(b"x")
        return self

    def __exit__(self, *_):
        os.kill(self.daemon, signal.SIGCONT)


@live_test
def a_limit_of_time_holds_while_cowfsd_takes_the_snapshot(w):
    with Stopped(w, "ask()", "--time", "2s") as s:
        assert s.inside and all(gone(pid, 20) for pid in s.inside), "the run outlives its limit"
    assert s.run.wait(60) == 124, s.run.returncode


@live_test
def a_signal_does_not_make_a_run_ask_twice(w):
    if tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) < (5, 19):
        raise Skip("needs Linux 5.19")
    script = """
import signal
signal.signal(signal.SIGALRM, lambda *_: 0)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
said = [ask()]
signal.setitimer(signal.ITIMER_REAL, 0)
print(*said, ask(), ask(), ask(), flush=True)
"""
    with Stopped(w, script) as s:
        time.sleep(0.3)  # for some alarms
    assert s.run.wait(60) == 0
    # Three may be asked for, and the alarms were none of them.
    assert [int(n) == -errno.EDQUOT for n in line_of(s.run).split()] == [False, False, False, True]


if __name__ == "__main__":
    sys.exit(livetest.main())
