"""What tests of parts of a project have in common."""

import os
from pathlib import Path

from snaptest import needs_fuse

PART = "src/app"


def make(w):
    """A project with a part, and things outside that resemble what is in it."""
    needs_fuse()
    files = {
        "src/app/main.c": "int main(void);\n" * 30,
        "src/app/deep/er/x": "x\n",
        "src/app/gone": "goes\n",
        "src/app/twin": "the same bytes in two places\n" * 20,
        "src/other/twin-copy": "the same bytes in two places\n" * 20,
        "src/other/y": "y\n",
        "README": "read me\n",
        "docs/guide": "guide\n",
    }
    for name, text in files.items():
        path = w.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    os.link(w.project / "src/app/deep/er/x", w.project / "docs/linked")
    (w.project / "docs/sym").symlink_to("../README")
    os.chmod(w.project / "docs", 0o750)


def outside(w):
    """All that lies outside of the part, to the byte and the nanosecond."""
    seen = {}
    for top, dirs, names in os.walk(w.project):
        below = os.path.relpath(top, w.project)
        if below == PART:
            dirs.clear()
            continue
        for name in dirs + names:
            path = Path(top) / name
            st = os.lstat(path)
            what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            seen[os.path.join(below, name)] = (st.st_mode, st.st_uid, st.st_ino, st.st_size,
                                               st.st_mtime_ns if what is not None else 0, what)
    seen.pop(f"src/{os.path.basename(PART)}")
    return seen


def names(path):
    return sorted(os.path.relpath(os.path.join(top, name), path)
                  for top, dirs, files in os.walk(path) for name in dirs + files)
