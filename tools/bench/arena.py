"""Where a benchmark happens: one filesystem for all contestants, and a store of its own."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path


def run(*argv, cwd=None, env=None, check=True):
    done = subprocess.run([str(a) for a in argv], cwd=cwd, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, **(env or {})})
    if check and done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}error: '{' '.join(map(str, argv))}' "
                         f"ended with status {done.returncode}")
    return done.stdout


def timed(*argv, cwd=None, env=None):
    """Milliseconds that a command takes, or a function."""
    start = time.monotonic()
    if callable(argv[0]):
        argv[0]()
    else:
        run(*argv, cwd=cwd, env=env)
    return (time.monotonic() - start) * 1000


def unmount(path):
    for words in (["umount", path], ["umount", "-l", path], ["fusermount3", "-uz", path]):
        if subprocess.run([str(w) for w in words], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return


class Arena:
    """As root a fresh ext4 in an image file, else a directory; and what must be undone."""

    def __init__(self, scratch, size, loop):
        self.path = scratch / f"arena-{os.getpid()}"
        self.path.mkdir()
        self.undo = contextlib.ExitStack()
        self.undo.callback(shutil.rmtree, self.path, ignore_errors=True)
        self.kind = "directory"
        self.outside = self.path
        if loop:
            self.path = self.disk("disk", size, "mkfs.ext4", "-q", "-F", "-E",
                                  "lazy_itable_init=0,lazy_journal_init=0")
            self.kind = "ext4 in an image file"

    def disk(self, name, size, *mkfs):
        """Another one of that size, mounted."""
        image, path = self.outside / f"{name}.image", self.outside / name
        with open(image, "wb") as f:
            f.truncate(size)
        path.mkdir()
        run(*mkfs, image)
        run("mount", "-o", "loop,noatime", image, path)
        self.undo.callback(unmount, path)
        return path

    def fresh_dir(self, name):
        path = self.path / name
        path.mkdir(parents=True)
        return path

    def close(self):
        """Not to be interrupted."""
        before = {number: signal.signal(number, signal.SIG_IGN)
                  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        self.undo.close()
        for number, handler in before.items():
            signal.signal(number, handler)


class Store:
    """A private store and its daemon, which ends with the arena."""

    def __init__(self, arena, program, name="store"):
        self.program, self.path = program, arena.path / name
        home = arena.path / "home"
        home.mkdir(exist_ok=True)
        self.env = {"HOME": str(home), "SNAPCOW_STORE": str(self.path)}
        arena.undo.callback(self.end)

    def snap(self, *words, cwd, check=True):
        out = run(self.program, "--json", *words, cwd=cwd, env=self.env, check=check)
        return json.loads(out) if out else None

    def timed(self, *words, cwd):
        """Milliseconds of the whole command, as a person waits for it."""
        return timed(self.program, *words, cwd=cwd, env=self.env)

    def daemon(self):
        """Its process id."""
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == b"cowfsd" and words[1] == os.fsencode(self.path):
                return int(entry.name)
        return None

    def memory(self):
        """Resident bytes of the daemon."""
        status = Path(f"/proc/{self.daemon()}/status").read_text()
        return int(next(line for line in status.splitlines()
                        if line.startswith("VmRSS")).split()[1]) * 1024

    def stored(self, cwd):
        """Bytes of what is stored; the files may have room to spare, or a log to work off."""
        return self.snap("stats", cwd=cwd)["stored"]

    def end(self):
        self.snap("stop", "--force", cwd="/", check=False)
        pid = self.daemon()
        if pid:
            os.kill(pid, signal.SIGKILL)
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if line.split()[4].startswith(f"{self.path}/"):
                unmount(line.split()[4])


class Asking:
    """A connection to the daemon: what a verb costs without starting a program."""

    def __init__(self, store, cwd):
        self.cwd = str(cwd)
        folder = os.open(store.path / "run", os.O_PATH)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(f"/proc/self/fd/{folder}/cowfsd.sock")
        os.close(folder)
        self.lines = self.socket.makefile("rb")
        hello = json.loads(self.lines.readline())["cowfsd"]
        self.send({"client": {"protocol": hello["protocol"], "version": hello["version"]}})

    def send(self, question):
        self.socket.sendall(json.dumps(question).encode() + b"\n")

    def ask(self, verb, **options):
        """Milliseconds, and the answer."""
        start = time.monotonic()
        self.send({"ask": verb, "watch": False, "dir": self.cwd, "home": None, "options": options})
        while True:
            line = json.loads(self.lines.readline())
            if "error" in line:
                raise SystemExit(f"error: {verb}: {line['error']['message']}")
            if "answer" in line:
                return (time.monotonic() - start) * 1000, line["answer"]

    def clone(self, name, snapshot):
        """A clone of that name; milliseconds."""
        return self.ask("clone", name=name, **{"from": snapshot}, count=1, ttl_ms=0, quota=0,
                        strict=False, private=False, no_xattrs=False, skip_unreadable=False, lazy=False,
                        eager=False, owner=0, carry=False, expect=0, last=False)[0]
