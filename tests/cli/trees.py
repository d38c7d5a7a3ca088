"""A tree with everything that one can hold, and all that a tree shows."""

import hashlib
import os
import random
import stat
from pathlib import Path


def walk(top):
    """All that a tree shows: names, bytes, modes, owners, times, attributes, links, holes."""
    found, links = {}, {}
    for folder, dirs, files in os.walk(os.fsencode(top)):
        for name in [b"", *dirs, *files]:
            path = os.path.join(folder, name) if name else folder
            st = os.lstat(path)
            what = [st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns]
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what += [st.st_size, hashlib.sha256(f.read()).hexdigest(), data_in(f)]
            if stat.S_ISLNK(st.st_mode):
                what.append(os.readlink(path))
            else:
                what.append(sorted((x, os.getxattr(path, x)) for x in os.listxattr(path)
                                   if not x.startswith("security.")))
            if not stat.S_ISDIR(st.st_mode):
                what.append(st.st_nlink)
                links.setdefault(st.st_ino, set()).add(os.path.relpath(path, os.fsencode(top)))
            found[os.path.relpath(path, os.fsencode(top))] = what
    return found, sorted(sorted(x) for x in links.values() if len(x) > 1)


def data_in(f):
    """Where a file has data, in blocks of 64 KiB, as the store keeps holes."""
    size, at, runs = os.fstat(f.fileno()).st_size, 0, []
    while at < size:
        try:
            at = os.lseek(f.fileno(), at, os.SEEK_DATA)
        except OSError:
            break
        runs.append(at // 65536)
        at = (at // 65536 + 1) * 65536
    return runs


def furnish(top, files=120):
    """Everything that a tree can hold."""
    dice = random.Random(7)
    for i in range(files):
        path = top / f"dir{i % 7}" / f"sub{i % 3}" / f"file{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dice.randbytes(dice.randrange(1, 9000)))
    wide = top / "wide"  # several nodes
    wide.mkdir()
    for i in range(1500):
        (wide / f"n{i:05}").write_text(str(i))
    (top / "large").write_bytes(dice.randbytes(300_000))
    with open(top / "sparse", "wb") as f:
        f.truncate(40 << 20)
        f.seek(20 << 20)
        f.write(b"middle")
    (top / "all-hole").touch()
    os.truncate(top / "all-hole", 1 << 20)
    (top / "empty").touch()
    (top / "nothing").mkdir(mode=0o711)
    os.link(top / "large", top / "dir0" / "hard")
    os.link(top / "large", top / "harder")
    (top / "symlink").symlink_to("dir1/sub1")
    os.link(top / "symlink", top / "symlink-too", follow_symlinks=False)
    os.mkfifo(top / "fifo", 0o640)
    (top / "dir1" / "mode").write_text("x")
    os.chmod(top / "dir1" / "mode", 0o750)
    os.utime(top / "dir1" / "mode", ns=(1, 1_234_567_890_123_456_789))
    (Path(os.fsdecode(os.fsencode(top) + b"/bad\xff\\name"))).write_text("y")
    try:
        os.setxattr(top / "dir1" / "mode", "user.color", b"blue\0green")
        os.setxattr(top / "dir2", "user.dir", b"1")
    except OSError:
        pass
    if os.geteuid() == 0:
        os.chown(top / "dir2" / "sub2" / "file2", 1234, 4321)


def differences(before, after):
    """Of two walks."""
    names = before[0].keys() | after[0].keys()
    differ = [(name, before[0].get(name), after[0].get(name)) for name in names
              if before[0].get(name) != after[0].get(name)]
    return differ or [("hard links", before[1], after[1])] * (before[1] != after[1])
