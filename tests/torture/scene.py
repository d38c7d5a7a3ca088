"""Where a torture takes place: a directory with a store, projects and logs, and the processes there.

Everything happens in namespaces of its own for mounts and processes, so that nothing is left on
the machine however it ends, and whatever is left in them at the end was left by the program.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

STORE_MIB, PROJECT_MIB = 768, 24
COMMAND_S = 300  # after which a command counts as hung
STORE_NAMES = {
    "calls",
    "changes",
    "chunks.db",
    "chunks.db-shm",
    "chunks.db-wal",
    "clones",
    "cowfsd.log",
    "cowfsd.log.1",
    "damaged",
    "events",
    "experiments",
    "firings",
    "growth",
    "journal",
    "lock",
    "meta.db",
    "meta.db-shm",
    "meta.db-wal",
    "remote",
    "reserve",
    "run",
    "runs",
    "signatures",
    "stash",
    "trails",
    "trash",
    "watch",
}


class Broken(Exception):
    """Something that must be true is not."""


class Interrupted(Exception):
    """Something failed, and somebody had disturbed it."""


class Result:
    def __init__(self, words, status, out, err):
        self.words, self.status, self.out, self.err = words, status, out, err

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as e:
            raise Broken(f"no JSON\n{self}") from e

    def __str__(self):
        return (f"snap {' '.join(map(str, self.words))}: status {self.status}\n"
                f"stdout: {self.out[:3000]!r}\nstderr: {self.err[:3000]!r}")


class Scene:
    def __init__(self, top, program, sanitizer, workers):
        self.top, self.program, self.sanitizer = Path(top), program, sanitizer
        self.disk, self.reports, self.tmp = self.top / "disk", self.top / "reports", self.top / "tmp"
        self.store, self.home = self.disk / "store", self.top / "home"
        self.projects = [self.top / "work" / f"disk{i}" / f"p{i}" for i in range(workers)]
        self.mounted = []
        self.root = os.geteuid() == 0
        for folder in (self.disk, self.reports, self.tmp, self.home, self.projects[0].parent):
            folder.mkdir(parents=True)
        if self.root:
            self.mount_disks()
        for folder in self.projects:
            folder.mkdir(parents=True)
        (self.top / "tsan.supp").write_bytes(
            (Path(__file__).parent / "tsan.supp").read_bytes())
        log = f"log_path={self.reports}/report:exitcode=99"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SNAPCOW_", "XDG_"))}
        self.env.update(
            HOME=str(self.home), SNAPCOW_STORE=str(self.store), LC_ALL="C.UTF-8", TMPDIR=str(self.tmp),
            ASAN_OPTIONS=f"{log}:detect_leaks=0:quarantine_size_mb=16:detect_stack_use_after_return=1",
            UBSAN_OPTIONS=f"{log}:halt_on_error=1:print_stacktrace=1",
            TSAN_OPTIONS=f"{log}:halt_on_error=0:second_deadlock_stack=1:history_size=5:"
                         f"suppressions={self.top}/tsan.supp")

    def mount_disks(self):
        """The store on an ext4 of its own, so that it can be filled; the first project on a small tmpfs."""
        image = self.top / "disk.img"
        with open(image, "wb") as f:
            f.truncate(STORE_MIB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, stderr=subprocess.PIPE)
        self.mount("-o", "loop", image, self.disk)
        self.mount("-t", "tmpfs", "-o", f"size={PROJECT_MIB}m", "none", self.projects[0].parent)

    def mount(self, *words):
        subprocess.run(["mount", *words], check=True, stderr=subprocess.PIPE)
        self.mounted.append(words[-1])

    # --- the program ---------------------------------------------------------------------

    def snap(self, *words, cwd, kill_after=None):
        """What became of a command; None if it was killed."""
        p = subprocess.Popen([self.program, *words], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = p.communicate(timeout=COMMAND_S if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            if kill_after is None:
                self.stacks()
            p.kill()
            # What it started may hold the pipes for a moment.
            out, err = p.communicate(timeout=COMMAND_S)
            if kill_after is None:
                raise Broken(f"hangs: snap {words}\n{out!r}\n{err!r}") from None
            return None
        result = Result(words, p.returncode, out, err)
        if p.returncode in (99, -signal.SIGSEGV, -signal.SIGABRT):
            raise Broken(f"a sanitizer found something, or it crashed\n{result}")
        return result

    def daemon(self):
        """The process id of cowfsd, or None."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if words[0] == b"cowfsd" and words[1] == os.fsencode(self.store):
                        return int(entry.name)
        return None

    def kill_daemon(self):
        pid = self.daemon()
        if pid is None:
            return False
        try:
            fd = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        ended, _, _ = select.select([fd], [], [], 60)
        os.close(fd)
        if not ended:
            raise Broken(f"cowfsd {pid} outlives kill -9")
        return True

    def use(self):
        """Descriptors and resident bytes of cowfsd, if there is one."""
        pid = self.daemon()
        with contextlib.suppress(OSError, TypeError):
            status = Path(f"/proc/{pid}/status").read_text()
            rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            return len(os.listdir(f"/proc/{pid}/fd")), rss << 10
        return None

    def stacks(self):
        """Of what hangs, for whoever looks at the scene."""
        pid = self.daemon()
        if pid and shutil.which("gdb"):
            with open(self.top / "stacks.txt", "w") as f:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"],
                                   check=False, stdout=f, stderr=f, stdin=subprocess.DEVNULL, timeout=120)

    # --- what must be true at the end ---------------------------------------------------------------------

    def sanitizers_are_silent(self):
        for log in [*self.reports.iterdir(), *self.store.glob("cowfsd.log*")]:
            with contextlib.suppress(FileNotFoundError):
                text = log.read_text(errors="replace")
                if "Sanitizer" in text or "runtime error" in text:
                    at = max(0, min(i for i in (text.find("Sanitizer"), text.find("runtime error"))
                                    if i >= 0) - 200)
                    raise Broken(f"in '{log.name}':\n{text[at:at + 6000]}")

    def nothing_is_left(self, own):
        """No process, mount, stage, journal or temporary file."""
        left = [f"process {p.name}: {words!r}" for p in Path("/proc").iterdir() if p.name.isdigit()
                and int(p.name) not in own and (words := command_of(p))] if self.root else []
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
        own_mounts = {str(m) for m in self.mounted}
        left += [f"mount {m}" for m in (line.split()[4] for line in lines)
                 if m.startswith(f"{self.top}/") and m not in own_mounts]
        for project in self.projects:
            left += [str(p) for p in project.glob(".snapcow-*")]
        for folder in (self.store / "journal", self.store / "clones", self.store / "trash", self.tmp):
            left += [str(p) for p in folder.iterdir()] if folder.exists() else []
        left += [str(p) for p in self.store.iterdir() if p.name not in STORE_NAMES]
        if left:
            raise Broken("left behind:\n  " + "\n  ".join(left[:20]))

    def databases_are_sound(self):
        """As SQLite itself sees them, with nobody at work."""
        for name in ("meta.db", "chunks.db"):
            with contextlib.closing(sqlite3.connect(self.store / name)) as db:
                said = db.execute("PRAGMA integrity_check").fetchone()[0]
            if said != "ok":
                raise Broken(f"SQLite says of {name}: {said}")

    def close(self, keep):
        """Take down what was set up; of a scene that is kept the files stay."""
        if keep and self.root:
            for number, project in enumerate(self.projects[:1]):
                shutil.copytree(project, self.top / f"kept-p{number}", symlinks=True,
                                ignore=lambda top, names: [n for n in names if is_fifo(top, n)])
        os.chdir("/")
        for point in reversed(self.mounted):
            subprocess.run(["umount", "-l", point], check=False)
        if not keep:
            shutil.rmtree(self.top, ignore_errors=True)


def is_fifo(top, name):
    return Path(os.path.join(top, name)).is_fifo()


def command_of(process):
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_bytes().replace(b"\0", b" ")
    return b""
