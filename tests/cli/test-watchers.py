"""Programs that watch files (inotify) see what a rollback or a rebase changed in a clone.

As root, and with --user as an ordinary user.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import clone, live_test  # noqa: E402
from npmtest import npm_install  # noqa: E402
from runtest import line_of, start  # noqa: E402
from snaptest import LONG, Skip  # noqa: E402

VITE = Path(__file__).resolve().parent / "vite" / "package.json"
LIBC = ctypes.CDLL(None, use_errno=True)
MODIFY, ATTRIB, CLOSE_WRITE, CREATE, DELETE = 0x2, 0x4, 0x8, 0x100, 0x200
DELETE_SELF, IGNORED, ISDIR = 0x400, 0x8000, 0x40000000
MASK = MODIFY | ATTRIB | CLOSE_WRITE | CREATE | DELETE | DELETE_SELF | 0xC0
WORDS = {MODIFY: "modify", ATTRIB: "attrib", CLOSE_WRITE: "close_write", CREATE: "create",
         DELETE: "delete", DELETE_SELF: "delete_self", IGNORED: "ignored", 0x40: "moved_from",
         0x80: "moved_to"}
WRITTEN = ["create", "modify", "close_write"]

# In a run: prints what it hears until it hears of `last`.
WATCHER = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0)
assert libc.inotify_add_watch(fd, b".", 0x30a) > 0
print("ready", flush=True)
seen = set()
while "zlast" not in seen:
    data, at = os.read(fd, 65536), 0
    while at < len(data):
        n = struct.unpack_from("iIII", data, at)[3]
        seen.add(data[at + 16:at + 16 + n].rstrip(b"\\0").decode())
        at += 16 + n
print(*sorted(seen), flush=True)
"""


class Watch:
    """What inotify tells of some paths below a directory."""

    def __init__(self, top, *paths):
        self.fd = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0
        self.of = {}
        for path in paths:
            number = LIBC.inotify_add_watch(self.fd, os.fsencode(top / path), MASK)
            assert number > 0, f"{path}: {os.strerror(ctypes.get_errno())}"
            self.of[number] = path

    def heard(self):
        """What it heard so far, in order: for each path, the words."""
        told = {}
        with contextlib.suppress(BlockingIOError):
            while True:
                data, at = os.read(self.fd, 1 << 20), 0
                while at < len(data):
                    number, mask, _, n = struct.unpack_from("iIII", data, at)
                    name = os.fsdecode(data[at + 16:at + 16 + n].rstrip(b"\0"))
                    at += 16 + n
                    path = os.path.normpath(os.path.join(self.of[number], name))
                    if not name:
                        path = "=" + path  # the file or directory itself
                    words = [word for bit, word in WORDS.items() if mask & bit]
                    told.setdefault(path, []).extend(words)
        os.close(self.fd)
        return told


def find_ls(top):
    """Names, inode numbers, modes, sizes, times to the nanosecond; times of access apart."""
    return sorted(subprocess.run(["find", ".", "-printf", "%p %i %M %n %U %G %s %T@ %C@ %l\\n"],
                                 cwd=top, check=True, stdout=subprocess.PIPE).stdout.splitlines())


def same(heard, path, *words):
    assert heard.get(path) == list(words), f"{path}: want {words}, heard {heard.get(path)}\n{heard}"


@live_test
def a_rollback_tells_what_changed_and_changes_nothing_by_it(w):
    (w.project / "goes").mkdir()
    (w.project / "goes" / "x").write_text("x\n")
    (w.project / "sealed").write_text("sealed\n")
    (w.project / "sealed").chmod(0o400)
    (w.project / "link").symlink_to("README.md")
    os.link(w.project / "README.md", w.project / "other-name")
    top = clone(w, "-n", "c")
    before = find_ls(top)
    (top / "README.md").write_text("changed\n")
    (top / "sealed").chmod(0o600)
    (top / "sealed").write_text("opened\n")
    (top / "src" / "main.c").rename(top / "src" / "moved.c")
    shutil.rmtree(top / "goes")
    (top / "new" / "deep").mkdir(parents=True)
    (top / "new" / "deep" / "file").write_text("new\n")
    (top / "link").unlink()
    (top / "link").symlink_to("src")
    find_ls(top)  # the kernel knows all of it
    watch = Watch(top, ".", "src", "new", "new/deep", "README.md")
    w.ok("rollback", "c")
    heard = watch.heard()
    assert find_ls(top) == before
    assert (top / "README.md").read_text() == "first\n"
    for name in ("README.md", "other-name", "sealed"):
        same(heard, name, "delete", *WRITTEN)
    same(heard, "=README.md", "attrib", "delete_self", "ignored")
    same(heard, "src/main.c", *WRITTEN)
    same(heard, "src/moved.c", "delete")
    same(heard, "goes", "create")
    same(heard, "link", "delete", "create", "close_write")
    same(heard, "new/deep/file", "delete")
    same(heard, "new/deep", "delete")
    same(heard, "=new/deep", "delete_self", "ignored")
    same(heard, "new", "delete")
    assert (top / "goes" / "x").read_text() == "x\n"
    again = Watch(top, ".", "README.md")
    (top / "README.md").write_text("mine\n")
    heard = again.heard()
    assert "modify" in heard["=README.md"] and "modify" in heard["README.md"], heard


@live_test
def very_many_changes_are_told_only_where_somebody_watches(w):
    names = [f"many{i}" for i in range(300)]
    for name in names:
        (w.project / name).write_text("first\n")
    top = clone(w, "-n", "c")
    elsewhere = Watch(w.project, ".")

    def roll_back(*paths):
        for name in names:
            (top / name).write_text("second\n")
        watch = Watch(top, *paths) if paths else None
        said = w.ok("-v", "rollback", "c").err.decode()
        assert all((top / name).read_text() == "first\n" for name in names)
        return "names are not echoed" in said, watch.heard() if watch else {}

    # Of an ordinary user another process that hides its descriptors may be one that watches.
    assert roll_back()[0] or os.geteuid() != 0, "a watch on another file system is none"
    for paths in ((".",), ("many7",)):
        skipped, heard = roll_back(*paths)
        assert not skipped and heard, paths
    skipped, heard = roll_back(".")
    for name in names:
        same(heard, name, "delete", *WRITTEN)
    assert roll_back()[0] or os.geteuid() != 0, "nobody watches any more"
    elsewhere.heard()


@live_test
def a_name_that_nobody_looked_at_is_told_too(w):
    top = clone(w, "-n", "c")
    (top / "made").write_text("x\n")
    w.ok("umount", "c")
    w.ok("mount", "c")
    watch = Watch(top, ".")
    w.ok("rollback", "c")
    same(watch.heard(), "made", "delete")
    assert not (top / "made").exists()


@live_test
def a_rebase_and_what_takes_it_back_tell_what_changed(w):
    top = clone(w, "-n", "c")
    (top / "mine").write_text("mine\n")
    (w.project / "README.md").write_text("second\n")
    (w.project / "new").write_text("new\n")
    watch = Watch(top, ".", "src")
    saved = w.ok("rebase", "--json", "c").json("snap.rebase/1", "saved")["saved"]
    heard = watch.heard()
    same(heard, "README.md", "delete", *WRITTEN)
    same(heard, "new", *WRITTEN)
    assert set(heard) == {"README.md", "new"}, heard
    assert (top / "README.md").read_text() == "second\n"
    watch = Watch(top, ".", "src")
    w.ok("rollback", "c", saved)
    heard = watch.heard()
    same(heard, "README.md", "delete", *WRITTEN)
    same(heard, "new", "delete")
    assert (top / "README.md").read_text() == "first\n" and not (top / "new").exists()


@live_test
def who_watches_in_a_run_is_told(w):
    top = clone(w, "-n", "c")
    (top / "README.md").write_text("changed\n")
    (top / "a-new").write_text("new\n")
    (w.project / "zlast").write_text("last\n")
    run = start(w, "c", "--", "/usr/bin/python3", "-c", WATCHER)
    assert line_of(run) == b"ready\n"
    w.ok("rollback", "c")
    w.ok("rebase", "c")
    assert line_of(run) == b"README.md a-new zlast\n"
    assert run.wait(60) == 0


@live_test
def what_others_make_and_write_meanwhile_stays(w):
    """An editor takes hold of each name in the moment in which the rollback is seen."""
    count = 300
    for i in range(count):
        (w.project / f"changed{i}").write_text("old\n")
    top = clone(w, "-n", "c")
    for i in range(count):
        (top / f"changed{i}").write_text("new and longer\n")
        (top / f"made{i}").write_text("made\n")
    wanted, failed = threading.Event(), []

    def edit():
        wanted.set()
        for i in range(count):
            made, changed = top / f"made{i}", top / f"changed{i}"
            while made.exists():
                pass
            try:
                with made.open("x") as f:
                    f.write("mine\n")
                with changed.open("a") as f:
                    f.write("mine\n")
            except OSError as e:
                failed.append((i, e))

    editor = threading.Thread(target=edit)
    editor.start()
    wanted.wait()
    w.ok("rollback", "c")
    editor.join()
    assert not failed, failed
    for i in range(count):
        assert (top / f"made{i}").read_text() == "mine\n", i
        assert (top / f"changed{i}").read_text() == "old\nmine\n", i
        assert (top / f"changed{i}").stat().st_size == 9, i
    w.ok("umount", "c")
    w.ok("mount", "c")
    for i in range(count):
        assert (top / f"made{i}").read_text() == "mine\n", i
        assert (top / f"changed{i}").read_text() == "old\nmine\n", i


def node():
    found = shutil.which("node")
    if not found:
        raise Skip("node is not installed")
    return found


@contextlib.contextmanager
def started(*words, **more):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
                               stdin=subprocess.DEVNULL, start_new_session=True, **more)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # what it watches over is a process of its own
        process.wait()


def says(process, wanted):
    """Read lines until that one."""
    seen = []
    while wanted not in seen:
        line = line_of(process)
        assert line, seen
        seen.append(line.decode().strip())


@live_test
def node_restarts_what_was_rolled_back(w):
    (w.project / "main.js").write_text("console.log(require('./part.js'));\n"
                                       "setInterval(() => 0, 1000);\n")
    (w.project / "part.js").write_text("module.exports = 'old';\n")
    top = clone(w, "-n", "c")
    (top / "part.js").write_text("module.exports = 'new';\n")
    with started(node(), "--watch", "main.js", cwd=top, env=w.env) as process:
        says(process, "new")
        w.ok("rollback", "c")
        says(process, "old")


@live_test
def a_server_that_caches_what_it_read_serves_what_was_rolled_back(w):
    """As dev servers do: read once, and again when fs.watch says so."""
    (w.project / "page.html").write_text("old\n")
    (w.project / "server.js").write_text("""
        const fs = require('fs'), http = require('http');
        const cache = new Map();
        fs.watch('.', { recursive: true }, (what, name) => {
          cache.delete(name);
          if (name === 'page.html') console.log('told');
        });
        const get = () => {
          if (!cache.has('page.html')) cache.set('page.html', fs.readFileSync('page.html'));
          return cache.get('page.html');
        };
        http.createServer((q, a) => a.end(get())).listen(0, '127.0.0.1', function () {
          console.log(this.address().port);
        });
    """)
    top = clone(w, "-n", "c")
    (top / "page.html").write_text("new\n")
    with started(node(), "server.js", cwd=top, env=w.env) as process:
        port = int(line_of(process))

        def page():
            with socket.socket() as s:  # urllib would load modules that an ordinary user may not read
                s.settimeout(60)
                s.connect((b"127.0.0.1", port))
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return s.makefile("rb").read().partition(b"\r\n\r\n")[2]

        assert page() == b"new\n"
        w.ok("rollback", "c")
        says(process, "told")
        assert page() == b"old\n"


def ask(port, path):
    with socket.socket() as s:  # a name would load modules that an ordinary user may not read
        s.settimeout(60)
        s.connect((b"127.0.0.1", port))
        s.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return s.makefile("rb").read().partition(b"\r\n\r\n")[2].decode()


def install(w):
    """Vite, into the project. An ordinary user gets a copy of what root has fetched."""
    try:
        at = npm_install(VITE, "npm-vite", fetch=LONG)
        shutil.copytree(at / "node_modules", w.project / "node_modules", symlinks=True)
    except OSError as e:
        raise Skip(f"what npm brought cannot be read: {e}") from e


@live_test
def vite_serves_what_was_rolled_back_and_what_is_edited_afterwards(w):
    node()
    install(w)
    (w.project / "index.html").write_text('<script type="module" src="/main.js"></script>\n')
    (w.project / "main.js").write_text("import { word } from './part.js';\nconsole.log(word);\n")
    (w.project / "part.js").write_text("export const word = 'old';\n")
    top = clone(w, "-n", "c")
    (top / "part.js").write_text("export const word = 'new';\n")
    with started(node(), "node_modules/vite/bin/vite.js", "--clearScreen", "false", "--host", "127.0.0.1", "--port", "0", cwd=top,
                 env={**w.env, "NO_COLOR": "1"}) as process:
        port = None
        while port is None:
            line = line_of(process)
            assert line, "vite has ended"
            found = re.search(rb"http://127.0.0.1:(\d+)/", line)
            port = int(found.group(1)) if found else None
        assert "part.js" in ask(port, "/main.js") and "'new'" in ask(port, "/part.js")

        def reloads(word):
            """One change may be several to Vite, as a name that goes and comes is."""
            served = False
            while not served:
                line = line_of(process)
                assert line, f"not told of {word}"
                served = b"page reload part.js" in line and f"'{word}'" in ask(port, "/part.js")
            ask(port, "/main.js")

        w.ok("rollback", "c")
        reloads("old")
        (top / "part.js").write_text("export const word = 'edited';\n")
        reloads("edited")
        (top / "part.js").write_text("export const word = 'old';\n")
        reloads("old")
        (w.project / "part.js").write_text("export const word = 'of the project';\n")
        w.ok("rebase", "c")
        reloads("of the project")

if __name__ == "__main__":
    sys.exit(livetest.main())
