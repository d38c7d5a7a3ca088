"""What runs leave behind, however they end and however many there are: nothing."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import LONG, SANITIZED, kill_daemon, live_test, note  # noqa: E402
from runtest import alive, cgroups, clones, line_of, maker, sh, start, until  # noqa: E402
from snaptest import stop_process  # noqa: E402


# The full figures by default, where a run costs milliseconds; fewer under sanitizers.
FULL = LONG or not SANITIZED
IN_A_ROW = 1000 if FULL else 60
AT_ONCE = 50 if FULL else 20
# Descriptors of a clone that stands by: /dev/fuse, one to be woken by, and root's mount.
WARM = 2 if livetest.USER or os.geteuid() != 0 else 3
STAND_BY = 8  # such clones at most, after as many were made at once
SLEEP = f"sleep 765432.{os.getpid()}"  # nobody else's


class Traces:
    """All that runs could leave: processes, mounts, cgroups, files, descriptors of cowfsd."""

    def __init__(self, w):
        self.w, self.makers = w, set()
        self.tmp = w.top / "tmp"
        self.tmp.mkdir()
        w.env["TMPDIR"] = str(self.tmp)
        sh(w, "true")  # from here on there is a daemon, and a warm clone
        self.daemon = livetest.daemon_pid(w)
        self.before = self.look()

    def descriptors(self):
        """Without those of databases, which SQLite keeps for the next process, and of clones that stand by."""
        links = []
        for fd in Path(f"/proc/{self.daemon}/fd").iterdir():
            with contextlib.suppress(OSError):
                links.append(os.readlink(fd))
        return sum(not link.endswith((".db", ".db-wal", ".db-shm")) for link in links) - WARM * links.count("/dev/fuse")

    def stand_by(self):
        n = 0
        for fd in Path(f"/proc/{self.daemon}/fd").iterdir():
            with contextlib.suppress(OSError):
                n += os.readlink(fd) == "/dev/fuse"
        assert n <= STAND_BY + 1, n
        return n

    def all_descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon}/fd")) - WARM * self.stand_by()

    def look(self):
        """Clones that stand by for an ordinary user are mounted in run/warm: they come and go."""
        aside = str(self.w.store / "run" / "warm")
        left_out = {aside, str(self.w.store / "runs")}
        store = set()
        for top, folders, files in os.walk(self.w.store):  # which a directory that goes does not end
            folders[:] = [name for name in folders if os.path.join(top, name) not in left_out]
            store |= {os.path.relpath(os.path.join(top, name), self.w.store) for name in folders + files}
        mounts = sorted(line.split(" ", 2)[2] for line in
                        Path("/proc/self/mountinfo").read_text().splitlines() if aside not in line)
        return {"store": store, "mounts": mounts, "tmp": os.listdir(self.tmp),
                "fds": self.descriptors(), "all": self.all_descriptors()}

    def start(self, sleep):
        """A run that leaves as much as it can: files, and processes that want to live on."""
        script = f"echo x > x; echo x > /tmp/x; setsid {sleep} & {sleep} & exit 7"
        process = start(self.w, "-q", "--", "sh", "-c", script)  # without its word about limits
        self.makers.add(maker(process))
        return process

    def none_are_left(self, sleep):
        left = {"clones": clones(self.w), "cgroups": cgroups(self.makers)}
        assert left == {"clones": [], "cgroups": []}, left
        assert list((self.w.store / "clones").iterdir()) == []
        assert not alive(sleep)
        assert livetest.daemon_pid(self.w) == self.daemon, "it is the same daemon"
        # A clone that stands by for the next run may come meanwhile.
        until(lambda: self.descriptors() <= self.before["fds"] + WARM)
        # One of somebody else's may go meanwhile, with the directory that it is mounted on.
        until(lambda: set(self.look()["mounts"]) <= set(self.before["mounts"]))
        now = self.look()
        assert now["tmp"] == [], now["tmp"]
        new = {name for name in now["store"] - self.before["store"] if "run" in name or "tmp" in name}
        assert not new, new


@live_test
def very_many_in_a_row_leave_nothing(w):
    traces = Traces(w)
    for _ in range(IN_A_ROW):
        process = traces.start(SLEEP)
        assert process.communicate(timeout=60) == (b"", b"") and process.returncode == 7
    traces.none_are_left(SLEEP)
    note(f"{IN_A_ROW} runs; descriptors of cowfsd: {traces.before['all']}, then "
         f"{traces.all_descriptors()}")
    assert traces.all_descriptors() < traces.before["all"] + IN_A_ROW // 3
    assert len(w.ok("runs", "--json").json("snap.runs/1")["runs"]) >= min(IN_A_ROW + 1, 100)


@live_test
def very_many_at_once_leave_nothing(w):
    traces = Traces(w)
    for process in [traces.start(SLEEP) for _ in range(AT_ONCE)]:
        assert process.communicate(timeout=120) == (b"", b"") and process.returncode == 7
    note(f"{AT_ONCE} runs at once")
    traces.none_are_left(SLEEP)


@live_test
def several_at_once_do_not_disturb_each_other(w):
    processes = [start(w, "--", "sh", "-c", f"echo {i} > which; sleep 0.2; cat which")
                 for i in range(8)]
    for i, process in enumerate(processes):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0 and out == f"{i}\n".encode(), (out, err)
    assert clones(w) == []


@live_test
def a_signal_is_passed_on_and_the_clone_goes(w):
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start(w, "--", "sh", "-c", "echo ready; exec sleep 600")
        assert line_of(process) == b"ready\n"
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == 128 + number, process.returncode
        assert clones(w) == []


@live_test
def killing_it_leaves_nothing(w):
    marker = f"sleep 123456.{os.getpid()}"
    process = start(w, "--", "sh", "-c", f"echo ready; {marker} & {marker}")
    assert line_of(process) == b"ready\n"
    assert len(clones(w)) == 1
    made_by = maker(process)
    process.kill()
    process.communicate(timeout=60)
    until(lambda: not alive(marker))
    until(lambda: clones(w) == [])
    until(lambda: w.mounts() == [] or not os.listdir(w.store / "clones"))
    w.ok("run", "--", "true")  # what could not be removed is removed by the next one
    assert cgroups({made_by}) == []
    runs = w.ok("runs", "--json").json("snap.runs/1")["runs"]
    assert runs[1]["state"] == "lost" and runs[1]["exit_code"] is None, runs[1]


@live_test
def killing_the_daemon_and_it_leaves_nothing(w):
    process = start(w, "--", "sh", "-c", "echo ready; exec sleep 600")
    assert line_of(process) == b"ready\n"
    stop_process(process.pid)
    kill_daemon(w)
    process.kill()
    process.communicate(timeout=60)
    until(lambda: clones(w) == [])
    assert list((w.store / "clones").iterdir()) == []


@live_test
def a_daemon_that_dies_does_not_take_the_result_with_it(w):
    process = start(w, "--json", "--", "sh", "-c", "sleep 1000")
    until(lambda: w.ok("ps", "--json").json("snap.ps/1")["runs"] != [])
    kill_daemon(w)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    got = json.loads(out)
    assert got["signal"] == 15 and got["changed"] is None and b"cannot list the run's changes" in err, (got, err)
    assert clones(w) == []


if __name__ == "__main__":
    sys.exit(livetest.main())
