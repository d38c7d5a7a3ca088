"""What the tests of the program share: a world of its own for each test, and TAP.

The program under test is $SNAP_UNDER_TEST. Every test gets a temporary directory with a home,
a store and a project in it, and nothing outside of it is ever written. No daemon and no mount
outlives its test.
"""

import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

SNAP = Path(os.environ["SNAP_UNDER_TEST"])
TESTS = []
LONG = os.environ.get("SNAP_TESTS_LONG") == "1"
# A command that takes more than five seconds says how far it is; that is a matter of the machine.
PROGRESS = re.compile(rb"^(?:reading|writing|marking|freeing|checking)(?:  .*)?\n", re.M)


def sanitizer(variable, *more):
    """Its options, so that a finding is no exit code of ours."""
    given = os.environ.get(variable)
    return ":".join(([given] if given else []) + ["exitcode=99", *more])


def dice():
    """A random generator; it prints its seed and takes it from SNAP_TEST_SEED."""
    seed = int(os.environ.get("SNAP_TEST_SEED") or random.randrange(1 << 32))
    print(f"# seed {seed}: SNAP_TEST_SEED={seed} repeats it")
    return random.Random(seed)


def some(items, one_in):
    """One in so many of them, by a seed that is printed; all if LONG."""
    items = list(items)
    if LONG:
        return items
    chosen = sorted(dice().sample(range(len(items)), -(-len(items) // one_in)))
    print(f"# {len(chosen)} of {len(items)} are tried; SNAP_TESTS_LONG=1 tries all")
    return [items[i] for i in chosen]


def leak_checks(commands, checked):
    """The environment for each of so many commands: `checked` of them look for leaks, or all if LONG.

    On aarch64 a process takes over four seconds of a processor to look, whatever it did before:
    the sanitizer walks through all places where memory could be.
    """
    chosen = range(commands) if LONG else dice().sample(range(commands), checked)
    print(f"# {len(chosen)} of {commands} commands look for leaks: {' '.join(map(str, chosen))}")
    return [{"ASAN_OPTIONS": sanitizer("ASAN_OPTIONS", f"detect_leaks={int(i in chosen)}")}
            for i in range(commands)]


def test(fn):
    TESTS.append(fn)
    return fn


class Skip(Exception):
    """Why a test cannot be run here."""


def needs_fuse(somebody_else=False):
    """Why nothing can be mounted here, by us or by an ordinary user, if so."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as e:
        raise Skip(f"/dev/fuse cannot be opened: {e.strerror}") from e
    if somebody_else:
        if os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
            raise Skip("/dev/fuse is closed to other users")
        if not shutil.which("fusermount3"):
            raise Skip("there is no fusermount3")


@contextlib.contextmanager
def hung(directory):
    """A file system in FUSE whose server does nothing is there: whoever looks into it waits."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        subprocess.run(["fusermount3", "--", directory], check=True, pass_fds=[theirs.fileno()],
                       env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())})
        server, = socket.recv_fds(ours, 1, 1)[1]
    try:
        yield
    finally:
        os.close(server)  # whoever waits gets an error
        subprocess.run(["fusermount3", "-u", "-z", "--", directory], check=True)


class Result:
    def __init__(self, args, done):
        self.args, self.status = args, done.returncode
        self.out, self.err = done.stdout or b"", PROGRESS.sub(b"", done.stderr or b"")

    def __str__(self):
        return (f"snap {self.args}: status {self.status}\n"
                f"stdout: {self.out[:2000]!r}\nstderr: {self.err[:2000]!r}")

    def ends(self, status):
        assert self.status == status, f"want status {status}\n{self}"
        return self

    def json(self, schema, *keys, status=0):
        """The one object it printed, with that schema and at least those keys."""
        self.ends(status)
        assert self.out.count(b"\n") == 1 and self.out.endswith(b"\n"), f"not one line\n{self}"
        got = json.loads(self.out)
        assert got["schema"] == schema, f"want schema {schema}\n{self}"
        missing = [k for k in keys if k not in got]
        assert not missing, f"without {missing}\n{self}"
        return got

    def fails(self, status, *words):
        """It failed, for people: error, why, perhaps a list, hints, and nothing on stdout."""
        self.ends(status)
        assert self.out == b"", f"something on stdout\n{self}"
        lines = self.err.decode().splitlines()
        assert lines and lines[0].startswith("error: "), f"no error line\n{self}"
        assert all(line.startswith(("hint: ", "  ")) for line in lines[1:]), f"more than hints\n{self}"
        for word in words:
            assert word in self.err.decode(), f"without {word!r}\n{self}"
        return self

    def fails_json(self, status, code):
        """It failed, for programs: one JSON object with this code."""
        error = self.json("snap.error/1", "error", status=status)["error"]
        assert error["code"] == code, f"want {code}\n{self}"
        assert error["message"] and isinstance(error["hints"], list), str(self)
        assert isinstance(error["data"], dict), str(self)
        assert self.err == b"", f"something on stderr\n{self}"
        return error


class World:
    """A home, a store, a project with a few files, and the program to use on them."""

    def __init__(self, top):
        self.top = Path(top).resolve()
        self.home, self.store = self.top / "home", self.top / "store"
        self.project = self.top / "work" / "project"
        self.home.mkdir()
        (self.project / "src").mkdir(parents=True)
        (self.project / "README.md").write_text("first\n")
        (self.project / "src" / "main.c").write_text("int main(void)\n{\n}\n")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SNAPCOW_", "XDG_")) and k not in ("NO_COLOR", "TERM")}
        self.env.update(HOME=str(self.home), SNAPCOW_STORE=str(self.store), LC_ALL="C.UTF-8",
                        ASAN_OPTIONS=sanitizer("ASAN_OPTIONS", "detect_leaks=0"),
                        UBSAN_OPTIONS=sanitizer("UBSAN_OPTIONS", "halt_on_error=1"))

    def snap(self, *args, cwd=None, env=None, program=SNAP, timeout=120, **more):
        env = {k: v for k, v in {**self.env, **(env or {})}.items() if v is not None}
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                "stdin": subprocess.DEVNULL, **more}
        return Result(args, subprocess.run([program, *args], cwd=cwd or self.project, env=env,
                                           timeout=timeout, check=False, **more))

    def ok(self, *args, **more):
        return self.snap(*args, **more).ends(0)

    def stop(self):
        """End the daemon, so that the store can be looked at and damaged behind its back."""
        self.ok("-q", "stop", "--force")

    def keepers(self):
        """The process ids of those that start such a daemon again when it dies."""
        return self.daemons(b"cowfsd-keep")

    def daemons(self, name=b"cowfsd"):
        """The process ids of all daemons that serve a store of this test."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == name and words[1].startswith(os.fsencode(self.top) + b"/"):
                found.append(int(entry.name))
        return found

    def mounts(self):
        """The mount points below this test's directory."""
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
        points = [line.split()[4] for line in lines]
        return [p for p in points if p.startswith(f"{self.top}/")]

    def kill_daemon(self, keeper=True):
        """kill -9 of the daemon, and of its keeper first, so that it stays dead; its process id."""
        pid, = self.daemons()
        for one in (self.keepers() if keeper else []) + [pid]:
            os.kill(one, signal.SIGKILL)
            assert gone(one, 20)
        return pid

    def end(self):
        """End what is left; what should not have been is an error."""
        for pid in self.keepers():
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
            assert gone(pid, 60), f"keeper {pid} did not end when asked to"
        for pid in self.daemons():
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:  # what it was about to start has its name for a moment
                continue
            if not gone(pid, 20):
                os.kill(pid, signal.SIGKILL)
                gone(pid, 20)
                raise AssertionError(f"cowfsd {pid} did not end when asked to")
        for log in self.store.glob("cowfsd.log*"):
            text = log.read_text(errors="replace")
            assert "Sanitizer" not in text and "runtime error" not in text, text[-8000:]
        left = self.mounts()
        for point in left:
            subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)
        assert not left, f"still mounted: {left}"

    def take(self, *args):
        """A snapshot; its id."""
        return self.ok("-q", "snapshot", *args).out.decode().strip()


# They serve until they are ended, so that no test of all commands can wait for them.
SERVERS = {"ui", "worker"}


def help_lines(command):
    """How many lines of help it may have: all that a run may see and use has an option."""
    return {
        "agents": 36,
        "approve": 28,
        "artifact": 32,
        "audit": 26,
        "bisect": 28,
        "clone": 36,
        "diff": 28,
        "experiment": 139,
        "export": 30,
        "fetch": 29,
        "import": 29,
        "log": 40,
        "mcp": 28,
        "metrics": 35,
        "promote": 45,
        "pull": 30,
        "push": 31,
        "remote": 41,
        "resolve": 30,
        "rollback": 32,
        "run": 116,
        "serve": 28,
        "ship": 28,
        "snapshot": 29,
        "status": 25,
        "try": 97,
        "undo": 25,
        "watch": 42,
        "worker": 50,
    }.get(command, 24)


def gone(pid, seconds):
    """Wait until that process has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(fd)


def stop_process(pid):
    """Stop it, and wait until no thread of it runs any more: the signal alone says nothing of when."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    until(lambda: all(p.read_text().rpartition(")")[2].split()[0] == "T" for p in tasks.glob("*/stat")))


def until(what, seconds=120):
    """What that returns, as soon as it is something, however long this machine takes.

    To ask is work too, most of all by a command: it rests for twice as long as an answer took, so
    that what it waits for has the processor.
    """
    end = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        got = what()
        now = time.monotonic()
        if got:
            return got
        assert now < end, f"not so within {seconds} s: {what}"
        time.sleep(min(max(0.01, 2 * (now - asked)), 0.5))


def unescape(name):
    """The bytes of a name, by the rule that base/json.h gives."""
    out, rest = b"", name
    while "\\" in rest:
        before, _, rest = rest.partition("\\")
        assert rest[0] == "x", name
        out += before.encode() + bytes.fromhex(rest[1:3])
        rest = rest[3:]
    return out + rest.encode()


def flip(path, needle):
    """Damage one byte of `needle` where it stands in the file, as a bad disk would."""
    data = bytearray(path.read_bytes())
    at = data.find(needle)
    assert at >= 0, f"{path.name} does not hold the bytes to damage"
    data[at + len(needle) // 2] ^= 1
    path.write_bytes(data)


def run_one(number, fn):
    top = tempfile.mkdtemp(prefix="snap-cli-")
    title = f"{number} - {fn.__name__}"
    world = World(top)
    why, skipped, start = None, "", time.monotonic()
    for step in (lambda: fn(world), world.end):
        try:
            step()
        except Skip as skip:
            skipped = f" # SKIP {skip}"
        except Exception:  # every way to fail is a failed test, and the next one is run
            why = (why or "") + traceback.format_exc()
    if why:
        print("# " + why.rstrip().replace("\n", "\n# "))
    print(f"# {time.monotonic() - start:.1f} s\n{'not ok' if why else 'ok'} {title}{skipped}")
    sys.stdout.flush()
    shutil.rmtree(top, ignore_errors=True)
    return not why


def main():
    wanted = [t for t in TESTS if not sys.argv[1:] or t.__name__ in sys.argv[1:]]
    print(f"1..{len(wanted)}")
    results = [run_one(i, t) for i, t in enumerate(wanted, 1)]
    return 0 if all(results) else 1
