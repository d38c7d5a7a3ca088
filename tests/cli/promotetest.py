"""What the tests of promotion and undo share."""

import ctypes
import hashlib
import os
import stat
from pathlib import Path

from snaptest import needs_fuse

KEYS = ("promotion", "changed", "merged", "conflicts", "held", "checks", "before", "after")
ATTRIBUTE = "user.note"


def clone(w, name="try", *args):
    needs_fuse()
    got = w.ok("clone", "--json", "-n", name, *args).json("snap.clone/1", "path")
    return Path(got["path"])


def promote(w, *args, **more):
    return w.ok("promote", "--json", *args, **more).json("snap.promote/1", *KEYS)


def refused(w, status, code, *args):
    """It changed nothing, and says what it would have done."""
    return w.snap(*args, "--json").fails_json(status, code)["data"]


def undo(w, *args, **more):
    return w.ok("undo", "--json", *args, **more).json("snap.undo/1", "undone", "changed")


def log(w):
    return w.ok("log", "--json").json("snap.log/1", "snapshots", "receipts")


def kept(w):
    """All that a promotion could leave: snapshots, receipts, clones, journals, stages."""
    got = w.ok("log", "--all", "--json").json("snap.log/1", "snapshots", "receipts")
    clones = w.ok("list", "--json").json("snap.list/1", "clones")["clones"]
    journal = w.store / "journal"
    return ([s["snapshot"] for s in got["snapshots"]],
            [(r["receipt"], r["undone"]) for r in got["receipts"]],
            sorted(c["clone"] for c in clones),
            sorted(p.name for p in journal.iterdir()) if journal.exists() else [],
            sorted(p.name for p in w.project.glob(".snapcow-stage-*")))


def statuses(got, key="changed"):
    return {p["path"]: p["status"] for p in got[key]}


def holes(path):
    """Where its data begins and ends."""
    found, at = [], 0
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        while at < size:
            try:
                data = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(f.fileno(), data, os.SEEK_HOLE)
            found.append((data, at))
    return found


def attributes(path):
    return {n: os.getxattr(path, n, follow_symlinks=False)
            for n in os.listxattr(path, follow_symlinks=False)}


def picture(top, skip=()):
    """All that is promised: names, types, modes, owners, times, attributes, bytes, links."""
    seen, groups = {}, {}
    for dirpath, dirs, files in os.walk(os.fsencode(top)):
        dirs[:] = [d for d in dirs if d not in skip]
        links = [d for d in dirs if os.path.islink(os.path.join(dirpath, d))]
        for name in [b".", *files, *links]:
            path = os.path.join(dirpath, name)
            st = os.lstat(path)
            rel = os.path.relpath(path, os.fsencode(top))
            what = (stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns,
                    tuple(sorted(attributes(path).items())))
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what += (st.st_size, hashlib.sha256(f.read()).hexdigest())
                groups.setdefault(st.st_ino, []).append(rel)
            elif stat.S_ISLNK(st.st_mode):
                what += (os.readlink(path),)
            elif not stat.S_ISDIR(st.st_mode):
                what += (st.st_rdev,)
            seen[rel] = what
    return seen, sorted(sorted(g) for g in groups.values() if len(g) > 1)


def differs(a, b):
    """What makes two pictures differ, for the sentence of a test that fails."""
    names = {k for k in a[0].keys() | b[0].keys() if a[0].get(k) != b[0].get(k)}
    links = None if a[1] == b[1] else (a[1], b[1])
    return {k: (a[0].get(k), b[0].get(k)) for k in sorted(names)[:5]}, links


def same(a, b):
    assert a == b, differs(a, b)


def has_attributes(path):
    try:
        os.setxattr(path, ATTRIBUTE, b"1")
    except OSError:
        return False
    return True


def fill(top):
    """Something of each sort, to be changed by change()."""
    for i in range(40):
        folder = top / "lib" / f"d{i % 8}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{i}").write_text("".join(f"line {n} of {i}\n" for n in range(30)))
    (top / "tool").write_text("#!/bin/sh\n")
    (top / "tool").chmod(0o755)
    (top / "link").symlink_to("README.md")
    (top / "gone").mkdir()
    (top / "gone" / "file").write_text("to be removed\n")
    (top / "one").write_text("two names\n")
    os.link(top / "one", top / "two")
    (top / "was-file").write_text("then a directory\n")
    (top / "was-dir").mkdir()
    (top / "was-dir" / "in").write_text("then gone\n")
    has_attributes(top / "README.md")
    for path in sorted(top.rglob("*"), reverse=True):
        os.utime(path, ns=(10**18, 10**18 + 123456789), follow_symlinks=False)


def change(top, n=40):
    """As a busy afternoon would."""
    for i in range(n):
        path = top / "lib" / f"d{i % 8}" / f"f{i}"
        if i % 4 == 0 and path.exists():
            path.unlink()
        elif i % 4 == 1 and path.exists():
            path.write_text(path.read_text().replace("line 3 ", "LINE 3 "))
        elif i % 4 == 2:
            (top / "new" / f"n{i}").mkdir(parents=True)
            (top / "new" / f"n{i}" / "file").write_text(f"new {i}\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            path.chmod(0o600)
    (top / "tool").chmod(0o700)
    (top / "link").unlink()
    (top / "link").symlink_to("lib")
    (top / "gone" / "file").unlink()
    (top / "gone").rmdir()
    os.mkfifo(top / "pipe")
    os.link(top / "one", top / "three")
    (top / "two").unlink()
    (top / "was-file").unlink()
    (top / "was-file").mkdir()
    (top / "was-file" / "in").write_text("now a directory\n")
    (top / "was-dir" / "in").unlink()
    (top / "was-dir").rmdir()
    (top / "was-dir").write_text("now a file\n")
    with open(top / "sparse", "wb") as f:
        f.truncate(1 << 20)
        f.seek(1 << 19)
        f.write(b"data")
    (top / "née\n\x01").write_text("a name\n")
    os.utime(top / "sparse", ns=(10**18, 10**18 + 7))
    if has_attributes(top / "sparse"):
        os.setxattr(top / "README.md", ATTRIBUTE, b"2")


# --- what somebody else sees ------------------------------------------------------------------

class Watch:
    """Who opens or changes something in directories that are none of our business (fanotify)."""

    FAN_EVENTS = 0x1 | 0x2 | 0x8 | 0x10 | 0x20 | 0x08000000  # access, modify, close, open; of children

    def __init__(self, *folders):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.fanotify_init(0x2 | 0x1, os.O_RDONLY)  # nonblocking, cloexec
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "fanotify_init")
        for folder in folders:
            r = self.libc.fanotify_mark(self.fd, 1, ctypes.c_uint64(self.FAN_EVENTS | 0x40000000),
                                        -100, os.fsencode(folder))
            if r < 0:
                raise OSError(ctypes.get_errno(), "fanotify_mark")

    def pids(self):
        """Of those who did something since."""
        found = set()
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return found
            while data:
                size = int.from_bytes(data[:4], "little")
                fd = int.from_bytes(data[16:20], "little", signed=True)
                found.add(int.from_bytes(data[20:24], "little"))
                if fd >= 0:
                    os.close(fd)
                data = data[size:]

    def end(self):
        os.close(self.fd)


def daemon(w):
    got = w.ok("version", "--json").json("snap.version/1")["daemon"]
    return got["pid"] if got else None
