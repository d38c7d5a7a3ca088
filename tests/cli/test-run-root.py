"""run --root: a clone is the command's whole root file system, it is root in it, and nothing outside."""

import importlib.util
import io
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

import snaptest
from roottest import ids, listing, main, plant, root_run, root_sh
from livetest import live_test
from mcptest import Client
from runtest import clones, line_of, run, start
from snaptest import SNAP, Skip

ATTEMPTS = Path(os.environ["SNAP_SANDBOX_ATTEMPTS"])
EPERM, ENOENT, ESRCH, EACCES, ENOSYS, EAFNOSUPPORT, ECONNREFUSED = 1, 2, 3, 13, 38, 97, 111


def load_suite():
    """Its lists, without its tests."""
    own = snaptest.TESTS[:]
    os.environ.setdefault("SNAP_SANDBOX_DRIVER", str(ATTEMPTS.parent / "driver"))
    spec = importlib.util.spec_from_file_location(
        "attempts_suite", Path(__file__).resolve().parent.parent / "sandbox" / "test-attempts.py")
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    snaptest.TESTS[:] = own
    return suite


SUITE = load_suite()  # now: an ordinary user may not read all of this Python


def fields(text):
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


@live_test
def the_command_is_root_of_the_clone_and_of_nothing_else(w):
    top = plant(w.top / "root")
    before = listing(top)
    got = root_sh(w, "id -u; id -g; ls -A /; cat /proc/self/status; pwd; echo $HOME; echo x > /etc/new", str(top))
    out = got["stdout"].split("\n")
    assert out[:2] == ["0", "0"], out
    assert {"bin", "dev", "etc", "proc", "root", "tmp"} <= set(out), out
    assert str(w.top) not in got["stdout"], got
    caps = fields(got["stdout"])
    # CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE SYS_CHROOT SYS_PTRACE SETFCAP
    assert int(caps["CapBnd"], 16) == int(caps["CapEff"], 16) == 0x800c05fb, caps
    assert int(caps["CapInh"], 16) == int(caps["CapAmb"], 16) == 0, caps
    assert out[-3:-1] == ["/", "/root"], out
    assert got["changed"]["added"] == 1 and "etc/new" in str(got["changed"]), got
    walls = set(got["isolation"]["walls"])
    assert {"user", "mount", "pid", "net", "ipc", "uts", "cgroupns", "groups", "caps", "seccomp", "landlock",
            "rlimits"} <= walls, walls
    assert listing(top) == before, "the directory that was captured changed"
    assert clones(w) == []


@live_test
def nothing_lies_over_or_above_its_root(w):
    """What would lead to the host's root: "..", a second mount over "/", names in mountinfo."""
    top = plant(w.top / "root")
    got = root_sh(w, "stat -c %d:%i / /.. /../..; cat /proc/self/mountinfo", str(top))
    lines = got["stdout"].splitlines()
    assert len(set(lines[:3])) == 1, lines[:3]
    places = [line.split()[4] for line in lines[3:]]
    assert places.count("/") == 1, places
    assert not [p for p in places if p != "/" and not p.startswith(("/proc", "/dev", "/run", "/tmp"))], places
    assert str(w.top) not in got["stdout"], got["stdout"]
    for line in lines[3:]:
        words = line.split()
        assert words[4] == "/" or "nosuid" in words[5], line


def owners(w, state, *names):
    raw = w.ok("export", state, "--tar", "-").out
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        return {m.name.rstrip("/"): (m.uid, m.gid) for m in tar if m.name.rstrip("/") in names}


ONE_ID = r"""
import os, stat, struct
def fails(error, call, *args):
    try:
        call(*args)
    except OSError as e:
        assert e.errno == error, (e, args)
    else:
        raise AssertionError(args)
os.mkdir("/z"); os.chdir("/z")
for name in ("a", "b", "c", "suid", "gone", "cap"):
    open(name, "w").close()
os.symlink("/z/a", "to-a")
os.chown("a", 1, 2)
os.chown("/z/to-a", 3, -1)                                  # through the link, the group stays
os.chown("to-a", 7, 8, follow_symlinks=False)               # the link itself
here = os.open("/z", os.O_RDONLY)
os.chown("b", 4, 5, dir_fd=here)
file = os.open("c", os.O_RDWR)
os.fchown(file, 6, 6)
os.unlink("gone"); fails(2, os.chown, "gone", 1, 1)
fails(20, os.chown, "a/b", 1, 1)
fails(9, os.fchown, 999, 1, 1)
os.chmod("suid", 0o6755); os.chown("suid", 9, 9)
assert stat.S_IMODE(os.stat("suid").st_mode) == 0o755, oct(os.stat("suid").st_mode)
open("/tmp/t", "w").close(); os.chown("/tmp/t", 1, 1)
os.setxattr("cap", "security.capability", struct.pack("<5I", 0x02000000, 1 << 10, 0, 0, 0))
os.chown("cap", 13, 13); fails(61, os.getxattr, "cap", "security.capability")
os.chown("/dev/stdout", 1, 1)
for n, name in enumerate(("/dev/fd/%d", "/proc/self/fd/%d", "/proc/thread-self/fd/%d")):
    os.chown(name % os.open(f"by-fd-{n}", os.O_RDWR | os.O_CREAT), 14, n)
fails(2, os.chown, "/dev/fd/999", 1, 1)
for call in (os.setgid, os.setuid):
    call(33)
os.setgroups([33]); os.setresuid(33, 33, 33)
assert os.getuid() == 0, "nobody else to be"
os.mkdir("jail"); open("jail/in", "w").close()
pid = os.fork()
if pid == 0:
    os.chroot("/z/jail"); os.chdir("/"); os.chown("/in", 11, 12); os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
fails(1, os.setxattr, "a", "security.snapcow.owner", b"0:0")  # the run itself may not
assert os.getxattr("a", "security.snapcow.owner") == b"3:2"  # and may look
fails(1, os.setxattr, "/z", "security.snapcow.node", b"259:null")
print("fine")
"""


@live_test
def what_the_caller_may_not_read_is_not_there(w):
    """The rule for /etc/shadow and its like: absent, not empty, and named; root's clone has it."""
    top = plant(w.top / "root")
    (top / "etc/shadow").write_text("root:*:1::::::\n")
    (top / "etc/shadow").chmod(0)
    got = w.snap("run", "--json", "--root", "--allow-missing", "pids", str(top), "--", "sh", "-c",
                 "cat /etc/shadow || echo none; ls /etc")
    said = json.loads(got.out.decode())
    if os.geteuid() == 0:
        assert said["stdout"].startswith("root:*:1"), said
        return
    assert said["stdout"].split()[0] == "none" and "shadow" not in said["stdout"], said
    assert b"etc/shadow" in got.err, got


class Paused:
    """A root of old files, of which the background reads none while the gate is there."""

    def __init__(self, w):
        self.w = w
        self.top = plant(w.top / "root")
        (self.top / "data").mkdir()
        for i in range(40):
            (self.top / "data" / f"f{i}").write_text(f"file {i}\n" * 100)
        kind = subprocess.run(["stat", "-f", "-c", "%T", self.top], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
        if kind not in ("ext2/ext3", "xfs", "btrfs", "tmpfs"):
            raise Skip(f"on {kind} all files are read at once")
        time.sleep(0.05)  # a file that changed a moment ago is read at once
        self.gate = w.top / "gate"
        self.gate.write_text("0\n")
        w.env["SNAPCOW_LAZY_PAUSE"] = str(self.gate)

    def events(self, *kinds):
        lines = self.w.ok("-C", str(self.top), "--json", "events").out.decode().splitlines()
        return [e["kind"] for e in map(json.loads, lines) if e["kind"] in kinds]

    def status(self):
        return self.w.ok("-C", str(self.top), "status", "--json").json("snap.status/1")

    def held(self):
        """Files of the root that cowfsd has open."""
        pid, = self.w.daemons()
        return [at for at in map(os.readlink, Path(f"/proc/{pid}/fd").iterdir()) if at.startswith(str(self.top))]

    def wait_for(self, what):
        until = time.monotonic() + 60
        while not what():
            assert time.monotonic() < until, "it never happened"
            time.sleep(0.02)


@live_test
def nothing_reads_the_rest_of_a_root_after_a_throw_away_run(w):
    p = Paused(w)
    got = root_sh(w, "cat /data/f7; echo x > /data/f8; rm /data/f9", str(p.top))
    assert got["stdout"] == (p.top / "data/f7").read_text(), got
    assert {c["path"] for c in got["changed"]["paths"]} == {"data/f8", "data/f9"}, got
    assert p.status()["complete"], p.status()
    p.wait_for(lambda: p.events("capture-dropped", "captured"))
    assert p.events("capture-dropped", "captured") == ["capture-dropped"]
    p.wait_for(lambda: not p.held())
    # Its automatic snapshot promised what nobody has: it is gone, and others do not wait.
    assert not w.ok("-C", str(p.top), "-q", "log", "--all").out
    w.ok("gc", timeout=60)
    w.ok("check")
    # The next one, and one whose caller was killed, are no different.
    assert root_sh(w, "cat /data/f7", str(p.top))["stdout"] == got["stdout"]
    process = start(w, "--root", "--allow-missing", "pids", str(p.top), "--", "sh", "-c", "echo ready; cat", stdin=subprocess.PIPE)
    assert line_of(process) == b"ready\n"
    assert not p.status()["complete"], p.status()
    process.kill()
    process.wait()
    p.wait_for(lambda: p.status()["complete"] and not p.held())
    # A daemon that died leaves none, either.
    process = start(w, "--root", "--allow-missing", "pids", str(p.top), "--", "sh", "-c", "echo ready; cat", stdin=subprocess.PIPE)
    assert line_of(process) == b"ready\n"
    w.kill_daemon()
    process.kill()
    process.wait()
    w.snap("list")
    p.wait_for(lambda: p.status()["complete"] and not p.held())
    assert not w.ok("-C", str(p.top), "-q", "log", "--all").out
    w.ok("check")


@live_test
def a_capture_that_nobody_needs_ends_beside_a_clone_that_gets_stuck(w):
    fifo = w.top / "stay"
    w.env["SNAPCOW_STAY_PAUSE"] = str(fifo)
    p = Paused(w)
    kept = root_sh(w, "echo x > /new", str(p.top), "--keep")["clone"]
    base = w.ok("-C", str(p.top), "status", kept, "--json").json("snap.status/1")["base"]
    os.mkfifo(fifo)
    stuck = subprocess.Popen([SNAP, "-C", str(p.top), "-q", "clone", "-n", "stuck", "--from", base], env=w.env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    gate = os.open(fifo, os.O_WRONLY)  # opens when it is there
    try:
        fifo.unlink()
        p.gate.unlink()
        p.wait_for(lambda: "(capturing 99 %)" in w.ok("-C", str(p.top), "list").out.decode())
        w.ok("-C", str(p.top), "rm", "--force", kept, timeout=60)
        p.wait_for(lambda: p.events("capture-dropped") and not p.held())
        assert stuck.poll() is None
    finally:
        os.close(gate)
    stuck.wait(60)
    assert p.events("capture-dropped", "captured") == ["capture-dropped"]
    w.ok("check")


@live_test
def a_replay_of_a_throw_away_run_needs_the_state_it_began_with(w):
    """What was promised goes with the clone, and nothing can begin there again; what was read stays."""
    p = Paused(w)
    root_run(w, str(p.top), "--", "sh", "-c", "cat '/data/f7'; echo x > /data/f8")
    gone, = [r["run"] for r in w.ok("runs", "--all", "--json").json("snap.runs/1")["runs"]]
    again = w.snap("replay", gone).fails(4, f"the state that run {gone} began with was removed with its throw-away clone:"
                                            " run its command again, with '--keep' so that you can replay it")
    # The line that it gives does just that.
    hint, = [line[len("hint: "):] for line in again.err.decode().splitlines() if line.startswith("hint: ")]
    words = shlex.split(hint)
    at = words.index("run")
    assert words[at:] == ["run", "--root", "--keep", str(p.top), "--", "sh", "-c", "cat '/data/f7'; echo x > /data/f8"], hint
    kept = w.ok("--json", *words[at:at + 3], "--allow-missing", "pids", *words[at + 3:]).json("snap.run/1")
    got = w.snap("replay", "--json", kept["run"], timeout=60).ends(0).json("snap.replay/1")
    assert got["same"] and got["of"] == kept["run"], got
    # A root that was read before the run ended is a state like any other.
    w.ok("-C", str(p.top), "rm", "--force", kept["clone"])
    p.gate.unlink()
    w.ok("-C", str(p.top), "snapshot")
    whole = root_sh(w, "cat /data/f7; echo x > /data/f8", str(p.top))
    assert w.snap("replay", "--json", whole["run"]).ends(0).json("snap.replay/1")["same"]


@live_test
def a_capture_goes_on_while_somebody_needs_it(w):
    """A clone that was kept, and one that was made of the same snapshot."""
    p = Paused(w)
    kept = root_sh(w, "echo x > /new", str(p.top), "--keep")["clone"]
    assert not p.status()["complete"]
    root_sh(w, "cat /data/f7 > /data/copy", kept)
    base = w.ok("-C", str(p.top), "status", kept, "--json").json("snap.status/1")["base"]
    root_sh(w, "true", base)
    assert not p.status()["complete"], "the clone that was kept has it"
    w.ok("-C", str(p.top), "clone", "-n", "other", "--from", base)
    w.ok("-C", str(p.top), "rm", "--force", kept)
    assert not p.status()["complete"] and not p.events("capture-dropped"), "the other clone has it"
    there = Path(w.ok("-C", str(p.top), "status", "other", "--json").json("snap.status/1")["path"])
    assert (there / "data/f9").read_bytes() == (p.top / "data/f9").read_bytes()
    w.ok("-C", str(p.top), "rm", "--force", "other")
    assert p.status()["complete"]
    p.wait_for(lambda: p.events("capture-dropped") and not p.held())
    kept = root_sh(w, "echo x > /new", str(p.top), "--keep")["clone"]
    p.gate.unlink()
    w.ok("gc")
    assert p.events("capture-dropped", "captured") == ["capture-dropped", "captured"]
    # With all captured, a run leaves what the next capture is quick by.
    root_sh(w, "true", str(p.top))
    w.ok("-C", str(p.top), "rm", "--force", kept)
    assert len(w.ok("-C", str(p.top), "-q", "log", "--all").out.split()) == 1
    w.ok("check")


@live_test
def owners_are_recorded_where_there_is_one_id(w):
    """All ways to say chown; and what cannot be done is said to be, so that programs go on."""
    if ids() != "one":
        raise Skip("this run has ids to give files to")
    python = "/usr/bin/python3"
    if not Path(python).exists():
        raise Skip("no /usr/bin/python3")
    top = plant(w.top / "root", python)
    version = os.path.realpath(python).rsplit("python", 1)[1]
    for lib in (f"usr/lib/python{version}",):
        shutil.copytree(f"/{lib}", top / lib, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "test", "idlelib", "dist-packages"))
    (top / "ids.py").write_text(ONE_ID)
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    got = root_run(w, "box", "--", "/bin/python3", "-I", "-B", "/ids.py", "--")
    assert got["stdout"] == "fine\n" and got["isolation"]["ids"] == "one", got
    want = {"z/a": (3, 2), "z/to-a": (7, 8), "z/b": (4, 5), "z/c": (6, 6), "z/suid": (9, 9), "z/jail/in": (11, 12),
            "z/cap": (13, 13), "z/by-fd-0": (14, 0), "z/by-fd-1": (14, 1), "z/by-fd-2": (14, 2)}
    assert owners(w, "box", *want) == want, owners(w, "box", *want)
    # Refused calls are counted, and these are none.
    assert got["refusals"] == [] and not got["isolation"]["owners_lost"], got


def clerk_of(pid):
    """The child of a run's caller that is in no pid namespace of the run's: it records owners."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [int(c) for c in children if len(fields(Path(f"/proc/{c}/status").read_text())["NSpid"].split()) ==
             len(fields(Path(f"/proc/{pid}/status").read_text())["NSpid"].split())]
    assert len(found) == 1, (children, found)
    return found[0]


@live_test
def owners_are_recorded_after_ctrl_c_and_a_loss_is_told(w):
    if ids() != "one":
        raise Skip("this run has ids to give files to")
    w.ok("-q", "init", str(plant(w.top / "root")))
    w.ok("-q", "-C", str(w.top / "root"), "clone", "-n", "box")
    for name, lost in (("f", False), ("g", True)):
        process = start(w, "--root", "--allow-missing", "pids", "box", "--", "sh", "-c",
                        f"trap '' INT; touch /{name}; echo ready; read x; chown 33:33 /{name}; echo $?",
                        stdin=subprocess.PIPE, start_new_session=True)
        assert line_of(process) == b"ready\n"
        if lost:
            os.kill(clerk_of(process.pid), signal.SIGKILL)
        else:
            os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(b"go\n", timeout=60)
        assert out == b"0\n" and (b"not all owners of files are recorded" in err) == lost, (out, err)
        assert owners(w, "box", name) == {name: (0, 0) if lost else (33, 33)}, owners(w, "box", name)
        record = w.ok("runs", "box", "--json").json("snap.runs/1")["runs"][0]
        assert record["isolation"]["owners_lost"] == lost, record


@live_test
def owners_are_what_the_run_says(w):
    top = plant(w.top / "root")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    root_sh(w, "touch /f; chown 33:33 /f; mkdir /d; chown 1000:33 /d; chmod 2775 /d; touch /d/in", "box")
    got = root_sh(w, "stat -c %u:%g:%a /f /d /d/in /home/ann", "box")["stdout"].split()
    if ids() == "one":
        # All files are shown as root's; the owners that they have stay.
        assert [g.rsplit(":", 1)[0] for g in got] == ["0:0"] * 4, got
        shown = w.ok("diff", "box", "--name-status").out.decode()
        assert "home" not in shown, shown
        # What chown said is stored, and an archive of the clone has it; so have `show` and `diff`.
        shown = w.ok("-C", str(top), "show", "box:d", "--json").json("snap.show/1")
        assert [(e["name"], e["uid"], e["gid"]) for e in shown["entries"]] == [("in", 0, 33)], shown
        root_sh(w, "chown 33:33 /etc/group", "box")
        assert "etc/group: owner" in w.ok("-C", str(top), "diff", "box", "--", "etc").out.decode()
        assert owners(w, "box", "f", "d", "d/in") == {"f": (33, 33), "d": (1000, 33), "d/in": (0, 33)}
        return
    assert got == ["33:33:644", "1000:33:2775", "0:33:644", "1000:1000:755"] \
        or os.geteuid() != 0 and got[:3] == ["33:33:644", "1000:33:2775", "0:33:644"], got
    # As another user of the run: what it makes is its own, and root's files are closed to it.
    got = root_sh(w, "setpriv --reuid 1000 --regid 33 --groups 33,1000 sh -c"
                  " 'id -u; id -G; touch /d/mine; stat -c %u:%g /d/mine; touch /etc/no || echo closed'", "box")
    assert got["stdout"].split() == ["1000", "33", "1000", "1000:33", "closed"], got
    # Set-id programs work within.
    got = root_sh(w, "chown 33:33 /bin/id; chmod 6755 /bin/id; setpriv --reuid 1000 --regid 1000 --clear-groups id",
                  "box")
    assert "euid=33" in got["stdout"] and "egid=33" in got["stdout"], got
    # On the host the clone's mount shows what is stored: ids of the run, not of the host.
    if os.geteuid() == 0:
        path = Path(w.ok("status", "box", "--json").json("snap.status/1")["path"])
        st = (path / "f").stat()
        assert (st.st_uid, st.st_gid) == (33, 33), st


AS = r"""
echo $(id -u):$(id -g) $(id -G) $HOME ${USER-none}
grep CapEff: /proc/self/status; stat -c %u:%g /home/ann /etc
touch /home/ann/f && chmod 640 /home/ann/f && mkdir /home/ann/d && echo made; stat -c %u:%g:%a /home/ann/f
touch /etc/mine 2>/dev/null && echo etc; chown 0:0 /home/ann/f 2>/dev/null || echo kept
mknod /home/ann/n c 1 3 2>/dev/null || echo no node; setpriv --reuid 0 true 2>/dev/null || echo nobody else
"""


@live_test
def the_command_may_be_another_user_of_it(w):
    """Programs that refuse to be root: with one id it is that of this user, and all files are its."""
    top = plant(w.top / "root")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    # What a run as root gives away, or says that it does.
    root_sh(w, "chown 1000:1000 /home/ann", "box")
    one = ids() == "one"
    for words, user in ((("--as", "1000:1000"), "1000:1000"), (("--as", "ann"), "1000:1000")):
        got = root_sh(w, AS, *words, "box")
        out = got["stdout"].splitlines()
        assert out[0].startswith(f"{user} ") and out[0].endswith(" /tmp none"), out
        assert out[1].split()[1].strip("0") == "" and got["isolation"]["as"] == user, got
        assert out[2:4] == [user, user if one else out[3]] and out[3] != user or one, out
        assert out[4:6] == ["made", f"{user}:640"] and ("etc" in out) == one, out
        assert out[-3:] == ["kept", "no node", "nobody else"], out
        assert owners(w, "box", "home/ann/f", "home/ann/d") == {"home/ann/f": (1000, 1000), "home/ann/d": (1000, 1000)}
        root_sh(w, "rm -r /home/ann/[fd]; rm -f /etc/mine", "box")
    # Root again, it is all there; and a replay is who the run was.
    run_ = root_sh(w, "id -u", "--keep", "--as", "1000:33", str(top))
    assert run_["stdout"] == "1000\n" and w.snap("replay", "--json", run_["run"]).ends(0).json("snap.replay/1")["same"]
    for words, said in ((("--as", "0:0"), "without the option the command is root"), (("--as", "70000:1"), "no user from 1"),
                        (("--as", "1:"), "no user from 1"), (("--as", "nobody-here"), "that system has no user 'nobody-here'")):
        assert said in w.snap("-C", str(top), "run", "--root", *words, "box", "--", "true").err.decode(), words
    w.snap("run", "--as", "1:1", "--", "true").fails(2, "'--as' needs '--root'")


@live_test
def an_agent_says_who_the_command_is(w):
    if ids() == "range":
        raise Skip("no cgroup counts this user's processes here, and an agent cannot do without")
    top = plant(w.top / "root")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    with Client(w, cwd=top) as c:
        for words, user in (({"as": "ann"}, "1000"), ({"as": "1000:33"}, "1000"), ({}, "0")):
            got = c.ok("snap_run", clone="box", root=True, command=["id", "-u"], **words)
            assert (got["exit_code"], got["output"]) == (0, f"{user}\n"), got
        for words, said in (({"as": "nobody-here", "root": True}, "that system has no user 'nobody-here'"),
                            ({"as": "ann"}, "'--as' needs '--root'")):
            c.fails("snap_run", said, clone="box", command="true", **words)


NODES = r"""
m() { mknod "$@" 2>/dev/null; echo "$? $*"; }
mkdir -p /n/real /jail/d; ln -s real /n/link; cd /n
mkfifo pipe && { echo through > pipe & cat pipe; }
mknod other p && stat -c '%F %n' other
m null c 1 3; m /n/zero c 1 5; m link/full c 1 7; m ./random c 1 8; m ../n/urandom c 1 9; m tty c 5 0; m gone c 0 0
umask 077; m masked c 1 3; umask 022; m -m 666 open c 1 3
m null c 1 3; rm null; m null c 0 0; stat -c 'then %t:%T' null; rm null; mknod null c 1 3; m nowhere/null c 1 3; m pipe/null c 1 3; m dir/ c 1 3; m . c 1 3
chroot /jail /bin/mknod d/null c 1 3 2>/dev/null || echo no programs there
m mem c 1 1; m kmem c 1 2; m port c 1 4; m kmsg c 1 11; m fuse c 10 229; m ptmx c 5 2; m console c 5 1; m loop b 7 0; m sda b 8 0; m null-block b 1 3; m none-block b 0 0
m /tmp/null c 1 3; m /dev/null2 c 1 3; m /run/null c 1 3
for f in null zero real/full random urandom tty gone masked open; do
    stat -c '%F %t:%T %a %u:%g %n' $f
    (: < $f) 2>/dev/null && echo "READ $f"; (: > $f) 2>/dev/null && echo "WROTE $f"
done
ln null second && stat -c '%h %t:%T' second; mv second third; rm third
ls -A /n /n/real
"""


@live_test
def devices_are_names_and_nothing_else(w):
    """Harmless ones are shown and cannot be opened, by anybody; all others are refused."""
    top = plant(w.top / "root")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    got = root_sh(w, NODES, "box")
    out = got["stdout"].splitlines()
    assert out[:2] == ["through", "fifo other"], out
    for name in ("null c 1 3", "/n/zero c 1 5", "link/full c 1 7", "./random c 1 8", "../n/urandom c 1 9", "tty c 5 0",
                 "gone c 0 0", "masked c 1 3", "-m 666 open c 1 3"):
        assert f"0 {name}" in out, (name, out)
    assert out.count("1 null c 1 3") == 1 and "then 0:0" in out, out
    for name in ("nowhere/null c 1 3", "pipe/null c 1 3", "dir/ c 1 3", ". c 1 3", "mem c 1 1", "kmem c 1 2", "port c 1 4",
                 "kmsg c 1 11", "fuse c 10 229", "ptmx c 5 2", "console c 5 1", "loop b 7 0", "sda b 8 0", "null-block b 1 3",
                 "none-block b 0 0", "/tmp/null c 1 3", "/dev/null2 c 1 3", "/run/null c 1 3"):
        assert f"1 {name}" in out, (name, out)
    kind = "character special file"
    for line in ("1:3 644 0:0 null", "1:5 644 0:0 zero", "1:7 644 0:0 real/full", "1:8 644 0:0 random", "1:9 644 0:0 urandom",
                 "5:0 644 0:0 tty", "0:0 644 0:0 gone", "1:3 600 0:0 masked", "1:3 666 0:0 open"):
        assert f"{kind} {line}" in out, (line, out)
    assert not [line for line in out if line.startswith(("READ", "WROTE"))], out
    assert "2 1:3" in out and {"full", "real", "link"} <= set(out) and not {"mem", "sda", "kmsg", "third"} & set(out), out
    # It lists what was refused, and not what was made.
    calls = [r for r in got["refusals"] if "mknod" in str(r)]
    assert calls and len(got["refusals"]) == len(calls), got["refusals"]
    # The next run, the clone's mount on the host, and an archive show the same; nobody opens it.
    again = root_sh(w, "stat -c %t:%T /n/null /n/tty; (: < /n/null) 2>/dev/null || echo closed", "box")
    assert again["stdout"].split() == ["1:3", "5:0", "closed"], again
    path = Path(w.ok("-C", str(top), "status", "box", "--json").json("snap.status/1")["path"])
    assert os.lstat(path / "n/null").st_rdev == os.makedev(1, 3)
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            os.close(os.open(path / "n/open", flags))
            raise AssertionError("a device of the run can be opened on the host")
        except PermissionError:
            pass
    with tarfile.open(fileobj=io.BytesIO(w.ok("export", "box", "--tar", "-").out)) as tar:
        nodes = {m.name: (m.devmajor, m.devminor) for m in tar if m.ischr() or m.isblk()}
    assert nodes["n/null"] == (1, 3) and nodes["n/tty"] == (5, 0) and nodes["n/gone"] == (0, 0), nodes
    assert set(nodes) == {"n/null", "n/zero", "n/real/full", "n/random", "n/urandom", "n/tty", "n/gone", "n/masked", "n/open"}, nodes
    if os.geteuid() == 0:
        got = w.snap("-C", str(top), "promote", "--root", "--path", "/n", "box")
        assert got.status != 0 and not (top / "n").exists(), got
    if ids() == "one":
        return
    # Who is not root of the run, or has given up the right, gets none.
    got = root_sh(w, """mkdir -m 777 /w; cd /w
        setpriv --reuid 1000 --regid 1000 --clear-groups mknod a c 1 3; echo $?
        setpriv --bounding-set -dac_override,-fowner mknod b c 1 3; echo $?; ls /w""", "box")
    assert got["stdout"].split() == ["1", "1"], got


@live_test
def what_it_destroys_a_rollback_brings_back(w):
    top = plant(w.top / "root")
    before = listing(top)
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    got = root_sh(w, "rm -rf --no-preserve-root /; echo left: /*", "box")
    assert "left: /dev /proc /run /tmp" in " ".join(got["stdout"].split()), got
    assert listing(top) == before
    root_run(w, "box", "--", "sh", "-c", "true", status=127)
    w.ok("rollback", "box", got["before"], "--yes")
    assert root_sh(w, "echo back", "box")["stdout"] == "back\n"
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


@live_test
def it_begins_and_ends_before_the_root_is_read(w):
    top = plant(w.top / "root")
    if subprocess.run(["stat", "-f", "-c", "%T", top], stdout=subprocess.PIPE, check=True).stdout.decode().strip() \
            not in ("ext2/ext3", "xfs", "btrfs", "tmpfs"):
        raise Skip("on this file system all files are read at once")
    time.sleep(0.1)  # a file that changed a moment ago is read at once
    before = listing(top)
    gate = w.top / "gate"
    gate.write_text("0\n")
    w.env["SNAPCOW_LAZY_PAUSE"] = str(gate)
    w.snap("stop", "--force")  # one that does not know of it
    got = root_sh(w, "grep -c . /etc/group; echo x > /etc/new; rm /etc/passwd", str(top))
    assert got["stdout"] == "3\n", got
    assert {(c["status"], c["path"]) for c in got["changed"]["paths"]} == {("A", "etc/new"), ("D", "etc/passwd")}, got
    w.ok("-q", "-C", str(top), "clone", "--lazy", "-n", "box")
    root_sh(w, "echo one > /etc/one; grep ann /etc/passwd", "box")
    got = root_sh(w, "cat /etc/one; echo two > /etc/one", "box")
    assert got["stdout"] == "one\n" and got["changed"]["modified"] == 1 and got["changed"]["added"] == 0, got
    assert not w.ok("status", "--json", "box").json("snap.status/1")["complete"]
    gate.unlink()
    w.ok("gc")
    w.ok("rollback", "box", got["before"], "--yes")
    assert root_sh(w, "cat /etc/one; grep -c . /etc/passwd", "box")["stdout"] == "one\n2\n"
    assert listing(top) == before
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


@live_test
def several_runs_share_a_clone_and_a_snapshot_sees_it(w):
    top = plant(w.top / "root")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    root_sh(w, "echo one > /srv-file", "box")
    snapshot = w.ok("snapshot", "box", "--json").json("snap.snapshot/1")["snapshot"]
    root_sh(w, "echo two > /srv-file; mkfifo /var/fifo", "box")
    assert w.ok("show", f"{snapshot}:srv-file").out == b"one\n"
    assert root_sh(w, "cat /srv-file; test -p /var/fifo && echo fifo", "box")["stdout"] == "two\nfifo\n"
    # Another state makes a throw-away clone of it.
    assert root_sh(w, "cat /srv-file", snapshot)["stdout"] == "one\n"
    assert clones(w) == ["box"]
    # The same clone without --root is a project like any other.
    assert run(w, "box", "--", "sh", "-c", "id -u; test -e srv-file && echo here")["stdout"] == \
        f"{os.geteuid()}\nhere\n"


# How each ends in a root of its own, and not as in an ordinary run.
# Capabilities of files are those of its own user namespace; an empty directory is open to its root.
WITHIN = {"chroot": {0}, "shadow": {ENOENT}, "setid_openat2": {0}, "xattr_caps": {0, EPERM}, "pressure": {ENOENT}}
# Covered by an empty file, which root of the run can open.
EMPTY = ("kallsyms", "kmsg", "keys", "timer_list", "interrupts", "slabinfo")


@live_test
def it_reaches_no_more_than_an_ordinary_run(w):
    """All attempts of the sandbox suite, with the same ends but for what its own root gives it."""
    top = plant(w.top / "root", ATTEMPTS)
    host = SUITE.Host(SimpleNamespace(top=w.top))
    wanted = {name: codes for family in SUITE.FAMILIES.values() for name, codes in family.items()}
    for name in SUITE.SETID:
        wanted[name] = {0}
    wanted.update(WITHIN, **{f"proc_{name}": {0} for name in EMPTY})
    got = root_run(w, str(top), "--env", "ASAN_OPTIONS=detect_leaks=0", *host.options(), "--",
                   "/bin/attempts", *wanted, status=None)
    ends = SUITE.parse_attempts(got["stdout"])
    assert set(ends) == set(wanted), (set(wanted) - set(ends), got["stderr"])
    open_ = {n: ends[n] for n in wanted if ends[n] not in wanted[n]}
    assert not open_, f"not as it should be: {open_}"
    assert Path("/proc/interrupts").read_bytes()
    # As another user of that root, nothing succeeds that does not for its root.
    got = root_run(w, "--as", "1000:1000", str(top), "--env", "ASAN_OPTIONS=detect_leaks=0", *host.options(), "--",
                   "/bin/attempts", *wanted, status=None)
    ends = SUITE.parse_attempts(got["stdout"])
    assert set(ends) == set(wanted), (set(wanted) - set(ends), got["stderr"])
    open_ = [n for n in wanted if ends[n] == 0 and 0 not in wanted[n]]
    assert not open_, f"open as another user: {open_}"
    read = root_sh(w, "".join(f"wc -c < /proc/{name};" for name in EMPTY), str(top))["stdout"].split()
    assert set(read) == {"0"}, read


@live_test
def strict_hides_secrets_of_its_root_by_number(w):
    """Under any name and wherever they are moved meanwhile: other runs have mounts of their own."""
    top = plant(w.top / "root")
    for path, text in ("srv/app/.env", "secret"), ("srv/app/keys/.ssh/id", "secret"), ("srv/plain", "plain"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    os.link(top / "srv/app/.env", top / "srv/app/other")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "r")
    look = ("cd /srv; for i in 1 2 3 4 5; do for a in app*; do ls -l $a $a/keys $a/keys/.ssh;"
            " cat $a/.env $a/other $a/keys/.ssh/id; ln $a/.env linked; mv $a/.env moved; cat linked moved;"
            " done; done 2>/dev/null; cat plain")
    got = root_sh(w, "cat /srv/app/.env /srv/app/keys/.ssh/id", "r")
    assert got["stdout"] == "secretsecret", got
    strict = ("--profile", "strict", "--allow-missing", "memory", "--allow-missing", "cpu", "--allow-missing", "pids")
    got = root_run(w, "r", *strict, "--", "sh", "-c", look)
    assert "plain" in got["stdout"] and "secret" not in got["stdout"], got
    attacker = start(w, "--root", "r", *strict, "--time", "10m", "--", "sh", "-c",
                     "cd /srv; echo ready; n=0; a=app; while :; do n=$((n+1)); mv $a app$n && a=app$n; done")
    try:
        assert line_of(attacker) == b"ready\n"
        for _ in range(3):
            got = root_run(w, "r", *strict, "--", "sh", "-c", look)
            assert "plain" in got["stdout"] and "secret" not in got["stdout"], got
        assert attacker.poll() is None
    finally:
        attacker.terminate()
        attacker.communicate(timeout=60)


@live_test
def a_root_run_takes_no_secret_out_from_under_the_mask_of_another_run(w):
    """What its mount does with a directory, the kernel must learn for the other mount, whose masks would go with that."""
    top = plant(w.top / "root")
    (top / "srv/app").mkdir(parents=True)
    (top / "srv/app/.env").write_text("secret")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "r")
    strict = ("--profile", "strict", "--allow-missing", "memory", "--allow-missing", "cpu", "--allow-missing", "pids")
    look = "for i in 1 2 3 4 5 6 7 8 9 10; do cat app/.env moved/.env; sleep 0.1; done 2>/dev/null; echo end"
    control = run(w, "r", "--", "sh", "-c", f"cd srv; {look}")
    assert "secret" in control["stdout"], control
    masked = start(w, "r", *strict, "--time", "10m", "--", "sh", "-c",
                   f"cd srv; echo ready; until [ -e go ]; do sleep 0.1; done; {look}")
    try:
        assert line_of(masked) == b"ready\n"
        root_run(w, "r", *strict, "--", "sh", "-c", "cd /srv; mv app moved; touch go", status=None)
        out, err = masked.communicate(timeout=60)
        assert b"secret" not in out and b"end" in out, (out, err)
    finally:
        masked.kill()
        masked.wait()
    got = root_sh(w, "cd /srv; mv app again; cat again/.env", "r")
    assert got["stdout"] == "secret", "without such a run directories are moved"


@live_test
def a_secret_that_a_strict_run_moved_among_packages_stays_hidden(w):
    top = plant(w.top / "root")
    (top / "srv").mkdir(exist_ok=True)
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "r")
    root_sh(w, "cd /srv; mkdir app vendor; echo secret > app/.env; echo plain > app/plain", "r")
    strict = ("--profile", "strict", "--allow-missing", "memory", "--allow-missing", "cpu", "--allow-missing", "pids")
    look = "cat /srv/vendor/app/.env /srv/vendor/app/plain"
    root_run(w, "r", *strict, "--", "mv", "/srv/app", "/srv/vendor/app")
    assert root_sh(w, look, "r")["stdout"] == "secret\nplain\n", "the control"
    got = root_run(w, "r", *strict, "--", "sh", "-c", look, status=1)
    assert got["stdout"] == "plain\n", got


@live_test
def what_does_not_go_with_it_is_refused(w):
    top = plant(w.top / "root")
    for words, said in ((("--rw", "/srv"), "exclude each other"), (("--tls-inspect", "a.org"), "exclude each other")):
        w.snap("run", "--root", str(top), *words, "--", "true").fails(2, said)
    w.snap("run", "--root", "no-such-thing", "--", "true").fails(125, "no-such-thing")
    (top / "dev").rmdir()
    (top / "dev").symlink_to("/etc")
    got = w.snap("run", "--root", "--allow-missing", "pids", str(top), "--", "true")
    got.fails(125, "'/dev' of the run is no directory to mount on")
    if ids() == "range":
        w.snap("run", "--root", str(top), "--", "true").fails(125, "--allow-missing pids")


@live_test
def it_reads_a_folder_of_the_host_and_never_the_store(w):
    top = plant(w.top / "root")
    given = w.top / "given"
    given.mkdir()
    (given / "file").write_text("of the host\n")
    got = root_sh(w, f"cat {given}/file; echo no > {given}/file; ls {w.top}", "--ro", str(given), str(top))
    assert got["stdout"] == "of the host\ngiven\n" and "Read-only" in got["stderr"], got
    w.snap("run", "--root", "--ro", str(w.store), str(top), "--", "true").fails(125, "is in the store")


@live_test
def sockets_and_stores_in_a_folder_of_the_host_are_hidden(w):
    """A program that listens there would do for the run what it does for the caller."""
    top = plant(w.top / "root")
    (w.home / "all").symlink_to(w.top)
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(w.top / "agent"))
        agent.listen()
        for given in (w.top, w.home / "all"):
            got = root_sh(w, f"cd {given} && stat -c %F agent; ls store; echo end", "--ro", str(given), str(top))
            assert got["stdout"] == "regular empty file\nend\n", (given, got)


@live_test
def what_its_profile_hides_is_hidden(w):
    top = plant(w.top / "root")
    folder = w.home / ".config/snapcow/profiles"
    folder.mkdir(parents=True)
    (folder / "h.yaml").write_text("hide: [/etc/group]\n")
    got = root_sh(w, "wc -c < /etc/group; head -c 4 /etc/passwd", "--profile", "h", str(top))
    assert got["stdout"] == "0\nroot", got


@live_test
def a_profile_can_stand_for_it(w):
    top = plant(w.top / "root")
    folder, project = w.home / ".config/snapcow/profiles", w.project / ".snap/profiles"
    for where, name, text in ((folder, "upgrade", "root: true\nhide: [/etc/group]\n"), (folder, "odd", "root: maybe\n"),
                              (folder, "less", "extends: upgrade\nroot: false\n"),
                              (folder, "more", "extends: upgrade\ntime: 1m\n"),
                              (project, "mine", "root: true\n"), (project, "inner", "extends: upgrade\n")):
        where.mkdir(parents=True, exist_ok=True)
        (where / f"{name}.yaml").write_text(text)
    for name, *words in (("upgrade",), ("more",), ("inner", "--root")):
        got = run(w, *words, "--profile", name, "--allow-missing", "pids", str(top), "--", "sh", "-c",
                  "id -u; wc -c < /etc/group")
        assert got["root"] and got["stdout"] == "0\n0\n", (name, got)
    # A file of the project does not decide that a run has a whole machine.
    w.snap("run", "--profile", "inner", "--", "true").fails(2, "'inner' is for runs in a whole root", "add '--root'")
    got = run(w, "--profile", "less", "--", "sh", "-c", "pwd")
    assert not got["root"] and got["stdout"] == f"{w.project}\n", got
    w.snap("run", "--profile", "odd", "--", "true").fails(2, "odd.yaml:1:7: 'root' is 'maybe', expected true or false")
    w.snap("run", "--profile", "mine", "--", "true").fails(125, "asks for a whole machine", "may only narrow")
    w.ok("-q", "clone", "-n", "box")
    (Path(w.ok("status", "box", "--json").json("snap.status/1")["path"]) / "new").touch()
    w.snap("promote", "--check", "true", "--profile", "upgrade", "box").fails(2, "'upgrade'", "'--root'")
    assert w.ok("profile", "show", "more", "--json").json("snap.profile/1")["profile"]["root"] is True
    assert "root        true" in w.ok("profile", "show", "more").out.decode()


def pack(entry):
    entry.uid = 33 if entry.name == "./home/ann" else 0
    entry.gid = 0
    return entry


@live_test
def an_image_is_a_root_with_the_owners_that_it_was_packed_with(w):
    top = plant(w.top / "root")
    with tarfile.open(w.top / "root.tar", "w") as tar:
        tar.add(top, ".", filter=pack)
    w.ok("import", "-n", "small", str(w.top / "root.tar"))
    got = root_sh(w, "stat -c %u /home/ann /etc /bin/sh", "small")["stdout"].split()
    assert got == ["0" if ids() == "one" else "33", "0", "0"], got
    assert clones(w) == []


def plant_machine(w):
    """A machine of our own: a mount namespace whose root is a small one, and snap in it."""
    if os.geteuid() != 0:
        raise Skip("only root makes a machine to try it on")
    top = plant(w.top / "machine", SNAP, *(shutil.which(p) for p in ("mount", "umount", "rmdir")))
    for name in ("old", "sys", "mnt", "var/store", "root/.ssh"):
        (top / name).mkdir(parents=True)
    return top


def on_machine(top, inside):
    inside = f"""
        snap() {{ /bin/snapcow --store /var/store "$@"; }}
        umount -l /old; rmdir /old
        r() {{ snap run --allow-missing pids --root "$@"; }}
        {inside}
        snap stop --force"""
    script = f"""
        mount --make-rprivate / && mount --bind {top} {top} && cd {top} && mount --rbind /proc proc &&
        mount --rbind /dev dev && pivot_root . old && exec chroot . env -i PATH=/bin LC_ALL=C.UTF-8 ASAN_OPTIONS=detect_leaks=0 sh -c '{
        inside.replace("'", "'" + chr(34) + "'" + chr(34) + "'")}'"""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, timeout=120, check=False)
    return done.stdout.decode(), done.stderr.decode()


@live_test
def the_machine_itself_is_cloned_without_what_is_mounted(w):
    top = plant_machine(w)
    (top / "root/.ssh/key").write_text("secret\n")
    (top / "etc/motd").write_text("hello\n")
    (top / "etc/shadow").write_text("root:*:1::::::\n")
    (top / "etc/shadow").chmod(0o600)
    inside = """
        mount -t tmpfs none /mnt; touch /mnt/other
        all() { find / -xdev \( -path /var/store -o -path /proc \) -prune -o -printf '%p %i %s %T@ %C@ %U:%G %m %n %l\n'; }
        snap clone --root -n m && r m -- sh -c 'ls /; cat /etc/motd; echo changed > /etc/motd; cat /etc/shadow; stat -c "home %F %a %u" $HOME; ls -A $HOME' &&
        before=$(all); r -- sh -c 'rm -rf --no-preserve-root / 2> /dev/null; ls /usr /etc'; after=$(all); test "$before" = "$after" && echo untouched || echo "$after" | grep -vxF "$before" >&2
        r -- sh -c 'cat /etc/motd; ls /var /mnt; rm -rf --no-preserve-root /etc; ls /etc'
        cat /etc/motd; ls /mnt
        snap clone --root --include-mount /mnt/ -n with --json; r with -- sh -c 'cat /etc/motd; ls /mnt' > /dev/null && echo lazily
        r with -- sh -c 'ls /mnt'; snap clone --root --include-mount /etc -n no; echo "include $?"
        snap promote m; echo "promote $?"; snap -q snapshot; touch /etc/x;
        snap rollback --yes; echo "rollback $?"; snap promote m --path etc/motd --to /var/lib; echo "to $?"; cat /var/lib/motd"""
    out, err = on_machine(top, inside)
    assert "left out of '/': '/proc', '/sys', '/dev', '/run', '/tmp', '/home', '/root', '/mnt'" in err, (out, err)
    lines = out.splitlines()
    assert lines[0] == "/var/store/clones/m" and lines.count("hello") == 3, (out, err)
    assert "mnt" not in lines[1:lines.index("hello")] and "old" not in lines, lines
    assert lines.count("other") == 2, "what is mounted there is not in the clone, still there, and in the one that asked"
    said = next(json.loads(line) for line in lines if line.startswith("{"))
    assert said["left_out"] == ["/proc", "/sys", "/dev", "/run", "/tmp", "/home", "/root"], said
    assert "untouched" in lines, (out, err)
    assert "lazily" in lines and "include 2" in lines and "'/etc' is no mount" in err, (out, err)
    assert {"promote 7", "rollback 7", "to 0", "changed"} <= set(lines), (out, err)
    # Root's clone has what root may read, /etc/shadow too; homes are empty, and HOME is there.
    assert "root:*:1::::::" in lines and "home directory 700 0" in lines, (out, err)
    assert "secret" not in out and (top / "etc/motd").read_text() == "hello\n", out


@live_test
def the_machine_takes_what_root_names_and_gives_it_back(w):
    top = plant_machine(w)
    (top / "etc/motd").write_text("hello\n")
    out, err = on_machine(top, """
        snap clone --root -n m
        r m -- sh -c 'echo changed > /etc/motd; mkdir /etc/app; echo x > /etc/app/x; ln -s /etc/motd /etc/app/link; touch /home/y; rm /etc/group; echo mine > /srv-file'
        p() { snap promote m "$@"; echo "$1 ${2-} ${3-} $?"; }
        p; p --root; p --root --path /; p --root --path /home/y; p --root --path /var/store/x; p --root --path /etc/group
        p -n --root --path /etc/motd --path /etc/app; cat /etc/motd; ls /etc/app
        p --root --path /etc/motd --path etc/app; cat /etc/motd /etc/app/link; ls -a / /etc/app; grep -c . /etc/group
        echo later > /etc/later; cd /etc; snap undo; echo "plain $?"; snap undo -n; echo "plain $?"; cat /etc/motd
        cd /var; snap undo --root; echo "undo $?"; cat /etc/motd /etc/later; ls /etc/app
        snap undo --root; echo "none $?"
        r m -- sh -c 'l() { ln -s $1 /etc/bad-$2; }; l /tmp/a tmp; l /home/a home; l /run/a run; l /var/tmp/a var-tmp; l /var/store/a store; l /proc/1/environ proc; l /var/way/a way; mkdir -p /var/tmp; chmod 1777 /var/tmp; ln -s /run /var/way; l ../tmp/x up'
        for l in tmp home run var-tmp store proc way up; do snap promote m --root --path /var/tmp --path /var/way --allow /var --path /etc/bad-$l > /dev/null; echo "$l $?"; ls /etc; done""")
    lines = out.splitlines()
    for line in ("   7", "--root   2", "--root --path / 2", "--root --path /home/y 2", "--root --path /var/store/x 2",
                 "--root --path /etc/group 7", "-n --root --path 0", "--root --path /etc/motd 0", "undo 0"):
        assert line in lines, (line, out, err)
    assert "'accounts': it says who may log in" in err, (out, err)
    assert lines.count("plain 7") == 2 and "none 4" in lines and "'undo --root'" in err, (out, err)
    for name in ("tmp", "home", "run", "var-tmp", "store", "proc", "way", "up"):
        assert f"{name} 7" in lines and f"bad-{name}" not in lines and f"etc/bad-{name}" in err, (name, out, err)
    assert lines.count("changed") == 3 and lines.count("hello") == 2 and "later" in lines, (out, err)
    after = lines[lines.index("--root --path /etc/motd 0"):lines.index("undo 0")]
    assert {"link", "x", "3"} <= set(after), after
    # What was not named stays, and nothing of the way there does.
    assert "srv-file" not in lines and not [line for line in after if line.startswith(".snap")], after
    assert not (top / "etc/app").exists() and (top / "etc/later").read_text() == "later\n"


@live_test
def named_paths_of_a_root_are_promoted_by_root_alone(w):
    top = plant(w.top / "root")
    (top / "etc/app").mkdir()
    (top / "etc/app/a").write_text("one\n")
    (top / "etc/motd").write_text("hello\n")
    before = listing(top)
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    root_sh(w, """echo two > /etc/app/a; echo new > '/etc/app/b*'; echo no > /etc/app/bc; echo bye > /etc/motd
                  echo x:x:1:1::: >> /etc/passwd; echo s > /etc/ld.so.preload; ln -s /etc/app/a /etc/link""", "box")
    named = ["--path", "/etc/app/b*", "--path", "etc/app/a", "--path", "/etc/motd/"]

    def promote(*words):
        return w.snap("-C", str(top), "promote", "--root", *words, "box")

    promote().fails(2, "'--path'")
    promote("--path", "/etc/motd", "--to", "/srv").fails(2, "exclude each other")
    if os.geteuid() != 0:
        promote(*named).fails(7, "only root")
        assert listing(top) == before
        return
    promote("--path", "/etc/../").fails(2, "is all of it")
    promote("--path", "/etc/passwd").fails(7, "accounts", "promote --rules --root")
    promote("--path", "/etc/ld.so.preload").fails(7, "loader")
    promote("--path", "/etc/link").fails(7, "link")
    # Without --root it is a project like any other, and its rules are those of projects.
    assert w.ok("-C", str(top), "promote", "-n", "--json", "--path", "/etc/passwd", "box").json("snap.promote/1")
    plan = promote(*named, "--dry-run", "--json").ends(0).json("snap.promote/1")
    assert {p["path"] for p in plan["changed"]} == {"etc/app/a", "etc/app/b*", "etc/motd"}, plan
    assert listing(top) == before
    (top / "etc/group").write_text("root:x:0:\n")
    promote(*named, "--plan", plan["plan"], "--check", "grep -q two /etc/app/a").ends(0)
    assert (top / "etc/motd").read_text() == "bye\n" and (top / "etc/app/b*").read_text() == "new\n"
    assert not (top / "etc/app/bc").exists() and (top / "etc/group").read_text() == "root:x:0:\n"
    promote("--path", "/etc/passwd", "--allow", "/etc/passwd").ends(0)
    assert "x:x:1:1" in (top / "etc/passwd").read_text()
    w.ok("-C", str(top), "undo")
    w.ok("-C", str(top), "undo")

    def same(seen):
        return {k: v[:5] + v[6:] for k, v in seen.items() if k != "etc/group"}
    assert same(listing(top)) == same(before)
    (top / "etc/motd").write_text("edited since\n")
    promote(*named).fails(5, "etc/motd")
    assert (top / "etc/motd").read_text() == "edited since\n" and (top / "etc/app/a").read_text() == "one\n"
    rules = w.ok("promote", "--rules", "--root").out.decode()
    assert "accounts" in rules and "accounts" not in w.ok("promote", "--rules").out.decode()


CAPABILITY = struct.pack("<5I", 0x02000000, 1 << 10, 0, 0, 0)  # net_bind_service


def plant_app(w):
    """A root, a clone of it where the host can write, and what promotes names of it."""
    top = plant(w.top / "root")
    app = top / "etc/app"
    for name in ("etc/app/dir", "etc/app/was", "mnt", "data"):
        (top / name).mkdir(parents=True)
    for name in ("a", "file", "fixed", "theirs", "dir/x", "was/x"):
        (app / name).write_text("one\n")
    os.link(app / "a", top / "etc/b")
    os.setxattr(app / "theirs", "user.note", b"hey")
    os.chown(app / "theirs", 33, 33)
    for i in range(3):
        (top / "data" / f"f{i}").write_text("one\n")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    box = Path(w.ok("-C", str(top), "status", "box", "--json").json("snap.status/1")["path"])

    def promote(*names, more=()):
        words = [word for name in names for word in ("--path", name)]
        return w.snap("-C", str(top), "promote", "--root", *words, *more, "box")
    return top, box, promote


@live_test
def what_is_named_reaches_a_root_whole_or_not_at_all(w):
    """Second names, types that change, links and mounts in the way, rights of files, files that cannot be replaced."""
    if os.geteuid() != 0:
        raise Skip("only root promotes to a root")
    top, box, promote = plant_app(w)
    app, theirs = top / "etc/app", box / "etc/app"
    # A second name that was not named is not changed behind its owner's back.
    (theirs / "a").write_text("two\n")
    promote("/etc/app/a").fails(7, "etc/b", "left-out")
    # A directory that became a file, with a file in it since that only the host has; and the other way round.
    shutil.rmtree(theirs / "dir")
    (theirs / "dir").write_text("a file now\n")
    (app / "dir/mine").write_text("mine\n")
    promote("/etc/app/dir").fails(5, "etc/app/dir")
    assert (app / "dir/mine").read_text() == "mine\n" and (app / "dir/x").exists()
    # A directory that became a link on the host leads nowhere.
    outside = w.top / "outside"
    outside.mkdir()
    (outside / "x").write_text("outside\n")
    shutil.rmtree(app / "was")
    (app / "was").symlink_to(outside)
    (theirs / "was/x").write_text("two\n")
    (theirs / "was/y").write_text("two\n")
    for name in ("/etc/app/was", "/etc/app/was/x", "/etc/app/was/y", "/etc/nothing/../app/was/y"):
        promote(name).ends(5)
    assert [p.name for p in outside.iterdir()] == ["x"] and (outside / "x").read_text() == "outside\n"
    # What is mounted there is not written to, and nothing below it either.
    subprocess.run(["mount", "-t", "tmpfs", "none", top / "mnt"], check=True)
    try:
        (box / "mnt/new").write_text("new\n")
        promote("/mnt/new").fails(1, "another file system")
        assert not list((top / "mnt").iterdir())
    finally:
        subprocess.run(["umount", top / "mnt"], check=True)
    assert not list((top / "mnt").iterdir())
    # Rights that come with a file are held; its owner and attributes stay.
    os.setxattr(theirs / "file", "security.capability", CAPABILITY)
    promote("/etc/app/file").fails(7, "capabilities")
    (theirs / "set-id").write_text("x")
    (theirs / "set-id").chmod(0o4755)
    promote("/etc/app/set-id").fails(7, "set-id")
    (theirs / "theirs").write_text("two\n")
    promote("/etc/app/theirs").ends(0)
    assert (app / "theirs").stat().st_uid == 33 and os.getxattr(app / "theirs", "user.note") == b"hey"
    # An edit since is a conflict of the undo; what was deleted with others in its directory comes back.
    (app / "theirs").write_text("edited\n")
    w.snap("-C", str(top), "undo").fails(5, "etc/app/theirs")
    assert (app / "theirs").read_text() == "edited\n"
    shutil.rmtree(box / "data")
    (top / "data/mine").write_text("mine\n")
    promote("/data").ends(0)
    assert [p.name for p in (top / "data").iterdir()] == ["mine"]
    w.ok("-C", str(top), "undo")
    assert sorted(p.name for p in (top / "data").iterdir()) == ["f0", "f1", "f2", "mine"]
    # One that cannot be replaced takes the others with it, and leaves nothing behind.
    if subprocess.run(["chattr", "+i", app / "fixed"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        return
    try:
        before = listing(top)
        for name in ("fixed", "new", "zzz"):
            (theirs / name).write_text("two\n")
        promote("/etc/app/new", "/etc/app/fixed", "/etc/app/zzz").fails(1, "etc/app/fixed")
        assert (app / "fixed").read_text() == "one\n" and set(listing(top)) == set(before)
    finally:
        subprocess.run(["chattr", "-i", app / "fixed"], check=True)
    promote("/etc/app/new", "/etc/app/fixed", "/etc/app/zzz").ends(0)
    assert (app / "fixed").read_text() == "two\n"
    # --continue knows that it is a root, and what was named.
    (theirs / "fixed").write_text("three\n")
    (app / "fixed").write_text("mine\n")
    (box / "etc/passwd").write_text("evil:x:0:0:::\n")
    promote("/etc/app/fixed", "/etc/passwd").fails(5, "etc/app/fixed")
    w.ok("-C", str(top), "resolve", "box", "etc/app/fixed", "--take", "theirs")
    w.snap("-C", str(top), "promote", "--continue", "box").fails(7, "accounts")
    assert "evil" not in (top / "etc/passwd").read_text() and (app / "fixed").read_text() == "mine\n"
    w.snap("-C", str(top), "undo", "--root").fails(4, "/root undo")


@live_test
def try_takes_the_roots_that_run_takes(w):
    top = plant(w.top / "root")
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    root_sh(w, "echo one > /etc/one", "box")
    for word, text in (("box", "one\n"), (str(top), "")):
        got = w.snap("try", "--json", "--discard", "--root", "--allow-missing", "pids", word, "--", "sh", "-c",
                     "cat /etc/one 2>/dev/null; echo two > /etc/two").json("snap.try/1")
        assert got["stdout"] == text and got["root"] and "etc/two" in str(got["changed"]), got
    assert [c["clone"] for c in w.ok("list", "--all", "--json").json("snap.list/1")["clones"]] == ["box"]
    w.snap("-C", str(top), "show", "box:etc/two").fails(4)
    w.snap("try", "--discard", "box", "--", "true").fails(2, "'--root'")
    got = w.snap("try", "--json", "--keep", "--root", "--allow-missing", "pids", "box", "--", "sh", "-c",
                 "echo three > /etc/three").json("snap.try/1")
    assert w.ok("-C", str(top), "show", f"{got['clone']}:etc/one").out == b"one\n"


# An entry for user 33, who may read, as everybody may.
ACL = struct.pack("<I" + 5 * "HHI", 2, 1, 6, 0xFFFFFFFF, 2, 4, 33, 4, 4, 0xFFFFFFFF, 0x10, 4, 0xFFFFFFFF, 0x20, 4, 0xFFFFFFFF)


@live_test
def owners_and_permissions_reach_a_root_only_if_they_are_allowed(w):
    if os.geteuid() != 0:
        raise Skip("only root promotes to a root")
    top = plant(w.top / "root")
    (top / "etc/app").mkdir()
    (top / "etc/own").mkdir()
    for name in ("owner", "group", "open", "secret", "acl", "run", "fine", "theirs"):
        (top / "etc/app" / name).write_text("one\n")
        (top / "etc/app" / name).chmod(0o600 if name == "secret" else 0o644)
    os.chown(top / "etc/app/theirs", 33, 33)
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box")
    box = Path(w.ok("-C", str(top), "status", "box", "--json").json("snap.status/1")["path"]) / "etc"
    app = box / "app"
    os.chown(app / "owner", 33, 0)
    os.chown(app / "group", 0, 33)
    (app / "open").chmod(0o666)
    (app / "secret").chmod(0o644)
    os.setxattr(app / "acl", "system.posix_acl_access", ACL)
    (app / "run").chmod(0o755)
    (app / "fine").write_text("two\n")
    (app / "theirs").write_text("two\n")
    for name, mode, owner in (("new", 0o644, 0), ("new-owner", 0o644, 33), ("new-open", 0o646, 0)):
        (app / name).write_text("new\n")
        (app / name).chmod(mode)
        os.chown(app / name, owner, 0)
    (app / "new-link").symlink_to("fine")
    os.lchown(app / "new-link", 33, 33)
    os.chown(box / "own", 33, 33)
    (box / "way").mkdir()
    (box / "way").chmod(0o777)
    (box / "way/in").write_text("in\n")

    def promote(path, *words):
        return w.snap("-C", str(top), "promote", "--root", "--path", path, *words, "box")

    before = listing(top)
    for name, rule in (("app/owner", "owner"), ("app/group", "owner"), ("app/new-owner", "owner"), ("app/new-link", "owner"),
                       ("own", "owner"), ("app/open", "access"), ("app/secret", "access"), ("app/acl", "access"),
                       ("app/new-open", "access"), ("way", "access")):
        got = promote(f"/etc/{name}", "--json")
        held = {h["path"]: h["rule"] for h in got.json("snap.error/1", status=7)["error"]["data"]["held"]}
        assert held == {f"etc/{name}": rule}, (name, held)
    promote("/etc/way", "--allow", "/etc/way/in").fails(7, "access")
    promote("/etc/app/owner").fails(7, "its owner changes")
    promote("/etc/app/open").fails(7, "more people may read or write it than before")
    assert listing(top) == before
    for name in ("run", "fine", "theirs", "new"):
        promote(f"/etc/app/{name}").ends(0)
    assert (top / "etc/app/theirs").stat().st_uid == 33 and (top / "etc/app/new").stat().st_uid == 0
    promote("/etc/app/owner", "--allow", "/etc/app/owner").ends(0)
    assert (top / "etc/app/owner").stat().st_uid == 33
    rules = w.ok("promote", "--rules", "--root").out.decode()
    assert "access: more people" in rules, rules


if __name__ == "__main__":
    sys.exit(main())
