"""A project on a file system that takes names for one which differ in case alone: nothing is lost there."""

import contextlib
import os
import shutil
import subprocess

from depots import Other, depot
from promotetest import picture, same
from snaptest import Skip, World, main, needs_fuse, test

TWINS = (("A", "a"), ("Dir/x", "dir/y"), ("deep/er/Two", "deep/er/two"))
SPELLED = "is another spelling of a name that is there, and this file system takes both for one"


@contextlib.contextmanager
def kernels_own(w, at):
    if not shutil.which("mkfs.ext4") or not shutil.which("chattr"):
        raise Skip("there is no mkfs.ext4 or no chattr")
    image, disk = w.top / "image", w.top / "disk"
    with open(image, "wb") as f:
        f.truncate(64 << 20)
    disk.mkdir()
    quiet = {"check": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(["mkfs.ext4", "-q", "-O", "casefold", image], **quiet).returncode != 0 or \
            subprocess.run(["mount", "-o", "loop", image, disk], **quiet).returncode != 0:
        raise Skip("no ext4 that can ignore case can be mounted here")
    try:
        (disk / "p").mkdir()
        if subprocess.run(["chattr", "+F", disk / "p"], **quiet).returncode != 0:
            raise Skip("no directory can ignore case here")
        subprocess.run(["mount", "--bind", disk / "p", at], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", at], check=True)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@contextlib.contextmanager
def stand_in(w, at):
    """What caseless.c shows, for kernels without one."""
    needs_fuse()
    below = w.top / "below"
    below.mkdir()
    subprocess.run([os.environ["SNAP_CASELESS"], at, "-o", "default_permissions,fsname=caseless"], check=True,
                   env={**os.environ, "CASELESS_DIR": str(below)})
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", at], check=True)


def caseless(fn):
    """With a second store whose project ignores case: of the kernel's own kind, and the stand-in."""
    def with_(show):
        def inner(w: World):
            if os.geteuid() != 0:
                raise Skip("mounting takes root")
            other = Other(w)
            with show(w, other.project):
                fn(w, other)
                assert "no damage" in other.ok("check").out.decode()
                other.end()
        inner.__name__ = f"{fn.__name__}_{show.__name__}"
        test(inner)
    for show in (kernels_own, stand_in):
        with_(show)
    return fn


def tidy(o):
    journal = o.store / "journal"
    assert not [n for n in os.listdir(o.project) if n.startswith(".snapcow-stage-")]
    assert not journal.exists() or not os.listdir(journal)


def put(top, name, text="x"):
    (top / name).parent.mkdir(parents=True, exist_ok=True)
    (top / name).write_text(text)


def drop(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@caseless
def a_pull_of_two_names_that_are_one_there_is_refused_until_one_is_gone(w, o):
    o.ok("init")
    empty = picture(o.project)
    w.ok("init")
    for many in (0, 100):  # a few files, and as many as are written by several threads
        for i in range(many):
            put(w.project, f"many/{i}")
        for one, two in TWINS:
            put(w.project, one, "one")
            put(w.project, two, "two")
            w.ok("push", depot(w))
            o.snap("pull", depot(w)).fails(5, "the project stays as it is", SPELLED)
            same(picture(o.project), empty)
            tidy(o)
            for name in {one.split("/")[0], two.split("/")[0]}:
                drop(w.project / name)
    w.ok("push", depot(w))
    o.ok("pull", depot(w))
    same(picture(o.project), picture(w.project))


@caseless
def a_file_whose_case_alone_changes_stays_as_it_was_and_a_directory_follows(w, o):
    w.ok("init")
    w.ok("push", depot(w))
    o.ok("init")
    o.ok("pull", depot(w))
    was = picture(o.project)
    (w.project / "README.md").rename(w.project / "readme.md")
    w.ok("push", depot(w))
    o.snap("pull", depot(w)).fails(5, "the project stays as it is", SPELLED)
    same(picture(o.project), was)
    assert "README.md" in os.listdir(o.project)
    tidy(o)
    (w.project / "readme.md").rename(w.project / "README.md")
    (w.project / "src").rename(w.project / "Src")
    w.ok("push", depot(w))
    o.ok("pull", depot(w))
    same(picture(o.project), picture(w.project))
    assert "Src" in os.listdir(o.project)
    tidy(o)


@caseless
def a_promotion_of_a_second_spelling_is_refused_and_what_is_there_stays(w, o):
    put(o.project, "README.md", "first\n")
    put(o.project, "src/main.c")
    o.ok("init")
    was = picture(o.project)
    clone = o.ok("clone", "--json", "-n", "try").json("snap.clone/1", "path")["path"]
    with open(f"{clone}/readme.md", "w") as f:
        f.write("second\n")
    os.mkdir(f"{clone}/SRC")
    with open(f"{clone}/SRC/Main.c", "w") as f:
        f.write("second\n")
    refused = o.snap("promote", "try").ends(5)
    assert SPELLED in (refused.out + refused.err).decode(), refused
    same(picture(o.project), was)
    tidy(o)
    with open(f"{clone}/readme.md") as f:
        assert f.read() == "second\n"
    os.unlink(f"{clone}/readme.md")
    shutil.rmtree(f"{clone}/SRC")
    with open(f"{clone}/README.md", "w") as f:
        f.write("second\n")
    o.ok("promote", "try")
    assert (o.project / "README.md").read_text() == "second\n"
    o.ok("rm", "try")


@caseless
def empty_directories_of_another_spelling_outlive_a_promotion_that_is_refused(w, o):
    names = ["deep", "deep/aaa", "deep/src", "one", "two"]
    for name in names:
        (o.project / name).mkdir(parents=True)
    o.ok("init")
    was = picture(o.project)
    clone = o.ok("clone", "--json", "-n", "try").json("snap.clone/1", "path")["path"]
    for name in ("ONE", "TWO", "deep/AAA", "deep/SRC"):
        os.mkdir(f"{clone}/{name}")
    refused = o.snap("promote", "try").ends(5)
    text = (refused.out + refused.err).decode()
    assert SPELLED in text and "not all" not in text, text
    assert all((o.project / name).is_dir() for name in names), os.listdir(o.project)
    same(picture(o.project), was)
    tidy(o)
    o.ok("rm", "--force", "try")


main()
