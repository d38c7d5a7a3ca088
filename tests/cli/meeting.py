"""Two clones that changed the same files, each in a way of its own."""

from pathlib import Path

from snaptest import needs_fuse

LINES = "".join(f"line {i}\n" for i in range(1, 21))


def clone(w, name, *args):
    needs_fuse()
    got = w.ok("clone", "--json", "-n", name, *args).json("snap.clone/1", "path")
    return Path(got["path"])


def two_clones(w):
    for name in ("hunks", "lines", "same", "gone", "mode"):
        (w.project / name).write_text(LINES)
    (w.project / "blob").write_bytes(b"\0\1\2")
    a, b = clone(w, "a"), clone(w, "b")
    (a / "hunks").write_text(LINES.replace("line 2\n", "a\n"))
    (b / "hunks").write_text(LINES.replace("line 19\n", "b\nb2\n"))
    (a / "lines").write_text(LINES.replace("line 9\n", "from a\n"))
    (b / "lines").write_text(LINES.replace("line 9\n", "from b\n"))
    for top in (a, b):
        (top / "same").write_text("the same\n")
    (a / "gone").unlink()
    (b / "gone").write_text("changed\n")
    (a / "blob").write_bytes(b"\0a")
    (b / "blob").write_bytes(b"\0b")
    (a / "mode").chmod(0o600)
    (b / "mode").write_text(LINES + "more\n")
    (a / "only").write_text("a\n")
    return a, b
