"""A clone that means harm, and somebody who helps it from inside the project: nothing outside is ever touched.

Each promotion here is watched by strace: of every call of cowfsd that changes a file, what it changes is resolved
by the descriptor it is named by, and must lie in the project or in the store. Besides, all that is around the
project is compared before and after, times of change included. As root, and with --user as an ordinary user.
"""

import ctypes
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import LONG, live_test  # noqa: E402
from promotetest import (Watch, attributes, clone, daemon, kept, picture, promote, refused, same,  # noqa: E402
                         statuses)
from snaptest import SNAP, Skip  # noqa: E402

ROUNDS = 200 if LONG else 10
RENAME_EXCHANGE = 2
CHANGING = ("open", "openat", "openat2", "creat", "write", "pwrite64", "writev", "pwritev", "rename", "renameat",
            "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "symlink",
            "symlinkat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "chown", "lchown", "fchown", "fchownat",
            "utimensat", "utimes", "futimesat", "truncate", "ftruncate", "fallocate", "setxattr", "lsetxattr",
            "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "copy_file_range", "sendfile")
STRING = r'"((?:[^"\\]|\\.)*)"'
FD = r"(?:AT_FDCWD|\d+)<((?:[^>\\]|\\.)*)>"
NO_FILES = re.compile(r"(socket|UNIX|UNIX-STREAM|pipe|anon_inode|/dev/fuse|/dev/null|/memfd:)")
ODD = ["a\nb", "\x1b[31mred\x1b[0m", "-rf", "~", "%s%n", " ", "a\\b", 'q"uote', "tab\t", "...", "..a", "b..", "$(id)",
       "a;b", "\udcff\udcfe", "é", "x" * 255]


# --- trees that nobody could remove ------------------------------------------------------------

@live_test
def a_tree_too_deep_to_be_named_is_not_made(w):
    path = clone(w)
    (path / "good").write_text("good\n")
    top = os.open(path, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=top)
        below = os.open("d", os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
    os.close(top)
    for more in ([], ["-n"]):
        result = w.snap("promote", *more, path.name).fails(7, "so deep")
        assert len(result.err) < 2000, "and the sentence is not as long as the path"
    assert not (w.project / "d").exists() and not (w.project / "good").exists()
    w.ok("promote", "--exclude", "d", path.name)
    assert (w.project / "good").read_text() == "good\n" and not (w.project / "d").exists()
    w.ok("rm", "--force", path.name)


# --- who changes what -------------------------------------------------------------------------

class Traced:
    """Every call of cowfsd meanwhile that changes something; at its end all of them are judged."""

    def __init__(self, w):
        if not shutil.which("strace"):
            raise Skip("there is no strace")
        self.w, self.pid, self.path = w, daemon(w), w.top / "trace"
        self.roots = [str(w.project), str(w.store)]
        self.seen = 0

    def __enter__(self):
        self.act = subprocess.Popen(["strace", "-f", "-y", "-p", str(self.pid), "-o", str(self.path), "-s", "4096",
                                     "-e", "trace=?" + ",?".join(CHANGING)], stderr=subprocess.PIPE)
        said = self.act.stderr.readline()
        if b"attached" not in said:
            self.act.communicate()
            raise Skip(f"strace cannot attach here: {said.decode().strip()}")
        return self

    def __exit__(self, kind, *_):
        self.act.terminate()
        try:
            self.act.communicate(timeout=1)
        except subprocess.TimeoutExpired:  # of a process that is new it may not get hold any more
            self.act.kill()
            self.act.communicate()
        if kind:
            return
        for line in joined(self.path.read_text(errors="surrogateescape").splitlines()):
            self.judge(line)
        assert self.seen > 0, "it did nothing at all"

    def judge(self, line):
        found = re.match(r"\d+\s+(\w+)\((.*)", line)
        if not found or " = -1 E" in line:
            return
        call, rest = found.groups()
        if call.startswith("open") and not re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", rest):
            return
        for target in targets(call, rest):
            if NO_FILES.match(target):
                continue
            self.seen += 1
            assert is_below(target, self.roots), f"{target} is none of its business: {line}"


def joined(lines):
    """Calls that another thread's interrupted in the trace, with how they ended."""
    begun = {}
    for line in lines:
        thread = line.split(None, 1)[0]
        if line.endswith(" <unfinished ...>"):
            begun[thread] = line.removesuffix(" <unfinished ...>")
        elif resumed := re.match(r"\d+\s+<\.\.\. \w+ resumed>(.*)", line):
            yield begun.pop(thread, thread) + resumed.group(1)
        else:
            yield line
    yield from begun.values()


def targets(call, rest):
    """What it names: directory and name, a path, or a descriptor alone."""
    pairs = re.findall(FD + ", " + STRING, rest)
    if call in ("renameat", "renameat2", "linkat", "unlinkat", "mkdirat", "symlinkat", "mknodat", "fchmodat",
                "fchownat", "utimensat", "openat", "openat2") and pairs:
        return [name if name.startswith("/") else f"{folder}/{name}" for folder, name in pairs]
    alone = re.match(FD, rest)
    if alone:
        return [alone.group(1)]
    return re.findall(STRING, rest)[:2 if call in ("rename", "link") else 1]


def is_below(path, roots):
    if "/../" in path or path.endswith("/.."):
        return False
    if re.match(r"/proc/\w+/task/\d+/comm$", path):
        return True  # a thread gets its name
    if path.startswith("/proc/self/fd/"):
        return True  # what was opened before, which was judged then; and the outside is compared
    return any(path == root or path.startswith(root + "/") for root in roots)


# --- what is around ---------------------------------------------------------------------------

def around(top):
    """More than a picture: who so much as touched it changed its ctime."""
    found = {}
    for path in [top, *top.rglob("*")]:
        st = os.lstat(path)
        found[str(path)] = (st.st_ino, st.st_mode, st.st_nlink, st.st_uid, st.st_mtime_ns, st.st_ctime_ns, st.st_size,
                            path.read_bytes() if stat.S_ISREG(st.st_mode) else None, tuple(attributes(path)))
    return found


def make_outside(w, name="outside"):
    top = w.top / name
    (top / "sub").mkdir(parents=True)
    for k in range(10):
        (top / f"f{k}").write_text("not yours\n")
        (top / "sub" / f"f{k}").write_text("not yours\n")
    (top / "secret").write_text("secret\n")
    (top / "secret").chmod(0o600)
    return top


def make_dir(top, text="old\n"):
    (top / "sub").mkdir(parents=True, exist_ok=True)
    for k in range(10):
        (top / f"f{k}").write_text(text)
        (top / "sub" / f"f{k}").write_text(text)


# --- the clone --------------------------------------------------------------------------------

@live_test
def links_of_a_clone_arrive_as_links_and_are_followed_by_nobody(w):
    outside = make_outside(w)
    make_dir(w.project / "dir")
    there, before = clone(w), around(outside)
    leads = {"absolute": str(outside), "up": "../../outside", "file": str(outside / "secret"), "self": "self",
             "passwd": "/etc/passwd", "root": "/", "dots": "..", "deep": "../" * 40 + "etc", "dangling": "/nonexistent/x"}
    for name, target in leads.items():
        (there / name).symlink_to(target)
    shutil.rmtree(there / "dir")
    (there / "dir").symlink_to(outside)
    (there / "chain").symlink_to("dir/sub")
    held(w, there, dict.fromkeys([*leads, "dir", "chain"], "link"))
    with Traced(w):
        got = promote(w, "try", *allow([*leads, "dir", "chain"]))
    assert got["conflicts"] == [] and got["held"] == [], got
    for name, target in {**leads, "dir": str(outside), "chain": "dir/sub"}.items():
        assert os.readlink(w.project / name) == target, name
    assert around(outside) == before
    # And now the other way: what was a link is a directory, with files of the same names as there.
    again = clone(w, "again")
    for name in ("absolute", "up", "dir", "dots"):
        (again / name).unlink()
        make_dir(again / name, "mine\n")
    with Traced(w):
        promote(w, "again")
        w.ok("undo")
    assert os.readlink(w.project / "dir") == str(outside) and around(outside) == before


@live_test
def a_directory_that_became_a_link_in_the_project_is_a_conflict_and_no_way_out(w):
    outside = make_outside(w)
    make_dir(w.project / "dir")
    there = clone(w)
    make_dir(there / "dir", "evil\n")
    (there / "dir" / "new").write_text("evil\n")
    shutil.rmtree(w.project / "dir")
    (w.project / "dir").symlink_to(outside)
    before, here = around(outside), picture(w.project)
    with Traced(w):
        refused(w, 5, "E_CONFLICT", "promote", "try")
        same(picture(w.project), here)
        for how in ("ours", "theirs", "markers"):
            w.snap("promote", "try", "--json", "--conflict", how)
            assert around(outside) == before, how
            w.snap("undo")


@live_test
def names_of_any_bytes_arrive_and_are_told_without_harm(w):
    outside = make_outside(w)
    before, there = around(outside), clone(w)
    (there / "in").mkdir()
    for name in ODD:
        (there / name).write_text("odd\n")
        (there / "in" / name).symlink_to(outside / "secret")
    with Traced(w):
        told = w.snap("promote", "try", "--allow", "in")
    # The guard may hold one for its name; it is printed as text, never as a terminal would take it.
    assert told.status == 0, told
    assert b"\x1b" not in told.out + told.err and b"a\nb" not in told.out, told
    for name in ODD:
        assert (w.project / name).read_text() == "odd\n", ascii(name)
    assert around(outside) == before


@live_test
def a_patch_of_odd_names_and_links_stays_where_it_is_applied(w):
    if not shutil.which("git"):
        raise Skip("there is no git")
    outside = make_outside(w)
    make_dir(w.project / "dir")
    copy = w.top / "work" / "copy"
    shutil.copytree(w.project, copy)
    before, there = around(outside), clone(w)
    (there / "out").symlink_to("../../outside")
    shutil.rmtree(there / "dir")
    (there / "dir").symlink_to(outside)
    names = [n for n in ODD if len(n) < 255]
    for name in names:
        (there / name).write_text("odd\n")
    patch = w.ok("diff", "try").out
    assert not re.search(rb'^(?:---|\+\+\+|rename \w+|copy \w+) "?(?:[ab]/)?(?:/|\.\./)(?!dev/null)', patch, re.M)
    done = subprocess.run(["git", "apply", "-"], cwd=copy, input=patch, check=False, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert (copy / name).read_text() == "odd\n", ascii(name)
    assert os.readlink(copy / "out") == "../../outside" and around(outside) == before


def allow(names):
    return [word for name in names for word in ("--allow", name)]


def held(w, there, paths):
    """All of these are held, and nothing has changed."""
    here = picture(w.project)
    got = refused(w, 7, "E_REFUSED", "promote", "try")
    assert {h["path"]: h["rule"] for h in got["held"]} == paths, got["held"]
    same(picture(w.project), here)


@live_test
def set_id_bits_devices_and_pipes_are_held_and_sockets_hold_up_nobody(w):
    there = clone(w)
    (there / "suid").write_text("#!/bin/sh\n")
    (there / "suid").chmod(0o4755)
    (there / "sgid").write_text("#!/bin/sh\n")
    (there / "sgid").chmod(0o2755)
    (there / "src" / "main.c").chmod(0o6755)
    wanted = {"suid": "set-id", "sgid": "set-id", "src/main.c": "set-id", "pipe": "fifo"}
    if os.geteuid() == 0:
        os.mknod(there / "disk", 0o666 | stat.S_IFBLK, os.makedev(7, 0))
        os.mknod(there / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        wanted.update(disk="device", zero="device")
    os.mkfifo(there / "pipe")
    with socket.socket(socket.AF_UNIX) as s:
        fd = os.open(there, os.O_PATH)
        s.bind(f"/proc/self/fd/{fd}/socket")
        os.close(fd)
    held(w, there, wanted)
    with Traced(w):
        got = promote(w, "try", "--exclude", "*id", "--exclude", "main.c", "--exclude", "disk", "--exclude", "zero",
                      "--allow", "pipe")
    assert statuses(got) == {"pipe": "added", "socket": "added"}, got
    assert stat.S_ISFIFO((w.project / "pipe").lstat().st_mode)
    assert stat.S_ISSOCK((w.project / "socket").lstat().st_mode)
    assert not (w.project / "src" / "main.c").stat().st_mode & 0o6000


# --- files with names elsewhere ---------------------------------------------------------------

def lasting(top):
    """What must stay of a file that loses a name; its ctime tells of that alone."""
    return {p.name: (p.read_bytes(), p.stat().st_mode, p.stat().st_uid, p.stat().st_mtime_ns, attributes(p))
            for p in top.iterdir() if p.is_file()}


@live_test
def a_file_with_a_name_outside_is_never_changed_there(w):
    outside = make_outside(w)
    ways = ["text", "mode", "attr", "time", "gone", "moved", "link", "type", "pair"]
    for way in ways:
        (outside / way).write_text("".join(f"{way} {n}\n" for n in range(20)))
        (outside / way).chmod(0o600)
        os.link(outside / way, w.project / way)
    os.link(w.project / "pair", w.project / "pair-2")
    there, before = clone(w), lasting(outside)
    (there / "text").write_text("evil\n")
    (there / "mode").chmod(0o666)
    os.utime(there / "time", ns=(1, 1))
    (there / "gone").unlink()
    (there / "moved").rename(there / "elsewhere")
    os.link(there / "link", there / "link-2")
    (there / "type").unlink()
    (there / "type").mkdir()
    (there / "pair").chmod(0o666)
    try:
        os.setxattr(there / "attr", "user.evil", b"1")
    except OSError:
        (there / "attr").chmod(0o606)
    try:
        os.link(outside / "secret", there / "taken")
        raise AssertionError("a clone has a name of a file outside")
    except OSError:
        pass
    with Traced(w):
        promote(w, "try")
    assert lasting(outside) == before
    assert (w.project / "mode").stat().st_mode & 0o777 == 0o666
    assert (w.project / "pair").samefile(w.project / "pair-2")
    assert (w.project / "pair").stat().st_mode & 0o777 == 0o666
    assert (w.project / "link").samefile(w.project / "link-2")
    w.ok("undo")
    assert lasting(outside) == before
    assert (w.project / "mode").stat().st_mode & 0o777 == 0o600


# --- somebody in the project ------------------------------------------------------------------

def exchange(a, b):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), RENAME_EXCHANGE) < 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Swapper:
    """A directory and a link to the outside change places, at once, in a process of its own until it is ended."""

    def __init__(self, folder, link):
        self.folder, self.link = folder, link

    def __enter__(self):
        until, self.go_on = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.go_on)
            os._exit(self.swap(until))
        os.close(until)

    def swap(self, until):
        """An even number of times."""
        os.set_blocking(until, False)
        try:
            while True:
                exchange(self.folder, self.link)
                exchange(self.folder, self.link)
                try:
                    if os.read(until, 1) == b"":
                        return 0
                except BlockingIOError:
                    pass
        except OSError:
            return 1

    def __exit__(self, *_):
        os.close(self.go_on)
        assert os.waitpid(self.pid, 0)[1] == 0, "who swaps was disturbed"


@live_test
def directories_that_change_places_with_links_lead_nowhere(w):
    outside = make_outside(w)
    target, link = w.project / "dir", w.project / "src" / "link"
    before, ends = None, {}
    link.symlink_to(outside)
    watch = Watch(outside, outside / "sub") if os.geteuid() == 0 else None
    for i in range(ROUNDS):
        make_dir(target)
        there = clone(w)
        make_dir(there / "dir", f"evil {i}\n")
        (there / "dir" / "new").write_text("evil\n")
        (there / "dir" / "sub" / "f3").unlink()
        (there / "dir" / "made").mkdir(mode=0o777)
        (there / "dir" / "sub" / "f4").chmod(0o666)
        if i == 0:
            before = around(outside)
        with Traced(w), Swapper(*((target, link) if i % 2 else (target / "sub", link))):
            done = subprocess.run([SNAP, "promote", "--json", "try"], cwd=w.project, env=w.env, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert done.returncode in (0, 1, 5, 11), done  # 11: it changes while it is captured
        ends[done.returncode] = ends.get(done.returncode, 0) + 1
        w.ok("status")  # what could not be taken back for want of the directory is now
        if watch:
            assert daemon(w) not in watch.pids(), f"cowfsd was there: {done}"
        assert around(outside) == before, done
        assert kept(w)[3:] == ([], []), done
        # Where a directory was away at the very moment at which all was taken back, the message says so.
        if b"not all could be taken back" in done.stderr:
            ends["told"] = ends.get("told", 0) + 1
        else:
            whole(target, i, done)
        w.ok("rm", "--force", "try")
        shutil.rmtree(target)
    if watch:
        watch.end()
    print(f"# {ends}")


def whole(target, i, done):
    """All of it landed, or nothing."""
    texts = {p.read_text() for p in target.rglob("f*")}
    if done.returncode == 0:
        assert texts == {f"evil {i}\n"} and (target / "new").exists(), (texts, done)
    else:
        assert texts == {"old\n"} and not (target / "new").exists(), (texts, done)
        assert not (target / "made").exists() and (target / "sub" / "f3").exists(), done


if __name__ == "__main__":
    sys.exit(livetest.main())
