"""Runs that want to take the machine down, and machines that lack a wall: what becomes of each.

The same is tried on the sandbox alone in tests/sandbox; here it goes through the program, with a
clone and a daemon that must outlive it.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import LONG, SANITIZED, live_test  # noqa: E402
from runtest import (  # noqa: E402
    CLONE3, LANDLOCK_CREATE_RULESET, MIB, alive, clone, clones, lacking, line_of, run, sh, start, until)
from snaptest import Skip, stop_process  # noqa: E402

EPERM, ENOSPC, ENOSYS = 1, 28, 38


def is_fine(w):
    """The host and the daemon go on, and nothing is left."""
    assert len(w.daemons()) == 1 and clones(w) == [], clones(w)
    assert sh(w, "echo fine")["stdout"] == "fine\n"


# --- abuse ------------------------------------------------------------------------------------

@live_test
def a_fork_bomb_ends_with_its_run(w):
    sleep = f"sleep 654321.{os.getpid()}"
    # The shell itself forks before the bomb goes off: later it could not, and would end.
    bomb = sleep + " & b() { b | b & }; b & while :; do :; done"
    got = sh(w, bomb, "--pids", "64", "--time", "1s", status=124)
    assert got["timed_out"] and got["limit"] == "time", got
    assert not alive(sleep)
    got = sh(w, "for i in $(seq 100); do sleep 20 & done; wait", "--pids", "32", status=None)
    assert got["exit_code"] != 0 and "ork" in got["stderr"], got
    if os.geteuid() == 0 and "memory" in got["isolation"]["walls"]:
        assert got["limit"] == "pids", got  # where a group counts it
    is_fine(w)


@live_test
def a_writer_of_ten_gigabytes_meets_the_end_of_the_clone(w):
    write = "dd if=/dev/zero of={} bs=1M count=10240"
    got = sh(w, write.format("big"), "--disk", "32M", status=1)
    assert got["limit"] == "disk" and "No space left" in got["stderr"], got
    # In many files, too; and what is gone again counts no more.
    got = sh(w, "i=0; while head -c 1M /dev/zero > f$i; do i=$((i + 1)); done; rm f*; "
                "head -c 8M /dev/zero > last", "--disk", "32M", status=0)
    assert got["changed"]["added"] == 1, got["changed"]
    # /tmp is memory, and no more of it than the run may have.
    got = sh(w, write.format("/tmp/big"), "--mem", "64M", "--allow-missing", "memory", status=None)
    assert got["exit_code"] != 0, got
    is_fine(w)


@live_test
def names_and_attributes_are_charged_like_bytes(w):
    many = "import os\nn = 0\nwhile True:\n open(f'f{n}', 'w').close()\n n += 1"
    # The names are there before: it is the attributes that are refused.
    attrs = ("import os\nfor n in range(60): open(f'f{n}', 'w').close()\n"
             "for n in range(60): os.setxattr(f'f{n}', 'user.x', os.urandom(60000)); print(n)\n")
    python = ("--", "/usr/bin/python3", "-I", "-c")
    got = run(w, "--disk", "1M", *python, many, status=1)
    assert got["limit"] == "disk" and "No space left" in got["stderr"], got
    assert got["changed"]["added"] < 20_000, got["changed"]
    got = run(w, "--disk", "1M", *python, attrs, status=1)
    assert got["limit"] == "disk" and "No space left" in got["stderr"], got
    assert got["changed"]["added"] == 60 and len(got["stdout"].split()) < 40, got
    got = run(w, "--inodes", "500", *python, many, status=1)
    assert got["limit"] == "inodes" and "No space left" in got["stderr"], got
    assert got["changed"]["added"] == 500 and got["limits"]["inodes"] == 500, got
    is_fine(w)


def store_bytes(w):
    return sum(f.stat().st_blocks * 512 for f in w.store.glob("*.db*"))


@live_test
def what_is_written_again_and_again_leaves_no_garbage_behind(w):
    rewrite = ("import os\nfd = os.open('f', os.O_RDWR | os.O_CREAT)\nfor i in range(16):\n"
               " os.pwrite(fd, os.urandom(16 << 20), 0)\n os.fsync(fd)\n")
    w.ok("clone", "-n", "c")  # where an fsync stores what was written; in a throw-away clone it does not
    got = run(w, "c", "--disk", "32M", "--", "/usr/bin/python3", "-I", "-c", rewrite)
    assert got["limit"] is None, got
    most = store_bytes(w)
    assert most > 16 * MIB, most
    w.ok("rm", "--force", "c")
    assert most < 400 * MIB, most  # of which a log may have 256
    until(lambda: store_bytes(w) < 32 * MIB)
    is_fine(w)


@live_test
def a_giant_without_content_stops_no_verb(w):
    w.ok("clone", "-n", "c")
    sh_in = ("--", "sh", "-c", "truncate -s 1T giant && printf x >> giant")
    run(w, "c", *sh_in)
    for words in (["status", "c"], ["diff", "--stat", "c"], ["snapshot", "c"]):
        w.ok(*words)
    w.snap("promote", "c").fails(7, "giant")
    w.ok("try", "--discard", *sh_in)
    w.ok("rm", "--force", "c")
    is_fine(w)


@live_test
def a_very_deep_tree_stops_no_verb(w):
    """Made from outside: in a run Landlock looks at all levels for each call, which takes the run's own time."""
    w.ok("clone", "-n", "c")
    pid, = w.daemons()
    at = os.open(w.store / "clones" / "c", os.O_RDONLY)
    for _ in range(20_000 if LONG else 3_000):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    for words in (["status", "c"], ["diff", "--stat", "c"], ["snapshot", "c"]):
        w.ok(*words)
    w.snap("promote", "c").fails(7, "so deep")
    w.ok("rollback", "c")
    most = int(re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())[1])
    assert SANITIZED or most < 512 << 10, f"{most} KiB"
    w.ok("rm", "--force", "c")
    is_fine(w)


@live_test
def a_memory_hog_is_ended_and_named(w):
    hog = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    got = run(w, "--mem", "64M", "--allow-missing", "memory", "--", "/usr/bin/python3", "-I", "-c",
              hog, status=None)
    if "memory" in got["isolation"]["walls"]:
        assert got["exit_code"] == 137 and got["oom_killed"] and got["limit"] == "memory", got
    else:
        assert got["exit_code"] == 1 and "MemoryError" in got["stderr"], got
    is_fine(w)


@live_test
def endless_output_is_cut_and_kept_in_bounds(w):
    got = sh(w, "yes", "--output", "2M", "--time", "1s", status=124)
    assert len(got["stdout"]) == MIB and got["truncated"], len(got["stdout"])
    assert got["logged"]["stdout"] == 2 * MIB, got["logged"]
    result = w.snap("run", "--output", "2M", "--time", "1s", "--", "yes")
    assert len(result.out) == 2 * MIB, len(result.out)
    is_fine(w)


@live_test
def who_ignores_the_end_and_forks_twice_is_ended_too(w):
    sleep = f"sleep 754321.{os.getpid()}"
    script = (f"trap '' TERM HUP INT; (setsid sh -c \"trap '' TERM; echo deep; {sleep}; "
              f"{sleep}\" &); {sleep}; {sleep}")
    got = sh(w, script, "--time", "2s", status=124)
    assert got["stdout"] == "deep\n" and got["signal"] == signal.SIGKILL, got
    assert not alive(sleep)
    is_fine(w)


@live_test
def who_stops_everything_is_ended_in_time(w):
    got = sh(w, "kill -STOP $$", "--time", "1s", status=124)
    assert got["limit"] == "time" and got["signal"] == signal.SIGKILL, got
    sh(w, "sleep 600 & kill -STOP 1; kill -STOP -1; kill -STOP $$", "--time", "1s", status=124)
    is_fine(w)


@live_test
def a_caller_that_is_stopped_ends_it_when_it_goes_on(w):
    process = start(w, "--time", "500ms", "--", "sh", "-c", "echo ready; sleep 600")
    assert line_of(process) == b"ready\n"
    stop_process(process.pid)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 124, process.returncode
    is_fine(w)


# --- machines that lack something -------------------------------------------------------------

@contextlib.contextmanager
def without_cgroups():
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "/sys/fs/cgroup"], check=True)


@live_test
def a_machine_without_user_namespaces_runs_nothing(w):
    path = clone(w)
    for errno, words in ((ENOSYS, "clone3"), (ENOSPC, "max_user_namespaces"),
                         (EPERM, "namespaces of the run")):
        result = w.snap("run", "--json", "try", "--", "touch", "ran",
                        preexec_fn=lacking(CLONE3, errno))
        error = result.fails_json(125, "E_SANDBOX")
        assert words in error["message"] and error["hints"], error
    w.snap("run", "try", "--", "touch", "ran", preexec_fn=lacking(CLONE3, EPERM)).fails(
        125, "hint: snapcow doctor")
    assert not (path / "ran").exists()
    kept = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]
    assert kept["state"] == "refused" and kept["isolation"]["walls"] == [], kept
    run(w, "try", "--", "touch", "ran")  # the control
    assert (path / "ran").exists()


@live_test
def a_machine_without_landlock_runs_nothing_unless_that_is_said(w):
    clone(w)
    lack = lacking(LANDLOCK_CREATE_RULESET, ENOSYS)
    error = w.snap("run", "--json", "try", "--", "true", preexec_fn=lack).fails_json(
        125, "E_SANDBOX")
    assert "Landlock" in error["message"], error
    got = run(w, "try", "--allow-missing", "landlock", "--", "true", preexec_fn=lack)
    walls = set(run(w, "try", "--", "true")["isolation"]["walls"])
    assert walls - set(got["isolation"]["walls"]) == {"landlock"}, got["isolation"]
    assert got["isolation"]["landlock"] == 0, got["isolation"]
    assert {"wall": "landlock", "reason": "no Landlock can be had here"} in \
        got["isolation"]["missing"], got["isolation"]


@live_test
def a_machine_without_cgroups_has_the_documented_walls(w):
    if os.geteuid() == 0:
        hidden = without_cgroups()
    elif "memory" in run(w, "--", "true")["isolation"]["walls"]:
        raise Skip("this user has cgroups, and cannot hide them")
    else:
        hidden = contextlib.nullcontext()
    with hidden:
        walls = run(w, "--", "true")["isolation"]["walls"]
        assert not {"memory", "cpu"} & set(walls) and {"pids", "rlimits"} <= set(walls), walls
        got = run(w, "--", "true")["isolation"]
        assert got["cgroup"] == "none" and [m["wall"] for m in got["missing"]] == ["memory"], got
        text = w.snap("run", "--", "true").ends(0).err.decode()
        assert text == ("warning: memory was limited for each process, not for all of the run: "
                        f"{got['missing'][0]['reason']}\n"), text
        ours, theirs = os.openpty()
        fresh = {"SNAPCOW_STORE": str(w.top / "fresh")}
        for _ in range(2):
            w.snap("run", "--", "true", stderr=theirs, env=fresh).ends(0)
        w.ok("-q", "stop", "--force", env=fresh)
        os.close(theirs)
        seen = os.read(ours, 65536).replace(b"\r", b"").decode()
        os.close(ours)
        hint = "hint: snapcow doctor  # 'cgroups' says how to limit all of a run\n"
        assert seen == text + hint + text, f"once\n{seen}"
        kept = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]
        assert kept["isolation"] == got, kept
        for args, words in ((("--mem", "1G"), "memory"), (("--cpus", "1"), "processors")):
            error = w.snap("run", "--json", *args, "--", "true").fails_json(125, "E_SANDBOX")
            assert words in error["message"] and "cannot be limited here" in error["message"], error
            run(w, *args, "--allow-missing", "memory", "--allow-missing", "cpu", "--", "true")
    is_fine(w)


if __name__ == "__main__":
    sys.exit(livetest.main())
