"""Random things that programs do to a directory, each one step of a prefix.

A step is a tuple. apply() says what it leads to, perform() does it in the current directory.
The same seed and the same state give the same step.
"""

import errno
import os
import random

from tree import NOTE, Node, names_of

NAMES = [b"a", b"b", b"c", b"lib", b"src", b"main", b"x y", b"n\xc3\xa9e", b"raw\xff\xfe", b"Z" * 200]
PAGE = 4096
ENTRIES_MAX, DEPTH_MAX, SIZE_MAX = 40, 4, 200_000
SHARED = 0.2  # of contents are such as others have too
WEIGHTS = {"create": 14, "write": 22, "truncate": 4, "rename": 8, "unlink": 7, "mkdir": 6, "rmdir": 4,
           "symlink": 3, "link": 4, "chmod": 4, "note": 3, "fifo": 1, "fsync": 3}
QUIET = {**WEIGHTS, "rename": 1}  # for those whose merges should be foreseen


def content(seed, size):
    """Text or bytes, by its seed alone."""
    rng = random.Random(seed)
    if seed % 2:
        text = rng.randbytes(size).hex(" ", 4).encode()[:size]
        return text.replace(b" ", b"\n")
    return bytes(1) + rng.randbytes(size - 1) if size else b""


class Script:
    """Steps without end."""

    def __init__(self, seed, weights=None, notes=True):
        self.rng = random.Random(seed)
        weights = dict(weights or WEIGHTS)
        if not notes:
            weights["note"] = 0
        self.kinds, self.weights = zip(*weights.items())

    def next(self, state):
        while True:
            weights = self.weights
            if len(state) >= ENTRIES_MAX:
                weights = [0 if k in ("create", "mkdir", "symlink", "link", "fifo") else w
                           for k, w in zip(self.kinds, weights)]
            kind = self.rng.choices(self.kinds, weights)[0]
            step = getattr(self, kind)(state)
            if step:
                return (kind, *step)

    # --- what to do it to ---------------------------------------------------------------------

    def some(self, state, *kinds):
        found = sorted(p for p, n in state.items() if n.kind in kinds)
        return self.rng.choice(found) if found else None

    def place(self, state):
        """Where nothing is."""
        folders = [b""] + sorted(p for p, n in state.items()
                                 if n.kind == "dir" and p.count(b"/") < DEPTH_MAX - 1)
        path = os.path.join(self.rng.choice(folders), self.rng.choice(NAMES))
        return None if path in state else path

    # --- steps ---------------------------------------------------------------------

    def create(self, state):
        path = self.place(state)
        return path and (path, self.rng.choice((0o644, 0o600, 0o755)))

    def write(self, state):
        path = self.some(state, "file")
        if not path:
            return None
        size = len(state[path].data)
        at = self.rng.choice((0, size, self.rng.randrange(size + PAGE))) // PAGE * PAGE
        more = self.rng.choice((10, 300, 5000, 30_000, 70_000))
        if at + more > SIZE_MAX:
            at = 0
        seed = self.rng.randrange(8) if self.rng.random() < SHARED else self.rng.getrandbits(48)
        return path, at, seed, more

    def truncate(self, state):
        path = self.some(state, "file")
        return path and (path, self.rng.choice((0, 0, 1, 5000, 100_000)))

    def rename(self, state):
        source = self.some(state, "file", "dir", "link")
        if not source:
            return None
        if self.rng.random() < 0.4 and state[source].kind != "dir":
            target = self.some(state, "file", "link")
            if not target or state[target] is state[source]:
                return None
        else:
            target = self.place(state)
            if not target or target.startswith(source + b"/"):
                return None
        return source, target

    def unlink(self, state):
        path = self.some(state, "file", "link", "fifo")
        return path and (path,)

    def mkdir(self, state):
        path = self.place(state)
        return path and (path,)

    def rmdir(self, state):
        path = self.some(state, "dir")
        if not path or any(p.startswith(path + b"/") for p in state):
            return None
        return (path,)

    def symlink(self, state):
        path = self.place(state)
        return path and (path, self.rng.choice(NAMES))

    def link(self, state):
        source, path = self.some(state, "file"), self.place(state)
        return (source, path) if source and path else None

    def chmod(self, state):
        path = self.some(state, "file", "dir")
        if not path:
            return None
        modes = (0o755, 0o700) if state[path].kind == "dir" else (0o644, 0o600, 0o755)
        return path, self.rng.choice(modes)

    def note(self, state):
        path = self.some(state, "file", "dir")
        return path and (path, b"%d" % self.rng.randrange(1000))

    def fifo(self, state):
        path = self.place(state)
        return path and (path,)

    def fsync(self, state):
        path = self.some(state, "file")
        return path and (path,)


def apply(state, step):
    """The state after it."""
    kind, path, *rest = step
    new = dict(state)

    def put(node):
        for name in names_of(state, state[path]):
            new[name] = node

    if kind == "create":
        new[path] = Node("file", rest[0])
    elif kind == "write":
        at, seed, more = rest
        was = state[path].data
        put(state[path].but(data=was[:at].ljust(at, b"\0") + content(seed, more) + was[at + more:]))
    elif kind == "truncate":
        put(state[path].but(data=state[path].data[:rest[0]].ljust(rest[0], b"\0")))
    elif kind == "rename":
        for p in [p for p in state if p == path or p.startswith(path + b"/")]:
            new[rest[0] + p[len(path):]] = new.pop(p)
    elif kind in ("unlink", "rmdir"):
        del new[path]
    elif kind == "mkdir":
        new[path] = Node("dir", 0o755)
    elif kind == "symlink":
        new[path] = Node("link", 0o777, rest[0])
    elif kind == "link":
        new[rest[0]] = state[path]
    elif kind == "chmod":
        put(state[path].but(mode=rest[0]))
    elif kind == "note":
        put(state[path].but(note=rest[0]))
    elif kind == "fifo":
        new[path] = Node("fifo", 0o600)
    return new


def touched(state, step):
    """The paths that may be in between if it fails half way."""
    kind, path, *rest = step
    paths = [path] + ([rest[0]] if kind in ("rename", "link") else [])
    return sorted({name for p in paths
                   for name in ([p] if p not in state else names_of(state, state[p]))})


def perform(step):
    """Do it, below the current directory."""
    kind, path, *rest = step
    if kind == "create":
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rest[0]))
    elif kind == "write":
        at, seed, more = rest
        with_file(path, os.O_WRONLY, lambda fd: whole(os.pwrite(fd, content(seed, more), at), more))
    elif kind == "truncate":
        with_file(path, os.O_WRONLY, lambda fd: os.ftruncate(fd, rest[0]))
    elif kind == "fsync":
        with_file(path, os.O_RDONLY, os.fsync)
    elif kind == "note":
        os.setxattr(path, NOTE, rest[0])
    elif kind == "link":
        os.link(path, rest[0], follow_symlinks=False)
    elif kind == "symlink":
        os.symlink(rest[0], path)
    elif kind == "mkdir":
        os.mkdir(path, 0o755)
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    else:
        getattr(os, kind)(path, *rest)


def with_file(path, flags, act):
    fd = os.open(path, flags | os.O_NOFOLLOW)
    try:
        act(fd)
    finally:
        os.close(fd)


def whole(done, size):
    """A write that is cut short has met the end of the room."""
    if done != size:
        raise OSError(errno.ENOSPC, "a write was cut short")
