"""What the tests of live clones add to those of the program: clones, deaths, deadlines, figures.

As root a test program has a mount namespace of its own, so no mount of it is ever seen outside.
With --user root runs it as an ordinary user, for whom /dev/fuse is open in that namespace, as it
is on any distribution. SNAP_TESTS_LONG=1 asks for the full figures.
"""

import contextlib
import ctypes
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))

import snaptest  # noqa: E402  (found through the line above)
from snaptest import Skip, World, gone, sanitizer, test  # noqa: E402,F401  (for the tests)

LONG = os.environ.get("SNAP_TESTS_LONG") == "1"
SANITIZED = os.environ.get("SNAP_SANITIZED", "none") != "none"
USER = "--user" in sys.argv
ORDINARY = "nobody"
INSIDE = "SNAP_LIVE_INSIDE"  # in the environment of a process in that namespace
FUSE_DEVICE = os.makedev(10, 229)
PR_SET_DUMPABLE = 4


def note(*words):
    print("#", *words, flush=True)


def needs_fuse():
    """Why nothing can be mounted here, if so."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as e:
        raise Skip(f"/dev/fuse cannot be opened: {e.strerror}") from e


def live_test(fn):
    def run(w):
        needs_fuse()
        fn(w)
    run.__name__ = fn.__name__
    return test(run)


def share(points):
    """Of the points of a long walk those that SNAP_TESTS_SHARE=K/N asks for: from the K-th on every N-th."""
    points = list(points)
    asked = os.environ.get("SNAP_TESTS_SHARE")
    if not LONG or not asked:
        return points
    k, n = (int(word) for word in asked.split("/"))
    assert 1 <= k <= n, f"SNAP_TESTS_SHARE={asked} is no share"
    return points[k - 1::n]


def chosen(walks):
    """Of the long walks those that SNAP_TESTS_WALKS names, separated by commas."""
    asked = os.environ.get("SNAP_TESTS_WALKS")
    return [walk for walk in walks if not asked or walk in asked.split(",")]


@contextlib.contextmanager
def timed(what):
    """Say how long it took; nothing depends on it."""
    start = time.monotonic()
    yield
    note(f"{what}: {time.monotonic() - start:.3f} s")


def python():
    """One that this user can start: a private one may be out of reach."""
    return next(p for p in (sys.executable, "/usr/bin/python3") if os.access(p, os.X_OK))


# --- clones ---------------------------------------------------------------------------------

def clone(w, *args, **more):
    """The path of a new clone."""
    return Path(w.ok("clone", "--json", *args, **more).json("snap.clone/1", "path")["path"])


def clones(w, count, *args):
    """The paths of as many."""
    got = w.ok("clone", "--json", "--count", str(count), *args).json("snap.clone/1", "clones")
    return [Path(c["path"]) for c in got["clones"]]


def remount(w, name):
    w.ok("umount", name)
    w.ok("mount", name)


def daemon_pid(w):
    pids = w.daemons()
    assert len(pids) == 1, pids
    return pids[0]


def kill_daemon(w):
    """What nobody can prepare for, and its keeper cannot mend."""
    return w.kill_daemon()


def memory(pid):
    """Its resident bytes: now, and the most there ever were."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines
             if line.startswith(("VmRSS", "VmHWM"))}
    return found["VmRSS"], found["VmHWM"]


def is_clean(w, *args):
    """Everything in the store is whole."""
    got = w.ok("check", "--json", *args).json("snap.check/1", "objects", "errors")
    assert got["errors"] == [], got["errors"]
    return got["objects"]


# --- deadlines ------------------------------------------------------------------------------

def within(seconds, fn, *args):
    """The errno with which `fn` fails, 0 if it does not, in a process that may hang."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            fn(*args)
            code = 0
        except OSError as e:
            code = e.errno
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if not gone(pid, seconds):
        os.kill(pid, signal.SIGKILL)
        hung = gone(pid, 20)
        raise AssertionError(f"{fn.__name__} still waits after {seconds} s, and can "
                             f"{'' if hung else 'not '}be killed")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status not in (255, -signal.SIGSEGV), f"{fn.__name__} broke"
    return status


class Worker:
    """A process of the test beside others, whose every wait has an end."""

    ENV = {**os.environ, "ASAN_OPTIONS": sanitizer("ASAN_OPTIONS", "detect_leaks=0")}

    def __init__(self, *words):
        self.words = [str(word) for word in words]
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=self.ENV)

    def ends(self, seconds, *statuses):
        """All that it said, once it has ended."""
        try:
            said, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as e:
            self.kill()
            raise AssertionError(f"still runs after {seconds} s: {self.words}") from e
        status = self.process.returncode
        assert status in (statuses or (0,)), f"status {status}: {self.words}\n{said}"
        return said

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            assert gone(self.process.pid, 20), f"cannot be killed: {self.words}"
            self.process.wait()


# --- who and where --------------------------------------------------------------------------

def namespaces_allowed():
    return subprocess.run(["unshare", "-m", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def open_fuse_for_all():
    """In this namespace only."""
    if not Path("/dev/fuse").exists():
        return
    place = tempfile.mkdtemp(prefix="snap-live-dev-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", place], check=True)
    node = f"{place}/fuse"
    os.mknod(node, 0o600 | 0o020000, FUSE_DEVICE)
    os.chmod(node, 0o666)
    subprocess.run(["mount", "--bind", node, "/dev/fuse"], check=True)
    subprocess.run(["umount", "-l", place], check=True)
    os.rmdir(place)


def become_ordinary():
    user = pwd.getpwnam(ORDINARY)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    # Else what is in /proc of this process and its children would belong to root.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def root_can_enter():
    """Into a namespace of our own; again from the start."""
    if INSIDE in os.environ or os.geteuid() != 0:
        return
    if not namespaces_allowed():
        if USER:
            skip_all("mount namespaces are not allowed here")
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, "-B",
                          *sys.argv])


def sample():
    """Half of the tests, by the seed of the whole run, which does them all as root: tools/test says when."""
    seed = os.environ.get("SNAP_TESTS_TWINS")
    if not seed or LONG or sys.argv[1:] or os.geteuid() != 0:
        return
    ranked = sorted(snaptest.TESTS, key=lambda t: hashlib.sha256(f"{seed} {t.__name__}".encode()).digest())
    chosen = ranked[:(len(ranked) + 1) // 2]
    note(f"{len(chosen)} of {len(ranked)} tests, by seed {seed}; SNAP_TESTS_LONG=1 does all")
    sys.argv += [t.__name__ for t in snaptest.TESTS if t in chosen]


def main():
    root_can_enter()
    if USER:
        sys.argv.remove("--user")
        sample()
        if not shutil.which("fusermount3"):
            skip_all("fusermount3 is not installed")
        if os.geteuid() == 0:
            open_fuse_for_all()
            become_ordinary()
    if not os.access(snaptest.SNAP, os.X_OK):
        skip_all("the program under test cannot be reached by an ordinary user")
    os.chdir("/")
    return snaptest.main()
