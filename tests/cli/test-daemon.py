"""cowfsd: how it is started, found, asked, stopped, and what it leaves behind."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from snaptest import SNAP, Skip, World, gone, main, needs_fuse, stop_process, test, until as wait_for  # noqa: E402

NOBODY = 65534
CRASHED = b"ended unexpectedly"


def pid_of(w):
    got = w.ok("version", "--json").json("snap.version/1")
    return got["daemon"]["pid"] if got["daemon"] else None


def run_dir(w):
    return w.store / "run"


def elsewhere(w):
    """Ways to be somebody else with the same number: in each the store's socket is to be seen."""
    places = [["unshare", "-U", "-r"], ["unshare", "-U", "-r", "-m"]]
    if os.geteuid() == 0:
        top, store = w.top / "root", w.store
        top.mkdir(exist_ok=True)
        # A root of its own that shows all of the host's; a store that is read-only.
        places += [["unshare", "-m", "sh", "-ec", f"mount -t tmpfs none {top}; cd {top}; "
                    "for d in $(ls /); do if test -L /$d; then cp -P /$d .; elif test -d /$d; then "
                    "mkdir $d; mount --rbind /$d $d; fi; done; mkdir old; pivot_root . old; "
                    "exec \"$@\"", "sh"],
                   ["unshare", "-m", "sh", "-ec", f"mount --bind -o ro {store} {store}; "
                    "exec \"$@\"", "sh"]]
    return places


@test
def a_peer_from_another_namespace_is_not_served(w):
    """In a sandbox that is shown the socket one has the same number, and is somebody else."""
    w.ok("snapshot")
    pid = pid_of(w)
    ask = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
           "print(s.makefile().readline())")
    words = [livetest.python(), "-c", ask, str(run_dir(w) / "cowfsd.sock")]
    assert "protocol" in subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode()
    for place in elsewhere(w):
        said = subprocess.run([*place, *words], stdout=subprocess.PIPE, check=True).stdout.decode()
        assert "namespace" in said and "protocol" not in said, (place, said)
        env = {**w.env, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([*place, SNAP, "snapshot"], cwd=w.project, env=env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 1 and b"sandboxes" in done.stderr, (place, done)
        # A caller that cannot even stop it reads how; that a file cannot be read is beside the point.
        assert b"'kill %d'" % pid in done.stderr and b"hint" not in done.stderr, (place, done)
    assert pid_of(w) == pid, "and it goes on for its own"


@test
def a_peer_that_sees_the_same_is_served(w):
    """`unshare -m`, or a service with a /tmp of its own: what matters is what it means by a path."""
    if os.geteuid() != 0:
        raise Skip("an ordinary user has a mount namespace only with another user namespace")
    w.ok("snapshot")
    pid = pid_of(w)
    other = w.top / "other"
    other.mkdir()

    def within(prepare, *args):
        words = ["unshare", "-m", "sh", "-ec", f"{prepare}; cd {w.project}; exec \"$@\"", "sh",
                 SNAP, *args]
        return subprocess.run(words, env=w.env, cwd="/", check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    for prepare in ("true", f"mount -t tmpfs none {other}", "mount -t tmpfs none /run"):
        (w.project / "README.md").write_text(f"seen through {prepare}\n")
        done = within(prepare, "snapshot")
        assert done.returncode == 0, (prepare, done)
    # Another directory in the project's place, in the place of a parent, or a read-only one.
    parent = w.project.parent
    for prepare in (f"mount -t tmpfs none {w.project}",
                    f"mkdir {w.top}/p; mount --bind {w.project} {w.top}/p; "
                    f"mount -t tmpfs none {parent}; mkdir {w.project}; "
                    f"mount --move {w.top}/p {w.project}",
                    f"mount --bind -o ro {w.project} {w.project}"):
        done = within(prepare, "snapshot")
        assert done.returncode == 1 and b"another directory" in done.stderr, (prepare, done)
    assert pid_of(w) == pid, "one daemon serves them all"


@test
def root_uses_no_store_of_somebody_else(w):
    """Who owns it, or may write in it, could lay out what root reads and follows."""
    if os.geteuid() != 0:
        raise Skip("only root can be led astray")
    w.ok("snapshot")
    w.ok("stop")
    # Names and sizes may be seen; what is in it is closed.
    os.chmod(w.store, 0o755)
    w.ok("log")
    w.ok("clone", "-n", "c")
    open_to_others = [p for p in w.store.iterdir() if stat.S_IMODE(p.lstat().st_mode) & 0o077]
    assert not open_to_others, open_to_others
    w.ok("rm", "c")
    w.ok("stop")
    for spoil, mend, words in (
            (lambda: os.chown(w.store, NOBODY, NOBODY), lambda: os.chown(w.store, 0, 0), "belongs to user"),
            (lambda: os.chmod(w.store, 0o777), lambda: os.chmod(w.store, 0o700), "written by others"),
            (lambda: os.chmod(w.store, 0o770), lambda: os.chmod(w.store, 0o700), "written by others")):
        spoil()
        for act in (["log"], ["snapshot"], ["status"], ["gc"], ["check"], ["list"], ["start"], ["runs"],
                    ["ps"], ["stats"], ["run", "--", "true"]):
            result = w.snap(*act)
            own = 125 if act[0] == "run" else 1
            assert result.status == own and words in result.err.decode(), str(result)
        mend()
        w.ok("log")  # the control
        w.ok("stop")
    empty = w.top / "theirs"
    empty.mkdir()
    os.chown(empty, NOBODY, NOBODY)
    result = w.snap("--store", str(empty), "snapshot")
    assert result.status == 1 and b"belongs to user" in result.err, str(result)
    assert not list(empty.iterdir()), "nothing was made there"


class Line:
    """A connection to the control socket, spoken by hand."""

    def __init__(self, w, timeout=20):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(str(run_dir(w) / "cowfsd.sock"))
        self.file = self.socket.makefile("rwb")

    def read(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def send(self, *objects):
        for o in objects:
            self.file.write(o if isinstance(o, bytes) else json.dumps(o).encode() + b"\n")
        self.file.flush()

    def greet(self, version=None):
        hello = self.read()["cowfsd"]
        self.send({"client": {"protocol": hello["protocol"],
                              "version": version or hello["version"]}})
        return hello

    def close(self):
        self.file.close()
        self.socket.close()


def question(w, verb, **options):
    return {"ask": verb, "watch": False, "dir": str(w.project), "home": None, "options": options}


@test
def directories_stay_where_they_are_for_no_longer_than_was_asked(w: World):
    """As for a client that is stopped: its connection stays open."""
    needs_fuse()
    path = livetest.clone(w, "-n", "c")
    (path / "d").mkdir()
    line = Line(w)
    line.greet()
    line.send(question(w, "hold-names", clone="c", ms=4000))
    began = time.monotonic()
    assert "root" in line.read()["answer"]
    try:
        os.rename(path / "d", path / "e")
        raise AssertionError("it was not held")
    except OSError as e:
        assert e.errno == errno.EBUSY, e
    time.sleep(max(0, began + 4 - time.monotonic()))
    os.rename(path / "d", path / "e")
    # A state alone holds nothing.
    line.send(question(w, "hold-names", clone="c", ms=0))
    assert "root" in line.read()["answer"]
    os.rename(path / "e", path / "d")
    line.close()


# --- starting -------------------------------------------------------------------------------

@test
def the_first_command_that_needs_it_starts_it_and_the_next_ones_use_it(w: World):
    assert pid_of(w) is None
    w.ok("log")
    w.snap("gc").fails(4)
    assert w.daemons() == [], "who only looks, or finds no store, starts none"
    w.take()
    pid = pid_of(w)
    assert w.daemons() == [pid]
    w.take()
    w.ok("check")
    w.ok("gc")
    assert pid_of(w) == pid and w.daemons() == [pid]


@test
def of_many_commands_at_once_one_starts_it_and_all_of_them_work(w: World):
    running = [subprocess.Popen([SNAP, "-q", "snapshot"], cwd=w.project, env=w.env,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for _ in range(8)]
    done = [(p.communicate(timeout=120), p.returncode) for p in running]
    assert all(code == 0 and err == b"" for (_, err), code in done), done
    assert len({out for (out, _), _ in done}) == 8, "eight snapshots"
    assert len(w.daemons()) == 1
    assert (w.store / "cowfsd.log").read_text().count(": ready") == 1
    assert len(w.ok("-q", "log").out.split()) == 8
    got = w.ok("stats", "--json").json("snap.stats/1")
    assert got["projects"] == 1, "registered once"


@test
def it_keeps_nothing_of_who_started_it(w: World):
    reader, writer = os.pipe()
    with contextlib.closing(os.fdopen(reader, "rb")) as pipe:
        w.ok("start", pass_fds=[writer], umask=0)
        os.close(writer)
        assert pipe.read() == b"", "a descriptor of ours stayed open"
    pid = pid_of(w)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) != os.getsid(0)
    links = [os.readlink(f"/proc/{pid}/fd/{i}") for i in range(3)]
    assert links == ["/dev/null", str(w.store / "cowfsd.log"), str(w.store / "cowfsd.log")], links
    for path, want in ((run_dir(w), 0o700), (run_dir(w) / "cowfsd.sock", 0o600),
                       (w.store / "cowfsd.log", 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == want, path


@test
def a_store_with_a_long_path_or_open_to_others_has_one_too(w: World):
    store = w.top / ("long" * 20) / ("name" * 20)
    store.mkdir(parents=True)
    store.chmod(0o755)
    w.ok("--store", str(store), "init")
    assert stat.S_IMODE((store / "run").stat().st_mode) == 0o700
    w.ok("--store", str(store), "stop")


@test
def start_and_stop_say_what_they_did(w: World):
    assert w.ok("stop").out == b"cowfsd was not running\n"
    got = w.ok("start", "--json").json("snap.start/1", "started", "pid", "version", "mounted")
    assert got["started"] is True and got["mounted"] == 0 and w.daemons() == [got["pid"]], got
    again = w.ok("start", "--json").json("snap.start/1")
    assert again["started"] is False and again["pid"] == got["pid"], again
    assert b"runs already" in w.ok("start").out
    stopped = w.ok("stop", "--json").json("snap.stop/1", "stopped")
    assert stopped["stopped"] is True and stopped["pid"] == got["pid"], stopped
    assert w.daemons() == [], "gone when stop returns"
    assert w.ok("stop", "--json").json("snap.stop/1")["stopped"] is False


@test
def why_it_could_not_start_is_told_by_the_command(w: World):
    w.take()
    w.stop()
    (run_dir(w) / "cowfsd").unlink()
    (run_dir(w) / "cowfsd").mkdir()
    w.snap("snapshot").fails(1, "run/cowfsd")
    w.snap("snapshot", "--json").fails_json(1, "E_FAILED")
    wait_for(lambda: not w.daemons())


@test
def nobody_starts_it_by_its_name(w: World):
    done = subprocess.run(["cowfsd", str(w.store)], executable=SNAP, env=w.env, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 2 and b"error: " in done.stderr, done


# --- ending ---------------------------------------------------------------------------------

@test
def a_daemon_that_was_killed_is_mentioned_once_and_replaced(w: World):
    first = w.take()
    pid = pid_of(w)
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)
    assert (run_dir(w) / "cowfsd.sock").exists(), "a dead one leaves its socket"
    result = w.ok("-q", "log")
    assert CRASHED not in result.err, "who reads only has nothing to do with it"
    result = w.ok("snapshot")
    assert CRASHED in result.err and f"process {pid}".encode() in result.err, str(result)
    assert str(w.store / "cowfsd.log").encode() in result.err, str(result)
    result = w.ok("snapshot")
    assert result.err == b"", str(result)
    assert len(w.ok("-q", "log").out.split()) == 3 and first in w.ok("-q", "log").out.decode()
    w.ok("check")


# --- its keeper -----------------------------------------------------------------------------

def mounted_clone(w):
    needs_fuse()
    return w.store / "clones" / w.ok("-q", "clone", "-n", "try").out.decode().strip().split("/")[-1]


def can_read(path):
    try:
        return (path / "README.md").read_text() == "first\n" and bool(os.statvfs(path))
    except OSError:
        return False


@test
def mounts_come_back_by_themselves_after_kill_9(w: World):
    path = mounted_clone(w)
    (path / "new").write_text("x")
    w.ok("-q", "snapshot", "try")
    pid, keeper = pid_of(w), w.keepers()
    w.kill_daemon(keeper=False)
    wait_for(lambda: can_read(path))  # and no command was given meanwhile
    assert (path / "new").read_text() == "x"
    assert w.keepers() == keeper and len(w.daemons()) == 1 and w.daemons() != [pid]
    result = w.ok("list")
    assert CRASHED in result.err and f"process {pid}".encode() in result.err, str(result)
    assert w.ok("list").err == b"", "said once"


@test
def mounts_come_back_after_a_kill_while_a_program_was_being_started(w: World):
    """Between fork and exec that has the lock of the dead one, too."""
    path = mounted_clone(w)
    keeper, pid = w.keepers()[0], pid_of(w)
    stop_process(keeper)
    os.kill(pid, signal.SIGKILL)
    with open(run_dir(w) / "cowfsd") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        os.kill(keeper, signal.SIGCONT)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"))  # the keeper has noticed,
        time.sleep(0.3)  # and looked; it goes on looking for five seconds
    wait_for(lambda: can_read(path))
    assert w.keepers() == [keeper]


@test
def a_keeper_ends_with_a_daemon_that_ends_in_order(w: World):
    mounted_clone(w)
    for end in (lambda: w.ok("stop"), lambda: os.kill(w.daemons()[0], signal.SIGTERM),
                lambda: os.kill(w.keepers()[0], signal.SIGTERM)):
        w.ok("start")
        keeper, daemon = w.keepers(), w.daemons()
        assert len(keeper) == 1 and len(daemon) == 1
        end()
        assert gone(keeper[0], 20) and gone(daemon[0], 20)
        assert not w.daemons() and not w.mounts()
        assert (run_dir(w) / "cowfsd").read_bytes() == b"", "in order"


@test
def a_keeper_holds_nothing_of_the_store(w: World):
    mounted_clone(w)
    keeper, = w.keepers()
    where = [os.readlink(f"/proc/{keeper}/fd/{fd}") for fd in os.listdir(f"/proc/{keeper}/fd")]
    assert not any(str(w.top) in path for path in where), where
    assert os.readlink(f"/proc/{keeper}/cwd") == "/"
    assert len(os.listdir(f"/proc/{keeper}/task")) == 1


@test
def what_has_nothing_mounted_is_not_started_again(w: World):
    w.take()
    keeper, = w.keepers()
    w.kill_daemon(keeper=False)
    assert gone(keeper, 20) and not w.daemons()


@test
def a_keeper_gives_up_and_says_so_in_the_log(w: World):
    path = mounted_clone(w)
    keeper, = w.keepers()
    for _ in range(5):
        wait_for(lambda: w.daemons() and can_read(path))
        w.kill_daemon(keeper=False)
    assert gone(keeper, 20) and not w.daemons()
    assert "died 5 times within 10 s" in (w.store / "cowfsd.log").read_text()
    assert CRASHED in w.ok("list").err and can_read(path)
    assert len(w.keepers()) == 1


SLOW_MANAGER = """
import os, socket, sys
listens, part, asked, most = sys.argv[1:]
server = socket.socket(socket.AF_UNIX)
os.makedirs(os.path.dirname(listens), exist_ok=True)
server.bind(listens)
server.listen()
peer, _ = server.accept()
said = b""
while b"BEGIN" not in said:
    said += peer.recv(4096)
peer.sendall(b"DATA\\r\\nOK 0123456789abcdef0123456789abcdef\\r\\nAGREE_UNIX_FD\\r\\n")
while b"StartTransientUnit" not in said or b"PIDs" not in said or bytes.fromhex(most) not in said:
    said += peer.recv(4096)
with open(part, "wb") as file:
    file.write(said)
os.rename(part, asked)
peer.recv(1)  # until the test ends it, or whoever asked hangs up
"""


@test
def a_manager_that_takes_its_time_does_not_delay_the_daemon(w: World):
    """systemd is asked to move keeper and daemon while the daemon starts; the command waits for both."""
    asked, runtime, place = w.top / "asked", w.top / "runtime", []
    listens = runtime / "systemd" / "private"
    if os.geteuid() == 0:  # where root looks for it, in a mount namespace of the test's own
        listens = "/run/systemd/private"
        place = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh"]
        if subprocess.run([*place, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise Skip("a mount namespace cannot be made here")
    # MemoryMax, as the unit has it: half of the machine's memory, a number of 64 bits.
    half = struct.pack("=Q", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2).hex()
    script = (f"{sys.executable} -c \"$1\" \"$2\" {w.top}/part {asked} {half} & echo $! >{w.top}/manager; "
              f"until [ -S \"$2\" ]; do sleep 0.01; done; exec '{SNAP}' -q snapshot")
    command = subprocess.Popen([*place, "sh", "-c", script, "sh", SLOW_MANAGER, listens], cwd=w.project, stdout=subprocess.DEVNULL,
                               env={**w.env, "XDG_RUNTIME_DIR": str(runtime)})
    wait_for(lambda: asked.exists() and (run_dir(w) / "cowfsd").exists())
    wait_for(lambda: b"serving" in (run_dir(w) / "cowfsd").read_bytes())
    keeper, = w.keepers()
    daemon, = w.daemons()
    said = asked.read_bytes()
    assert struct.pack("=III", 8, keeper, daemon) in said, "both are to be moved"
    assert bytes.fromhex(half) in said.partition(b"MemoryMax")[2][:24], "memory is bounded"
    assert b"MemorySwapMax" not in said, "it may be swapped out"
    os.kill(int((w.top / "manager").read_text()), signal.SIGKILL)
    assert command.wait(60) == 0
    assert w.keepers() == [keeper] and w.daemons() == [daemon]


@test
def commands_that_only_read_bring_mounts_back_too(w: World):
    path = mounted_clone(w)
    for command in "log", "stats":
        w.kill_daemon()
        assert not can_read(path)
        assert CRASHED in w.ok(command).err and can_read(path), command


class Manager:
    """Has a socket for a store, and starts its daemon, as systemd does (sd_listen_fds(3))."""

    def __init__(self, w):
        self.w = w
        run_dir(w).mkdir(parents=True, mode=0o700)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(run_dir(w) / "cowfsd.sock"))
        self.socket.listen()

    def start(self, **more):
        script = (f"exec 3<&{self.socket.fileno()};"
                  f"LISTEN_PID=$$ LISTEN_FDS=1 exec '{SNAP}' start --foreground")
        return subprocess.Popen(["sh", "-c", script], env={**self.w.env, **more}, cwd=self.w.project,
                                pass_fds=[self.socket.fileno()], stderr=subprocess.PIPE)


def ask_early(w):
    """A command that has to wait until there is a daemon."""
    return subprocess.Popen([SNAP, "-q", "snapshot"], env=w.env, cwd=w.project,
                            stdout=subprocess.DEVNULL)


@test
def a_service_manager_can_start_it_by_its_socket(w: World):
    manager = Manager(w)
    asked = ask_early(w)
    first = manager.start()
    assert asked.wait(60) == 0 and w.daemons() == [first.pid] and not w.keepers()
    assert manager.start().wait(60) == 11, "there is one already"
    w.ok("stop")
    assert first.wait(60) == 0 and (run_dir(w) / "cowfsd.sock").exists(), "the socket is not its own"
    asked = ask_early(w)
    second = manager.start()
    assert asked.wait(60) == 0 and w.daemons() == [second.pid]
    second.kill()
    second.wait()
    third = manager.start()
    assert CRASHED in w.ok("snapshot").err, "the next command says so"
    w.ok("stop")
    assert third.wait(60) == 0
    for p in first, second, third:
        p.stderr.close()


@test
def a_socket_of_another_store_is_not_taken(w: World):
    manager = Manager(w)
    p = manager.start(SNAPCOW_STORE=str(w.top / "elsewhere"))
    _, said = p.communicate(timeout=60)
    assert p.returncode == 2 and b"is not the control socket of this store" in said, said
    manager.socket.close()
    (run_dir(w) / "cowfsd.sock").unlink()


@test
def the_signal_that_killed_it_is_in_the_log(w: World):
    w.take()
    pid = pid_of(w)
    os.kill(pid, signal.SIGBUS)
    assert gone(pid, 20)
    log = (w.store / "cowfsd.log").read_text()
    if "Sanitizer" in log:
        (w.store / "cowfsd.log").unlink()  # which has said all, and more
    else:
        assert "killed by SIGBUS\n" in log, log
    assert CRASHED in w.ok("snapshot").err


@test
def a_command_that_dies_while_it_starts_one_leaves_no_second_one(w: World):
    w.take()
    w.stop()
    with open(run_dir(w) / "cowfsd") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)  # as if one were about to end
        first = subprocess.Popen([SNAP, "snapshot"], cwd=w.project, env=w.env)
        wait_for(lambda: len(w.daemons()) == 1)
        first.kill()
        first.wait()
        second = subprocess.Popen([SNAP, "-q", "snapshot"], cwd=w.project, env=w.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.3)
        assert second.poll() is None and len(w.daemons()) == 1
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0 and err == b"", (out, err)
    assert len(w.daemons()) == 1


@test
def a_signal_ends_it_in_order(w: World):
    w.take()
    for sig in (signal.SIGTERM, signal.SIGINT):
        pid = pid_of(w)
        os.kill(pid, signal.SIGHUP)
        os.kill(pid, sig)
        assert gone(pid, 20)
        assert not (run_dir(w) / "cowfsd.sock").exists()
        result = w.ok("snapshot")
        assert result.err == b"", str(result)


@test
def it_survives_its_death_in_the_midst_of_a_command(w: World):
    w.take()
    with contextlib.closing(sqlite3.connect(w.store / "meta.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")  # so that nothing can be committed
        running = subprocess.Popen([SNAP, "snapshot"], cwd=w.project, env=w.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: busy(w))
        w.snap("stop").fails(11, "under way", "hint: snapcow stop --force")
        os.kill(pid_of(w), signal.SIGKILL)
        out, err = running.communicate(timeout=60)
        db.execute("ROLLBACK")
    assert running.returncode == 1 and out == b"" and CRASHED in err, (out, err)
    assert len(w.ok("-q", "log").out.split()) == 1
    assert CRASHED in w.ok("gc").err
    w.ok("check")


def busy(w):
    line = Line(w)
    hello = line.read()["cowfsd"]
    line.close()
    return hello["busy"]


@test
def it_leaves_by_itself_when_nobody_needs_it(w: World):
    env = {"SNAPCOW_IDLE_S": "1"}
    w.ok("snapshot", env=env)
    pid = pid_of(w)
    line = Line(w)
    line.greet()
    time.sleep(1.5)
    assert w.daemons() == [pid], "somebody is connected"
    line.close()
    assert gone(pid, 20)
    assert w.ok("snapshot", env=env).err == b"", "that is no crash"


@test
def it_leaves_when_its_store_is_gone(w: World):
    w.ok("snapshot")
    pid = pid_of(w)
    w.store.rename(w.top / "moved")
    assert w.ok("snapshot").err == b"", "a new store gets a daemon of its own"
    assert gone(pid, 20)
    assert len(w.daemons()) == 1
    w.stop()
    shutil.rmtree(w.store)
    w.ok("log")


@test
def a_log_that_grew_large_makes_room_and_one_old_one_is_kept(w: World):
    log, old = w.store / "cowfsd.log", w.store / "cowfsd.log.1"
    w.take()
    assert log.read_text().count("\n") == 1 and not old.exists()
    for mark in ("first", "second"):
        w.stop()
        with open(log, "a") as f:
            f.write(f"{mark}\n" + "x" * (1 << 20) + "\n")
        w.take()
        assert mark in old.read_text() and log.stat().st_size < 1000, mark
    assert "first" not in old.read_text()
    assert sorted(p.name for p in w.store.glob("cowfsd.log*")) == [log.name, old.name]


# --- versions -------------------------------------------------------------------------------

class Impostor(threading.Thread):
    """A daemon of another version, or of none."""

    def __init__(self, w, hello):
        super().__init__(daemon=True)
        run_dir(w).mkdir(parents=True, mode=0o700, exist_ok=True)
        self.asked, self.hello = [], hello
        self.lock = open(run_dir(w) / "cowfsd", "a")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.path = run_dir(w) / "cowfsd.sock"
        self.path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(str(self.path))
        self.socket.listen(8)
        self.start()

    def run(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with contextlib.suppress(BrokenPipeError), peer, peer.makefile("rwb") as f:
                f.write(self.hello if isinstance(self.hello, bytes)
                        else json.dumps({"cowfsd": self.hello}).encode() + b"\n")
                f.flush()
                f.readline()
                line = f.readline()
                if not line:
                    continue
                self.asked.append(json.loads(line))
                self.end()
                f.write(b'{"answer":{}}\n')
                f.flush()
                self.lock.close()
                return

    def end(self):
        self.path.unlink(missing_ok=True)
        self.socket.close()


OLD = {"protocol": 1, "version": "0.0.1", "pid": 1, "busy": False, "mounted": 0, "new": [1]}


@test
def an_idle_daemon_of_another_version_is_replaced(w: World):
    for hello in (OLD, {**OLD, "protocol": 99}):
        impostor = Impostor(w, hello)
        w.ok("snapshot")
        impostor.join(20)
        assert [q["ask"] for q in impostor.asked] == ["stop"], impostor.asked
        assert impostor.asked[0]["options"]["force"] is False
        w.stop()


@test
def a_run_does_not_believe_a_daemon_of_another_version(w: World):
    """It asks before it is greeted, and the answer here is one."""
    needs_fuse()
    w.take()
    w.stop()
    impostor = Impostor(w, OLD)
    w.ok("run", "--", "true")
    impostor.join(20)
    assert [q["ask"] for q in impostor.asked] == ["stage"], impostor.asked


@test
def a_busy_daemon_of_another_version_is_left_alone(w: World):
    w.take()
    w.stop()
    for hello in ({**OLD, "busy": True}, {**OLD, "mounted": 2}):
        impostor = Impostor(w, hello)
        w.snap("snapshot").fails(11, "0.0.1", "hint: snapcow stop")
        w.snap("gc", "--json").fails_json(11, "E_VERSION")
        assert impostor.asked == []
        got = w.ok("version", "--json").json("snap.version/1")
        assert got["daemon"]["version"] == "0.0.1", got
        w.ok("stop")
        impostor.join(20)
        assert [q["ask"] for q in impostor.asked] == ["stop"], impostor.asked
    w.ok("snapshot")


@test
def a_greeting_that_is_none_is_a_failure_and_no_hang(w: World):
    w.take()
    w.stop()
    for hello in (b"hello\n", b"{}\n", b'{"cowfsd":{"protocol":"x"}}\n', b"x" * (2 << 20)):
        impostor = Impostor(w, hello)
        result = w.snap("snapshot")
        assert result.status in (1, 13) and b"control socket" in result.err, str(result)
        impostor.end()
        impostor.lock.close()


@test
def a_program_of_another_version_may_only_stop_it(w: World):
    w.take()
    line = Line(w)
    line.greet("9.9.9")
    line.send(question(w, "gc"))
    error = line.read()["error"]
    assert error["code"] == "EPROTONOSUPPORT" and "same version" in error["message"], error
    line.send({"ask": "stop", "options": {"force": False}})
    assert line.read() == {"answer": {}}
    line.close()
    wait_for(lambda: not w.daemons())


# --- the protocol ---------------------------------------------------------------------------

@test
def what_is_no_question_gets_an_answer_and_hurts_nobody(w: World):
    w.take()
    pid = pid_of(w)
    line = Line(w)
    line.greet()
    for odd, code in (({"ask": "frobnicate", "watch": False, "dir": "/", "options": {}}, "ENOTSUP"),
                      ({"ask": 7}, "EINVAL"), ({}, "EINVAL"), ({"ask": "gc"}, "EINVAL"),
                      ({**question(w, "gc"), "dir": "relative"}, "EINVAL"),
                      ({**question(w, "gc"), "watch": "yes"}, "EINVAL"),
                      ({**question(w, "gc"), "options": []}, "EINVAL"),
                      (question(w, "list", all="all"), "EINVAL"),
                      (question(w, "remove"), "EINVAL"),
                      (question(w, "take", project="src"), "EINVAL"),
                      (question(w, "mount", clone="../run"), "ENOENT"),
                      (question(w, "remove", clone="..", force=True), "ENOENT"),
                      ({"ask": "stop"}, "EINVAL")):
        line.send(odd)
        got = line.read()
        assert got["error"]["code"] == code, (odd, got)
    line.send(question(w, "check", repair=False))
    assert "objects" in line.read()["answer"]
    line.close()
    for garbage in (b"\n", b"\xff\xfe\n", b"[]\n", b'{"a":', b"x" * (3 << 20)):
        line = Line(w)
        line.greet()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            line.send(garbage)
            line.socket.shutdown(socket.SHUT_WR)
            assert line.read() is None, garbage
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            line.close()
    assert pid_of(w) == pid
    w.ok("check")


@test
def a_caller_that_does_not_listen_holds_nobody_up(w: World):
    w.take()
    lines = [Line(w) for _ in range(20)]
    for line in lines:
        line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        line.greet()
        line.send({**question(w, "check", repair=False), "watch": True})
    w.ok("snapshot")
    for line in lines:
        line.close()
    w.ok("stop", "--force")


@test
def progress_and_warnings_come_before_the_answer(w: World):
    for i in range(3000):
        (w.project / f"file{i}").write_text(str(i))
    w.take()
    line = Line(w)
    line.greet()
    line.send({**question(w, "take", **TAKE), "watch": True})
    got = [line.read()]
    while "answer" not in got[-1]:
        got.append(line.read())
    assert all("progress" in g for g in got[:-1]), got
    for g in got[:-1]:
        assert set(g["progress"]) == {"doing", "files", "bytes", "done", "total"}, g
    line.close()


@test
def a_first_capture_tells_how_much_there_is_once_that_was_counted(w: World):
    w.take()  # of another project: the daemon runs
    for mib, rules in ((8, False), (8, True)):
        told = None
        while told is None:  # until it takes long enough to be told of
            if mib > 256:
                raise Skip("256 MiB are captured too quickly to be told of")
            top = w.top / "work" / f"large{mib}{rules}"
            (top / "deep" / "er").mkdir(parents=True)
            if rules:
                (top / "deep" / ".snapignore").write_text("nothing\n")
            for i in range(mib):
                (top / "deep" / "er" / f"f{i}").write_bytes(os.urandom(1 << 20))
            line = Line(w)
            line.greet()
            line.send({**question(w, "take", **TAKE), "watch": True, "dir": str(top)})
            got = [line.read()]
            while "answer" not in got[-1]:
                got.append(line.read())
            line.close()
            told = next((g["progress"] for g in reversed(got[:-1]) if g["progress"]["files"] >= mib // 2 and
                         (rules or g["progress"]["total"])), None)
            mib *= 2
        names = 0 if rules else mib // 2 + 3
        assert told["total"] == names, (told, names)


# --- other users ----------------------------------------------------------------------------

def root_only():
    if os.geteuid() != 0:
        raise Skip("only root can be two users")


def read_as(user, path):
    """All that the socket says to a process of that user."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                s.settimeout(20)
                s.connect(path)
                os.write(writer, s.makefile("rb").read())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as f:
        said = f.read()
    os.waitpid(pid, 0)
    return said


@test
def another_user_is_refused_even_where_the_socket_is_open_to_all(w: World):
    root_only()
    w.take()
    for path in (w.top, w.store, run_dir(w)):
        path.chmod(0o755)
    (run_dir(w) / "cowfsd.sock").chmod(0o666)
    lines = read_as(NOBODY, str(run_dir(w) / "cowfsd.sock")).splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["error"]["code"] == "EACCES", lines
    w.ok("snapshot")


@test
def a_daemon_of_another_user_is_not_trusted(w: World):
    root_only()
    w.take()
    w.stop()
    shutil.rmtree(run_dir(w))
    impostor = Impostor(w, OLD)
    os.chown(run_dir(w), NOBODY, NOBODY)
    w.snap("snapshot").fails(1, f"user {NOBODY}")
    w.snap("snapshot", "--json").fails_json(1, "E_PERMISSION")
    assert impostor.asked == []
    impostor.end()


# --- who leaves -------------------------------------------------------------------------------

def ask_and_go(w, verb, **options):
    """Have the daemon find the question only when whoever asked has gone already."""
    (pid,) = w.daemons()
    line = Line(w)
    line.greet()
    stop_process(pid)
    try:
        line.send(question(w, verb, **options))
        line.close()
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: w.snap("stop").status == 0)  # which it refuses while it is at work


def everything(w):
    got = w.ok("log", "--all", "--json").json("snap.log/1")
    listed = w.ok("list", "--all", "--json").json("snap.list/1")["clones"]
    return ([s["snapshot"] for s in got["snapshots"]], [r["receipt"] for r in got["receipts"]],
            sorted(c["clone"] for c in listed), w.ok("artifact", "list").out, (w.project / "README.md").read_bytes())


CLONE = {"name": "late", "from": None, "count": 1, "ttl_ms": 0, "quota": 0, "strict": False,
         "private": False, "no_xattrs": False, "skip_unreadable": False, "lazy": False, "eager": False, "owner": 0,
         "carry": False, "expect": 0, "last": False}
TAKE = {"project": None, "clone": None, "message": "late", "tag": None, "meta": None,
        "skip_unreadable": False, "lazy": False, "passing": False, "automatic": False, "include": []}
ARTIFACT = {"clone": "try", "paths": ["README.md"], "meta": None, "run": None, "session": None}
ROLLBACK = {"first": None, "second": None, "no_git": False, "skip_unreadable": False,
            "dry_run": False, "clone_only": False, "own_only": False, "since": None, "remember": False, "rules": None, "paths": [],
            "allow": []}


@test
def a_rollback_leaves_what_its_asker_does_not_know(w: World):
    """As a pull does when somebody edits a file between its look at the project and the change."""
    wanted = w.take()
    (w.project / "README.md").write_text("second\n")
    known = w.take()

    def roll(**options):
        line = Line(w)
        line.greet()
        line.send(question(w, "rollback", **{**ROLLBACK, "first": wanted, **options}))
        got = line.read()
        line.close()
        return got["answer"]

    (w.project / "edited").write_text("a moment ago\n")
    got = roll(since=known)
    assert got["edited"] and got["changed"] == 0, got
    assert (w.project / "README.md").read_text() == "second\n"
    (w.project / "edited").unlink()
    got = roll(since=known)
    assert not got["edited"] and got["changed"] == 1, got
    assert (w.project / "README.md").read_text() == "first\n"
    # It looks like what is wanted, though not like what was known.
    got = roll(since=known)
    assert not got["edited"] and got["changed"] == 0, got
    (w.project / "edited").write_text("a moment ago\n")
    assert roll()["changed"] == 1
    assert not (w.project / "edited").exists()


@test
def an_act_whose_asker_has_gone_leaves_nothing(w: World):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "try")
    w.take("try")
    (w.store / "clones" / "try" / "new").write_text("new\n")
    (w.project / "README.md").write_text("second\n")
    before = everything(w)
    questions = (("take", TAKE), ("take", {**TAKE, "clone": "try"}), ("clone", CLONE),
                 ("clone", {**CLONE, "from": "try"}), ("artifact", ARTIFACT), ("rollback", ROLLBACK),
                 ("rollback", {**ROLLBACK, "first": "try"}))
    for verb, options in questions:
        ask_and_go(w, verb, **options)
        assert everything(w) == before, (verb, options)
        assert (w.store / "clones" / "try" / "new").exists()
    w.ok("check")
    # The control: of an asker that stays each of them is a question, and no nonsense.
    w.take()
    for verb, options in questions:
        line = Line(w)
        line.greet()
        line.send(question(w, verb, **options))
        got = line.read()
        assert "missing" not in str(got.get("error")), (verb, got)
        line.close()


if __name__ == "__main__":
    sys.exit(livetest.main() if livetest.USER else main())
