"""What a run used over time: while it lives, afterwards, and when it was killed."""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from runtest import until  # noqa: E402

# Uses a processor, memory, the disk and a second process, until it is told to end.
WORK = ("import os, subprocess, time\n"
        "held = bytearray(os.urandom(1) * (64 << 20))\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "f = open('big', 'wb', buffering=0)\n"
        "while not os.path.exists('stop'):\n"
        "    f.write(held[:1 << 20])\n"
        "    f.seek(0)\n"
        "child.kill()\n"
        "child.wait()\n")


def samples(w, run):
    return w.ok("logs", "--json", "--usage", run).json("snap.logs/1", "usage")["usage"]["samples"]


def begin(w):
    w.take()
    w.ok("clone", "-n", "try")
    return w.ok("-q", "run", "--detach", "try", "--", "python3", "-c", WORK).out.decode().strip()


def files(w, run):
    return sorted(p.suffix for p in (w.store / "runs").glob(f"{run}.*"))


def is_at_work(list_of_samples):
    """It has come to its loop, however long this machine took to start it."""
    return len(list_of_samples) >= 2 and list_of_samples[-1]["written"] >= 1 << 20 and list_of_samples[-1]["processes"] == 2


def check(list_of_samples):
    last = list_of_samples[-1]
    for a, b in zip(list_of_samples, list_of_samples[1:]):
        assert b["at_ms"] > a["at_ms"] and b["cpu_ms"] >= a["cpu_ms"] and b["written"] >= a["written"], (a, b)
    assert last["cpu_ms"] > 0 and last["written"] >= 1 << 20, last
    assert max(s["memory"] for s in list_of_samples) >= 64 << 20, list_of_samples
    assert max(s["processes"] for s in list_of_samples) == 2, list_of_samples


@live_test
def a_run_is_sampled_while_it_lives_and_its_record_keeps_it(w):
    run = begin(w)
    until(lambda: is_at_work(samples(w, run)))
    assert files(w, run) == [".json", ".use"], files(w, run)
    live = samples(w, run)
    check(live)
    (w.store / "clones" / "try" / "stop").write_text("")
    w.ok("wait", run)
    after = samples(w, run)
    check(after)
    assert after[:len(live)] == live or len(after) < len(live), (live, after)
    assert files(w, run) == [".json"], "what was kept beside the record is part of it now"
    told = w.ok("logs", "--usage", run).out.decode().splitlines()
    assert told[0].split() == ["AFTER", "PROCESSORS", "MEMORY", "WRITTEN", "PROCS"] and 2 <= len(told) <= 21, told
    assert "usage" not in w.ok("logs", "--json", run).json("snap.logs/1"), "who does not ask gets none"
    w.ok("audit", "verify")


@live_test
def a_short_run_is_not_looked_at(w):
    w.take()
    w.ok("clone", "-n", "try")
    run = w.ok("run", "--json", "try", "--", "true").json("snap.run/1")["run"]
    assert samples(w, run) == []
    assert files(w, run) == [".json"]
    assert b"no samples" in w.ok("logs", "--usage", run).out


@live_test
def what_a_killed_run_used_is_known_until_then(w):
    run = begin(w)
    until(lambda: is_at_work(samples(w, run)))
    pid = next(r["pid"] for r in w.ok("ps", "--json").json("snap.ps/1")["runs"] if r["run"] == run)
    os.kill(pid, signal.SIGKILL)
    w.snap("wait", run)
    got = w.ok("logs", "--json", "--usage", run).json("snap.logs/1")
    assert got["state"] == "lost", got
    check(got["usage"]["samples"])
    assert ".use" in files(w, run)


if __name__ == "__main__":
    sys.exit(livetest.main())
