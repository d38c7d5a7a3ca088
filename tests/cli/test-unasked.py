"""A clone or run of a project with much to read is lazy without --lazy (capture.eager)."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from snaptest import SNAP, Skip, test  # noqa: E402

LARGE = [f"large{i}" for i in range(6)]


def age(top):
    """A file that changed a moment ago is read at once, and so proves nothing."""
    then = time.time() - 100
    for here, _, names in os.walk(top):
        for name in names:
            os.utime(Path(here) / name, (then, then), follow_symlinks=False)
    time.sleep(0.05)


class Unasked:
    """Six files of 2 MiB, a few small ones, a copy; nothing is captured in the background until told."""

    def __init__(self, w, eager="1M"):
        kind = subprocess.run(["stat", "-f", "-c", "%T", w.project], check=True,
                              stdout=subprocess.PIPE).stdout.decode().strip()
        if kind not in ("ext2/ext3", "xfs", "btrfs", "tmpfs"):
            raise Skip(f"on {kind} all files are read at once")
        self.w, self.project = w, w.project
        (w.project / "d").mkdir()
        for name in LARGE:
            (w.project / "d" / name).write_bytes(os.urandom(2 << 20))
        age(w.project)
        self.copy = w.top / "copy"
        subprocess.run(["cp", "-a", w.project, self.copy], check=True)
        self.gate = w.top / "gate"
        self.gate.write_text("0\n")
        w.env["SNAPCOW_LAZY_PAUSE"] = str(self.gate)
        if eager:
            config = w.home / ".config" / "snapcow" / "config.yaml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(f"capture: {{eager: {eager}}}\n")

    def clone(self, name, *args):
        return self.w.ok("--json", "clone", "-n", name, *args).json("snap.clone/1", "complete", "path")

    def same(self, path):
        done = subprocess.run(["diff", "-r", "--no-dereference", self.copy, path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout.decode()[:2000]

    def finish(self):
        self.gate.unlink()
        self.w.ok("gc")
        self.w.ok("check")
        got = self.w.ok("--json", "status").json("snap.status/1", "complete")
        assert got["complete"], got


def captures(w):
    out = w.ok("--json", "events").out.decode()
    return out.count('"kind":"captured"')


def start(w, *words):
    return subprocess.Popen([SNAP, "-q", *words], cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def wait_for(what, seconds=30):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)


def bytes_read(w):
    pid, = w.daemons()
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


def seconds(w, *words, **more):
    began = time.monotonic()
    w.ok(*words, **more)
    return time.monotonic() - began


def try_open(fifo, patience):
    """For writing; None: nobody reads it."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
    return None


@test
def a_large_project_is_cloned_before_it_is_read(w):
    u = Unasked(w)
    out = w.ok("clone", "-n", "a")
    told = [line for line in out.err.decode().splitlines() if "in the background" in line]
    assert len(told) == 1 and "reading 12.0 MiB" in told[0] and "'status a' shows how far" in told[0], out
    got = w.ok("--json", "status", "a").json("snap.status/1", "complete")
    assert not got["complete"] and got["captured"] == 0 and got["lost"] == 0, got
    path = Path(got["path"])
    assert "(capturing 0 %)" in w.ok("list").out.decode()
    # A writer of the project waits until its file is stored, or copied; nobody has read it in the clone.
    with open(u.project / "d" / LARGE[0], "r+b") as f:
        f.write(b"changed")
    (u.project / "d" / LARGE[1]).unlink()
    os.truncate(u.project / "d" / LARGE[2], 5)
    u.same(path)
    u.finish()
    u.same(path)
    assert w.ok("--json", "status", "a").json("snap.status/1")["lost"] == 0


@test
def a_capture_that_cannot_list_its_copies_loses_nothing(w):
    """Until it can, nobody knows what is promised: those who write and read wait."""
    u = Unasked(w)
    w.store.mkdir(mode=0o700)
    (w.store / "stash").write_text("no directory\n")
    path = Path(u.clone("a")["path"])
    name = Path("d") / LARGE[0]
    at_work = [subprocess.Popen(["sh", "-c", 'printf x >> "$1"', "sh", u.project / name]),
               subprocess.Popen(["cmp", u.copy / name, path / name])]
    time.sleep(1)
    early = [one.poll() for one in at_work]
    (w.store / "stash").unlink()
    assert early == [None, None], early
    assert [one.wait(30) for one in at_work] == [0, 0]
    u.same(path)
    u.finish()
    assert w.ok("--json", "status", "a").json("snap.status/1")["lost"] == 0


@test
def a_small_one_is_read_first(w):
    u = Unasked(w, eager="64M")
    out = w.ok("clone", "-n", "a")
    assert "background" not in out.err.decode(), out
    assert w.ok("--json", "status", "a").json("snap.status/1")["complete"]
    assert captures(w) == 0
    w.ok("rm", "a")
    w.ok("stop")
    u.gate.unlink()


@test
def without_a_setting_256_mib_are_waited_for(w):
    u = Unasked(w, eager=None)
    assert u.clone("a")["complete"]
    # Holes are not read, so they are nothing to wait for.
    with open(u.project / "hole", "wb") as f:
        f.truncate(1 << 30)
    age(u.project)
    assert u.clone("b")["complete"]
    big = u.project / "big"
    with open(big, "wb") as f:
        for _ in range(17):
            f.write(os.urandom(1 << 20) * 16)
    age(u.project)
    got = u.clone("c")
    assert not got["complete"], got
    u.gate.unlink()
    w.ok("gc")


@test
def all_means_never_and_zero_always(w):
    u = Unasked(w, eager="all")
    assert u.clone("a")["complete"]
    config = w.home / ".config" / "snapcow" / "config.yaml"
    w.stop()
    config.write_text("capture: {eager: 0}\n")
    (u.project / "d" / LARGE[3]).write_bytes(os.urandom(2 << 20))
    (u.project / "tiny").write_text("tiny\n")
    age(u.project)
    got = u.clone("b")
    assert not got["complete"] and got["captured"] == 0, got
    u.finish()
    for text, why in (("capture: {eager: soon}", "'eager' expects a size, as 256M, or 'all'"),
                      ("capture: {lazy: 1}", "unknown key 'capture.lazy'"),
                      ("capture: 5", "'capture' expects keys and values")):
        w.stop()
        config.write_text(text + "\n")
        w.snap("clone").fails(2, why)
    config.unlink()


@test
def the_command_line_says_otherwise(w):
    u = Unasked(w)
    got = u.clone("a", "--wait")
    assert got["complete"], got
    assert captures(w) == 0
    (u.project / "d" / LARGE[3]).write_bytes(os.urandom(2 << 20))
    age(u.project)
    assert b"background" not in w.ok("run", "--wait", "--", "true").err
    assert w.ok("--json", "status").json("snap.status/1")["complete"]
    w.snap("run", "--wait", "a", "--", "true").fails(2, "'--wait'", "name no clone")
    w.ok("stop", "--force")
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.write_text("capture: {eager: all}\n")
    (u.project / "d" / LARGE[3]).write_bytes(os.urandom(2 << 20))
    age(u.project)
    out = w.ok("clone", "--lazy", "-n", "b")
    assert "background" not in out.err.decode(), out
    assert not w.ok("--json", "status", "b").json("snap.status/1")["complete"]
    u.finish()


@test
def what_changed_a_lot_is_not_waited_for_either(w):
    u = Unasked(w)
    assert u.clone("a", "--wait")["complete"]
    for name in LARGE[:5]:
        (u.project / "d" / name).write_bytes(os.urandom(2 << 20))
    age(u.project)
    got = u.clone("b")
    assert not got["complete"], got
    for name in LARGE[:5]:
        (u.project / "d" / name).unlink()
    subprocess.run(["cmp", u.copy / "d" / LARGE[5], Path(got["path"]) / "d" / LARGE[5]], check=True)
    for name in LARGE[:5]:
        assert len((Path(got["path"]) / "d" / name).read_bytes()) == 2 << 20
    u.finish()
    assert w.ok("--json", "status", "b").json("snap.status/1")["lost"] == 0


@test
def what_cannot_be_held_is_read_first(w):
    """Else a clone that nobody asked to be lazy could lose it."""
    u = Unasked(w)
    w.env["SNAPCOW_LAZY_HOLD"] = "no"
    got = u.clone("a")
    assert got["complete"], got
    for name in LARGE:
        (u.project / "d" / name).write_bytes(b"later")
    u.same(got["path"])
    w.ok("rm", "a")
    w.stop()
    del w.env["SNAPCOW_LAZY_HOLD"]
    # One that somebody has open for writing.
    with open(u.project / "d" / LARGE[0], "r+b") as f:
        for name in LARGE:
            (u.project / "d" / name).write_bytes(os.urandom(2 << 20))
        age(u.project)
        want = (u.project / "d" / LARGE[0]).read_bytes()
        got = u.clone("b")
        assert not got["complete"], got
        f.write(b"changed")
        f.flush()
        assert (Path(got["path"]) / "d" / LARGE[0]).read_bytes() == want
    u.finish()
    assert w.ok("--json", "status", "b").json("snap.status/1")["lost"] == 0


@test
def a_run_and_a_try_begin_at_once(w):
    u = Unasked(w)
    out = w.ok("run", "--", "sh", "-c", "cat d/* | wc -c; echo x > made")
    assert out.out.decode().split()[0] == str(12 << 20), out
    assert "reading 12.0 MiB in the background; 'status' shows how far" in out.err.decode(), out
    got = w.ok("--json", "run", "--", "sh", "-c", "echo x > made").json("snap.run/1", "changed")
    assert got["exit_code"] == 0, got
    u.gate.unlink()
    got = w.ok("--json", "try", "--discard", "--", "sh", "-c", "echo x > made").json("snap.try/1")
    assert [f["path"] for f in got["diff"]["files"]] == ["made"], got
    w.ok("gc")


@test
def the_second_run_uses_the_capture_of_the_first(w):
    u = Unasked(w)
    w.ok("-q", "run", "--", "true")
    first = w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]
    for _ in range(3):
        assert int(w.ok("-q", "run", "--", "sh", "-c", "cat d/* | wc -c").out) == 12 << 20
    assert len(w.ok("log", "--all", "--json").json("snap.log/1")["snapshots"]) == len(first)
    # With a change: the rest is as it was promised, and only that is read.
    (u.project / "d" / LARGE[5]).write_bytes(b"another")
    (u.project / "new").write_text("new\n")
    os.utime(u.project / "d" / LARGE[5], (1, 1))
    (u.copy / "d" / LARGE[5]).write_bytes(b"another")
    os.utime(u.copy / "d" / LARGE[5], (1, 1))
    (u.copy / "new").write_text("new\n")
    got = u.clone("b")
    assert not got["complete"] and got["captured"] < 100, got
    assert got["base"] != first[0]["snapshot"], got
    u.same(got["path"])
    later = u.clone("c")
    assert later["base"] == got["base"], (later, got)
    # Its promises outlive the daemon, and so does what was made of them.
    w.kill_daemon()
    for name in LARGE[1:3]:
        assert (Path(w.ok("--json", "status", "b").json("snap.status/1")["path"]) / "d" / name).exists()
    u.same(got["path"])
    u.finish()
    u.same(got["path"])
    u.same(later["path"])
    for name in ("b", "c"):
        assert w.ok("--json", "status", name).json("snap.status/1")["lost"] == 0
    assert captures(w) == 1
    # What it has read is read no more.
    assert w.ok("--json", "snapshot").json("snap.snapshot/1")["modified"] == 0
    w.ok("umount", "b")
    w.ok("mount", "b")
    u.same(got["path"])


@test
def a_clone_that_shares_a_capture_is_known_after_a_death(w):
    u = Unasked(w)
    first = u.clone("a")["base"]
    (u.project / "d" / LARGE[5]).write_bytes(b"another")
    assert not u.clone("b")["complete"]
    w.kill_daemon()
    (u.project / "d" / LARGE[0]).write_bytes(b"nobody held it")

    def status(name):
        return w.ok("--json", "status", name).json("snap.status/1", "complete", "lost")

    for name in ("a", "b"):
        got = status(name)
        assert not got["complete"] and got["captured"] < 100, got
    w.snap("stop").fails(11, "the clones 'a', 'b'")
    # One that was read whole beside the capture shares nothing.
    assert u.clone("e")["complete"]
    w.kill_daemon()
    assert not status("b")["complete"]
    wait_for(lambda: status("e")["complete"])
    u.finish()
    # What it lost stays named, also by the next daemon.
    for again in (False, True):
        if again:
            w.stop()
        # Until the next one has looked, it may have lost something as well.
        wait_for(lambda: status("e")["lost"] == 0)
        got = {name: status(name)["lost"] for name in ("a", "b", "e")}
        assert got == {"a": 1, "b": 1, "e": 0}, (again, got)
    w.ok("rm", "a")
    w.ok("rm", "--force", first)
    w.stop()
    assert status("b")["lost"] == 1


@test
def a_clone_made_while_a_capture_ends_reads_nothing_again(w):
    fifo = w.top / "settled"
    os.mkfifo(fifo)
    w.env["SNAPCOW_SETTLED_PAUSE"] = str(fifo)
    u = Unasked(w)
    first = u.clone("a")
    u.gate.unlink()
    gate = os.open(fifo, os.O_WRONLY)  # opens when all is settled
    before = bytes_read(w)
    asked = start(w, "clone", "-n", "b")
    time.sleep(0.5)
    os.close(gate)
    out, err = asked.communicate(timeout=60)
    assert asked.returncode == 0, err
    assert bytes_read(w) - before < 4 << 20, bytes_read(w) - before
    got = w.ok("--json", "status", "b").json("snap.status/1")
    assert got["complete"] and got["base"] == first["base"], (got, first)
    u.same(out.decode().strip())


@test
def a_capture_ends_though_others_make_clones_all_the_time(w):
    """It waits for those that were at it, and for nobody who came later."""
    fifo = w.top / "stay"
    w.env["SNAPCOW_STAY_PAUSE"] = str(fifo)
    u = Unasked(w)
    u.clone("z")
    os.mkfifo(fifo)
    started = [start(w, "clone", "-n", "a", "--from", "z")]
    gates = [os.open(fifo, os.O_WRONLY)]  # opens when it is there
    try:
        fifo.unlink()
        u.gate.unlink()
        wait_for(lambda: "(capturing 99 %)" in w.ok("list").out.decode())
        # What would compare clones while these are settled lets the capture end, but not for long.
        began = time.monotonic()
        assert "(capturing 99 %)" in w.ok("list", timeout=60).out.decode()
        assert time.monotonic() - began > 0.9
        assert captures(w) == 0
        os.mkfifo(fifo)
        started.append(start(w, "clone", "-n", "b", "--from", "z"))
        gates.append(try_open(fifo, 1))
        os.close(gates.pop(0))
        wait_for(lambda: captures(w) == 1)
    finally:
        gate = gates[0] if gates and gates[0] is not None else os.open(fifo, os.O_WRONLY)
        fifo.unlink()
        os.close(gate)
        for one in started:
            out, err = one.communicate(timeout=60)
            assert one.returncode == 0, err
            u.same(out.decode().strip())
    assert w.ok("--json", "status", "b").json("snap.status/1")["complete"]


@test
def a_clone_that_gets_stuck_stops_no_other(w):
    """A capture that ends has those who come wait for those who were there first, but not for ever."""
    fifo = w.top / "stay"
    w.env["SNAPCOW_STAY_PAUSE"] = str(fifo)
    u = Unasked(w)
    u.clone("z")
    os.mkfifo(fifo)
    stuck = start(w, "clone", "-n", "a", "--from", "z")
    gate = os.open(fifo, os.O_WRONLY)  # opens when it is there
    try:
        fifo.unlink()
        u.gate.unlink()
        wait_for(lambda: "(capturing 99 %)" in w.ok("list").out.decode())
        time.sleep(1)
        others = [start(w, "clone", "-n", *words) for words in (["b", "--from", "z"], ["c"])]
        for one in others:
            out, err = one.communicate(timeout=60)
            assert one.returncode == 0, err
            u.same(out.decode().strip())
        assert stuck.poll() is None and captures(w) == 0
        # Their trees name what was kept, and that of their base does not yet.
        listed = w.ok("list", "--json").json("snap.list/1")["clones"]
        assert {c["clone"]: c["changed"] for c in listed} == {"z": 0, "b": 0, "c": 0}, listed
    finally:
        os.close(gate)
    out, err = stuck.communicate(timeout=60)
    assert stuck.returncode == 0, err
    wait_for(lambda: captures(w) == 1)
    u.same(out.decode().strip())


@test
def the_end_of_a_capture_holds_up_no_list_of_another_project(w):
    fifo, other = w.top / "stay", w.top / "other"
    w.env["SNAPCOW_STAY_PAUSE"] = str(fifo)
    u = Unasked(w)
    u.clone("z")
    other.mkdir()
    (other / "a").write_text("1\n")
    w.ok("clone", "-n", "mine", cwd=other)
    os.mkfifo(fifo)
    stuck = start(w, "clone", "-n", "a", "--from", "z")
    gate = os.open(fifo, os.O_WRONLY)  # opens when it is there
    try:
        fifo.unlink()
        u.gate.unlink()
        wait_for(lambda: "(capturing 99 %)" in w.ok("list").out.decode())
        # Each would wait for a second; that one of them is slow for another reason says nothing.
        assert min(seconds(w, "list", cwd=other) for _ in range(4)) < 0.9
        assert min(seconds(w, "status", "mine", cwd=other) for _ in range(4)) < 0.9
        assert captures(w) == 0
    finally:
        os.close(gate)
    out, err = stuck.communicate(timeout=60)
    assert stuck.returncode == 0, err
    u.same(out.decode().strip())


@test
def several_at_once_are_all_right(w):
    u = Unasked(w)
    u.gate.unlink()
    ps = [start(w, "run", "--", "sh", "-c", "cat d/* | wc -c") for _ in range(6)]
    for p in ps:
        out, err = p.communicate(timeout=240)
        assert p.returncode == 0 and int(out) == 12 << 20, (p.returncode, out, err)
    w.ok("gc")
    assert captures(w) == 1
    w.ok("check")


@test
def a_clone_of_a_clone_goes_the_same_way(w):
    u = Unasked(w)
    a = u.clone("a")
    (Path(a["path"]) / "d" / "more").write_text("more\n")
    b = u.clone("b", "--from", "a")
    assert not b["complete"], b
    (u.copy / "d" / "more").write_text("more\n")
    u.same(b["path"])
    u.finish()
    u.same(b["path"])
    u.same(a["path"])


@test
def cowfsd_does_not_end_while_files_are_to_be_read(w):
    u = Unasked(w)
    for name in ("a", "b", "c", "e"):
        assert not u.clone(name)["complete"]
    out = w.snap("stop").fails(11, "12.0 MiB of", "the clones 'a', 'b', 'c' and 1 more", "'status'",
                               "stop --force")
    assert str(w.project) in out.err.decode(), out
    u.finish()
    w.ok("stop")


def touch(path, ended):
    """It is always young."""
    while not ended.wait(0.002):
        os.utime(path)


@test
def a_walk_that_is_repeated_is_one_walk(w):
    """Two files with one inode number have all walked over twice, and what is too young read again."""
    if os.geteuid() != 0:
        raise Skip("needs mounts")
    u = Unasked(w, eager="0")
    mounts = [u.project / name for name in ("m1", "m2")]
    for one in mounts:
        one.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", one], check=True)
    try:
        for one in mounts:
            (one / "file").write_text("here\n")
        assert len({(one / "file").stat().st_ino for one in mounts}) == 1
        (w.top / "other").mkdir()
        w.ok("snapshot", cwd=w.top / "other")  # starts the daemon, so that the walk begins at once
        (u.project / "young").write_text("young\n")
        ended = threading.Event()
        toucher = threading.Thread(target=touch, args=(u.project / "young", ended))
        toucher.start()
        try:
            got = u.clone("a")
        finally:
            ended.set()
            toucher.join()
        assert not got["complete"], got
        for name in LARGE:
            assert (Path(got["path"]) / "d" / name).read_bytes() == (u.copy / "d" / name).read_bytes()
        u.finish()
    finally:
        for one in mounts:
            subprocess.run(["umount", one], check=True)


@test
def a_part_is_lazy_too(w):
    u = Unasked(w)
    got = u.clone("a", "--path", "d")
    assert not got["complete"], got
    for name in LARGE:
        assert (Path(got["path"]) / "d" / name).read_bytes() == (u.copy / "d" / name).read_bytes()
    u.finish()


@test
def what_the_rules_leave_out_does_not_count(w):
    u = Unasked(w, eager="4M")
    (u.project / ".snapignore").write_text("/d\n")
    # Large enough for the walk to wait until it is known how much there is.
    (u.project / "kept").write_bytes(os.urandom(2 << 20))
    age(u.project)
    assert u.clone("a")["complete"]


if __name__ == "__main__":
    sys.exit(livetest.main())
