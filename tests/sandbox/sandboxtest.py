"""What the tests of the sandbox share: a project, the driver to run commands on it, controls.

Every denial is paired with a control: the same act, by the same program, succeeds outside. As
root a test program has a mount namespace of its own; with --user root runs it as an ordinary
user.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))
os.environ.setdefault("SNAP_UNDER_TEST", os.environ["SNAP_SANDBOX_DRIVER"])

import livetest  # noqa: E402  (found through the lines above)
import snaptest  # noqa: E402
from livetest import USER, become_ordinary, note, root_can_enter, skip_all  # noqa: E402,F401
from snaptest import Skip, gone, sanitizer, test  # noqa: E402,F401

DRIVER = Path(os.environ["SNAP_SANDBOX_DRIVER"])
ATTEMPTS = Path(os.environ["SNAP_SANDBOX_ATTEMPTS"])
INSIDE = "/srv/project"  # where the project of a test is seen by its runs
EPERM, ENOENT, ENOSYS, EACCES = 1, 2, 38, 13
# Every call that can set those bits. Of openat2 the mode lies in memory.
SETID = ("setid_fchmod", "setid_group", "setid_fchmodat", "setid_fchmodat2", "setid_old",
         "setid_openat", "setid_tmpfile", "setid_mknodat", "setid_folder", "setid_mkdirat")


class Run:
    """How a run ended."""

    def __init__(self, words, done, report):
        self.words, self.status = words, done.returncode
        self.out, self.err = done.stdout or b"", done.stderr or b""
        self.report = report

    def __str__(self):
        return (f"{self.words}: status {self.status}\nstdout: {self.out[-3000:]!r}\n"
                f"stderr: {self.err[-3000:]!r}\nresult: {self.report}")

    def ends(self, status):
        assert self.status == status, f"want status {status}\n{self}"
        return self

    def says(self, *words):
        for word in words:
            assert word in self.out.decode(), f"without {word!r}\n{self}"
        return self

    def refused(self, *words):
        """Nothing was run, and a sentence says why."""
        self.ends(125)
        assert self.out == b"", f"something ran\n{self}"
        lines = self.err.decode().splitlines()
        assert len(lines) == 1 and lines[0].startswith("error: "), f"not one sentence\n{self}"
        for word in words:
            assert word in lines[0], f"without {word!r}\n{self}"
        return self

    def lines(self):
        return self.out.decode().splitlines()


class Box:
    """A directory of this test's own, with a project in it."""

    def __init__(self, top):
        self.top = Path(top).resolve()
        self.top.chmod(0o755)
        self.project = self.top / "project"
        self.project.mkdir()
        shutil.copy(ATTEMPTS, self.project / "attempts")
        self.reports = 0
        self.callers = []  # process ids of who called the sandbox
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SNAPCOW_")}
        self.env.update(ASAN_OPTIONS=sanitizer("ASAN_OPTIONS", "detect_leaks=0"),
                        UBSAN_OPTIONS=sanitizer("UBSAN_OPTIONS", "halt_on_error=1"))

    def words(self, options, command, system=True):
        self.reports += 1
        report = self.top / f"report-{self.reports}"
        return report, [str(DRIVER), *(["--system"] if system else []),
                        "--project", f"{self.project}:{INSIDE}", "--cwd", INSIDE,
                        "--env", "PATH=/usr/bin:/bin", "--env", "LC_ALL=C.UTF-8",
                        "--result", str(report), *map(str, options), "--", *map(str, command)]

    def run(self, *command, options=(), system=True, **more):
        """A command in the sandbox."""
        report, words = self.words(options, command, system)
        more = {"stdin": subprocess.DEVNULL, **more}
        with subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **more) as process:
            self.callers.append(process.pid)
            try:
                out, err = process.communicate(timeout=180)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        done = subprocess.CompletedProcess(words, process.returncode, out, err)
        text = report.read_text() if report.exists() else "null"
        assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, done.stderr
        return Run(words, done, json.loads(text))

    def sh(self, script, **more):
        return self.run("sh", "-c", script, **more)

    def python(self, script, **more):
        return self.run("/usr/bin/python3", "-I", "-c", script, **more)

    def start(self, *command, options=(), **more):
        """The same without waiting for its end."""
        _, words = self.words(options, command)
        process = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.callers.append(process.pid)
        return process

    def outside(self, *command, **more):
        """The control."""
        return subprocess.run([str(c) for c in command], cwd=self.project, check=False, timeout=180,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, **more)

    def end(self):
        with contextlib.suppress(AssertionError):  # one that was killed takes its moment to go
            eventually("all are gone", lambda: not processes(str(self.top)), seconds=5)
        left = processes(str(self.top))
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert not left, f"still there: {left}"


def processes(marker):
    """Process ids whose command line has that in it, this program's own apart."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in (os.getpid(), os.getppid()):
            continue
        with contextlib.suppress(OSError):
            if marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def has_ended(pid):
    """Gone, or waiting for a parent that may never ask: not ours any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def is_root():
    return os.geteuid() == 0


def eventually(what, fn, seconds=20):
    """Until it is so; the limit only ends a test that fails."""
    end = time.monotonic() + seconds
    while not fn():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def parse_attempts(text):
    return {name: int(code) for name, code in (line.split() for line in text.splitlines())}


def groups(callers):
    """Groups that these processes made: in the cgroups of this process, or anywhere if systemd makes them."""
    found = []
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for m in mounts:
            kind = m[m.index("-") + 1]
            if (kind == "cgroup2" and not controllers) or (
                    kind == "cgroup" and controllers
                    and controllers.split(",")[0] in m[-1].split(",")):
                found += Path(m[4]).rglob("snap-run-*") if kind == "cgroup2" else Path(m[4] + path).glob("snap-run-*")
    return [g for g in found if int(g.name.split("-")[3]) in callers]


def memory_group():
    """The group of this process that bounds memory in version 1; None with version 2."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            return f"/sys/fs/cgroup/memory{path}"
    return None


def owns_root_group():
    """In a container whose root group is its own, as docs/design/sandbox.md has it."""
    top = Path("/sys/fs/cgroup")
    return ((top / "cgroup.type").exists()  # the machine's own root group has none
            and os.access(top / "cgroup.procs", os.W_OK)
            and "memory" in (top / "cgroup.controllers").read_text().split())


def can_group():
    """Whether this process may make memory groups here."""
    if memory_group():
        return os.access(memory_group(), os.W_OK)
    runtime = "/run" if os.geteuid() == 0 else f"/run/user/{os.geteuid()}"
    return os.access(f"{runtime}/systemd/private", os.W_OK) or owns_root_group()  # systemd makes them, or we do


def main():
    root_can_enter()
    if USER:
        sys.argv.remove("--user")
        if os.geteuid() == 0:
            become_ordinary()
    for program in (DRIVER, ATTEMPTS):
        if not os.access(program, os.X_OK):
            skip_all(f"{program.name} cannot be reached by an ordinary user")
    os.chdir("/")
    snaptest.World = Box
    return snaptest.main()
