"""What a directory holds: as it should be, as it is, and how the two differ.

A state is a dict of paths (bytes, counted from the top) and nodes. A file with several names is
one node at several paths. A picture is a state without its bytes, cheap enough to keep for ever.
"""

import hashlib
import os
import stat

NOTE = b"user.note"  # the one extended attribute that is used
KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


class Node:
    """Never changed once it is in a state: another content is another node."""

    __slots__ = ("kind", "mode", "data", "note", "sum")

    def __init__(self, kind, mode, data=b"", note=None):
        self.kind, self.mode, self.data, self.note, self.sum = kind, mode, data, note, None

    def but(self, **changes):
        was = {"kind": self.kind, "mode": self.mode, "data": self.data, "note": self.note}
        return Node(**{**was, **changes})

    def digest(self):
        if self.sum is None:
            self.sum = hashlib.sha256(self.data).hexdigest()[:32]
        return self.sum


def names_of(state, node):
    return sorted(p for p, n in state.items() if n is node)


def picture(state):
    """path -> (kind, mode, size, digest, note, first of its names if there are several)."""
    names = {}
    for path, node in state.items():
        names.setdefault(id(node), []).append(path)
    return {path: (n.kind, n.mode, len(n.data), n.digest(), n.note,
                   min(names[id(n)]) if len(names[id(n)]) > 1 else None)
            for path, n in state.items()}


def scan(top, errors=None, leave=()):
    """The state of a directory. Paths that cannot be read go to `errors`, if that is a list."""
    state, several = {}, {}
    top = os.fsencode(top)

    def enter(folder):
        with os.scandir(os.path.join(top, folder)) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                path = os.path.join(folder, entry.name)
                if not folder and entry.name in leave:
                    continue
                try:
                    st = entry.stat(follow_symlinks=False)
                    key = (st.st_dev, st.st_ino)
                    if st.st_nlink > 1 and key in several:
                        state[path] = several[key]
                        continue
                    node = look(os.path.join(top, path), st)
                    state[path] = node
                    if node.kind == "dir":
                        enter(path)
                    elif st.st_nlink > 1:
                        several[key] = node
                except OSError as e:
                    if errors is None:
                        raise
                    errors.append((path, e.errno))

    try:
        enter(b"")
    except OSError as e:
        if errors is None:
            raise
        errors.append((b"", e.errno))
    return state


def look(path, st):
    kind = KINDS.get(stat.S_IFMT(st.st_mode), "other")
    data, note = b"", None
    if kind == "file":
        with open(path, "rb", buffering=0) as f:
            data = f.read()
    elif kind == "link":
        data = os.readlink(path)
    if kind in ("file", "dir") and NOTE.decode() in os.listxattr(path):
        note = os.getxattr(path, NOTE)
    return Node(kind, stat.S_IMODE(st.st_mode), data, note)


def below(path, tops):
    return any(path == top or path.startswith(top + b"/") or not top for top in tops)


def without(pic, tops):
    """A state or picture without what is at and below these paths."""
    return {p: n for p, n in pic.items() if not below(p, tops)} if tops else pic


def part(pic, top):
    """What is below `top`, with paths counted from there; names of links elsewhere do not count."""
    cut = len(top) + 1
    found = {}
    for path, what in pic.items():
        if path.startswith(top + b"/"):
            if isinstance(what, tuple) and what[5] is not None:
                what = (*what[:5], what[5][cut:])
            found[path[cut:]] = what
    return found


def differs(got, want, ignore=()):
    """How two pictures differ, as a sentence; None if they do not."""
    got, want = without(got, ignore), without(want, ignore)
    if got == want:
        return None
    paths = sorted(p for p in got.keys() | want.keys() if got.get(p) != want.get(p))
    lines = [f"{p!r}: is {got.get(p)}, should be {want.get(p)}" for p in paths[:6]]
    return f"{len(paths)} paths differ\n  " + "\n  ".join(lines)
