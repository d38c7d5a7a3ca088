"""`snap fsmonitor`: git in a clone asks what changed, and never misses a change."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from snaptest import Skip, dice, main, needs_fuse, test

LONG = os.environ.get("SNAP_TESTS_LONG") == "1"
ROUNDS = 200 if LONG else 27
FILES = 60
WHO = ["-c", "user.name=x", "-c", "user.email=x@example.org"]


def git(w, where, *args, **env):
    done = subprocess.run(["git", *WHO, *args], cwd=where, env=w.env | env, capture_output=True)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout


def project(w):
    """A repository with some depth, in which something is ignored."""
    top = w.project
    (top / ".gitignore").write_text("*.o\n")
    for i in range(FILES):
        path = top / f"d{i % 4}" / f"e{i % 3}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{i}\n" * 5)
    git(w, top, "init", "-q")
    git(w, top, "add", "-A")
    git(w, top, "commit", "-qm", "all")
    return top


def git_test(fn):
    def run(w):
        needs_fuse()
        if not shutil.which("git"):
            raise Skip("git is not installed")
        fn(w)
    run.__name__ = fn.__name__
    return test(run)


def clone(w, name, *args):
    return Path(w.ok("clone", "-n", name, "--fsmonitor", *args).out.decode().strip())


def asks(w, where, token):
    """What changed since: None if everything may have, else the paths; and the new token."""
    raw = w.ok("fsmonitor", "2", token, cwd=where).out
    assert raw.endswith(b"\0"), raw
    words = raw[:-1].decode().split("\0")
    return (None if words[1:] == ["/"] else sorted(words[1:])), words[0]


def statuses(w, where):
    """What git says with fsmonitor, and what it says without, which must not help the other."""
    words = ["status", "--porcelain=v2", "--untracked-files=all", "--ignored"]
    asked = git(w, where, *words)
    copy = w.top / "index"
    shutil.copy(where / ".git" / "index", copy)
    looked = git(w, where, "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", *words,
                 GIT_INDEX_FILE=str(copy), GIT_OPTIONAL_LOCKS="0")
    return asked, looked


def same(w, where, after):
    asked, looked = statuses(w, where)
    assert asked == looked, f"after {after}:\nwith fsmonitor\n{asked.decode()}\nwithout\n{looked.decode()}"


# --- one edit each, at random ------------------------------------------------------------------

def files(top):
    return sorted(p for p in top.rglob("*") if ".git" not in p.parts and (p.is_file() or p.is_symlink()))


def dirs(top):
    return sorted(p for p in top.rglob("*") if ".git" not in p.parts and p.is_dir() and not p.is_symlink())


def fresh(r, top):
    where = r.choice(dirs(top) + [top])
    return where / f"n{r.randrange(10 ** 6)}{r.choice(['', '.o'])}"


def write(r, top):
    path = r.choice(files(top))
    if not path.is_symlink():
        path.write_text(f"{r.random()}\n")


def write_with_old_times(r, top):
    """Of the same length and with the mtime that it had: only the ctime says so."""
    path = r.choice([p for p in files(top) if not p.is_symlink()])
    old, st = path.read_bytes(), path.stat()
    path.write_bytes(bytes(b ^ 1 for b in old))
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))


def create(r, top):
    fresh(r, top).write_text("new\n")


def delete(r, top):
    r.choice(files(top)).unlink()


def rename(r, top):
    r.choice(files(top)).rename(fresh(r, top))


def replace(r, top):
    a, b = r.choice(files(top)), r.choice(files(top))
    a.rename(b)


def link(r, top):
    """Two names of one file: a write through one changes both."""
    path, other = r.choice([p for p in files(top) if not p.is_symlink()]), fresh(r, top)
    os.link(path, other)
    other.write_text(f"both {r.random()}\n")


def symlink(r, top):
    fresh(r, top).symlink_to(r.choice(["here", "there", "d0"]))


def chmod(r, top):
    path = r.choice([p for p in files(top) if not p.is_symlink()])
    path.chmod(path.stat().st_mode ^ 0o111)


def make_dir(r, top):
    path = fresh(r, top)
    path.mkdir()
    (path / "in").write_text("in\n")


def move_dir(r, top):
    path = r.choice(dirs(top))
    to = fresh(r, top)
    if path not in to.parents:
        path.rename(to)


def remove_dir(r, top):
    shutil.rmtree(r.choice(dirs(top)))


def swap_dirs(r, top):
    """Another directory stands where one was: all below has changed."""
    a, b = r.choice(dirs(top)), r.choice(dirs(top))
    if a not in [b, *b.parents] and b not in a.parents:
        side = top / "side"
        a.rename(side)
        b.rename(a)
        side.rename(b)


def file_to_dir(r, top):
    path = r.choice(files(top))
    path.unlink()
    path.mkdir()
    (path / "below").write_text("below\n")


def ignore_more(r, top):
    (r.choice(dirs(top) + [top]) / ".gitignore").write_text(r.choice(["*.o\n", "n1*\n", ""]))


def stage(r, top):
    subprocess.run(["git", *WHO, "add", "-A"], cwd=top, check=True, capture_output=True)


def commit(r, top):
    subprocess.run(["git", *WHO, "commit", "-qam", "more"], cwd=top, capture_output=True)


def reset(r, top):
    """Something untracked may be in its way: then it fails half way, and that must be seen, too."""
    subprocess.run(["git", "reset", "-q", "--hard"], cwd=top, capture_output=True)


EDITS = [write, write, write_with_old_times, create, create, delete, rename, replace, link, symlink, chmod,
         make_dir, move_dir, remove_dir, swap_dirs, file_to_dir, ignore_more, stage, commit, reset]


def edit(r, top):
    if len(files(top)) < FILES // 4 or len(dirs(top)) < 3:
        make_dir(r, top)
        return "make_dir"
    how = r.choice(EDITS)
    how(r, top)
    return how.__name__


@git_test
def git_sees_with_fsmonitor_what_it_sees_without_whatever_happens(w):
    """Edits of all kinds, and now and then what makes a token worthless."""
    r = dice()
    top = project(w)
    where = clone(w, "a")
    same(w, where, "the clone")
    for i in range(ROUNDS):
        done = [edit(r, where) for _ in range(r.randrange(1, 4))]
        if i % 9 == 4:
            # git looks, something changes that it heard of, and the clone goes back to what git's token is of
            w.ok("snapshot", "a", "-m", "here")
            git(w, where, "status", "-s")
            done += [edit(r, where), "status", "rollback"]
            git(w, where, "status", "-s")
            w.ok("rollback", "a")
        elif i % 9 == 6:
            (top / f"theirs{i}").write_text("theirs\n")
            w.snap("rebase", "a")
            done.append("rebase")
        elif i % 9 == 8:
            w.kill_daemon()
            w.ok("list")
            done.append("kill -9")
        same(w, where, f"round {i}: {', '.join(done)}")


@git_test
def the_answer_names_what_changed_and_nothing_else(w):
    project(w)
    where = clone(w, "a")
    paths, token = asks(w, where, "")
    assert paths is None
    assert asks(w, where, token) == ([], token), "nothing changed, so the token stays"
    (where / "d0/e0/f0").write_text("changed\n")
    (where / "d1/new").mkdir()
    (where / "d1/new/file").write_text("new\n")
    (where / "d2/e2/f2").unlink()
    (where / ".git/mine").write_text("git's own\n")
    paths, later = asks(w, where, token)
    assert paths == ["d0/e0/f0", "d1/new", "d1/new/file", "d2/e2/f2"], paths
    assert asks(w, where, later) == ([], later)
    assert asks(w, where, token)[0] == paths, "an older token is good, too"
    assert asks(w, where / "d1", token)[0] == ["new", "new/file"], "from the directory of the work tree"
    assert asks(w, where / "d3", token)[0] == []


@git_test
def a_file_that_is_again_as_it_was_is_named_too(w):
    """What git noted of it in between is not what it is."""
    project(w)
    where = clone(w, "a")
    path = where / "d0/e0/f0"
    old, st, token = path.read_bytes(), path.stat(), asks(w, where, "")[1]
    for text in (b"other\n", old):
        path.write_bytes(text)
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    assert asks(w, where, token)[0] == ["d0/e0/f0"], "only its ctime says so"


@git_test
def git_looks_at_few_files_of_a_tree_of_any_size(w):
    """Counted: how many it looks at after one change, in a small tree and in a larger one."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    looks = []
    top = project(w)
    for more in (0, 400):
        for i in range(more):
            path = top / f"g{i % 20}" / f"f{i}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("more\n")
        git(w, top, "add", "-A")
        git(w, top, "commit", "-q", "--allow-empty", "-m", "more")
        where = clone(w, f"of{more}")
        time.sleep(1.1)  # what git writes in the second of its index is looked at again
        for _ in range(2):
            git(w, where, "status")
        (where / "d0/e0/f0").write_text("changed\n")
        log = w.top / "trace"
        subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", "trace=newfstatat,lstat,getdents64", "git", "status"],
                       cwd=where, env=w.env, check=True, capture_output=True)
        looks.append(len([line for line in log.read_text().splitlines() if "/proc" not in line]))
    assert looks[1] < looks[0] + 60, f"in trees of {FILES} and {FILES + 400} files: {looks}"


@git_test
def a_token_is_worth_nothing_in_another_clone_nor_after_going_back(w):
    top = project(w)
    a, b = clone(w, "a"), clone(w, "b")
    token = asks(w, a, "")[1]
    assert asks(w, b, token)[0] is None, "of another clone"
    for bad in ("", "snap-", token + "0", token.upper(), "builtin:0", "x" * 4000, "☃"):
        assert asks(w, a, bad)[0] is None, bad
    (a / "d0/e0/f0").write_text("one\n")
    w.ok("snapshot", "a", "-m", "one")
    token = asks(w, a, "")[1]
    (a / "d0/e0/f0").write_text("two\n")
    assert asks(w, a, token)[0] == ["d0/e0/f0"]
    w.ok("rollback", "a")
    assert asks(w, a, token)[0] is None, "from before a rollback"
    token = asks(w, a, "")[1]
    (top / "theirs").write_text("theirs\n")
    w.ok("rebase", "a")
    assert asks(w, a, token)[0] is None, "from before a rebase"
    token = asks(w, a, "")[1]
    w.kill_daemon()
    w.ok("list")
    assert asks(w, a, token)[0] is None, "of a daemon that died"
    token = asks(w, a, "")[1]
    w.ok("umount", "a")
    w.ok("mount", "a")
    assert asks(w, a, token)[0] is None, "from before it was mounted again"
    token = asks(w, a, "")[1]
    w.ok("gc")
    assert asks(w, a, token)[0] is None, "a gc keeps nothing for it"


@git_test
def what_was_deleted_since_can_be_told_and_is_collected_in_the_end(w):
    top = project(w)
    where = clone(w, "a")
    token = asks(w, where, "")[1]
    for i in range(6):
        (where / f"big{i}").write_bytes(os.urandom(200_000))
        asks(w, where, "")
        (where / f"big{i}").unlink()
    got = asks(w, where, token)[0]
    assert got is None, "four are kept for a clone, and this one was not used since"
    w.ok("gc")
    w.ok("check")


@git_test
def too_much_and_changes_of_directories_are_everything(w):
    top = project(w)
    where = clone(w, "a")
    token = asks(w, where, "")[1]
    (where / "d0").chmod(0o700)
    assert asks(w, where, token)[0] is None, "who may look into a directory decides what is there for git"
    token = asks(w, where, "")[1]
    assert asks(w, where / "d1", token)[0] == []
    (where / "d0").chmod(0o755)
    assert asks(w, where / "d1", token)[0] == [], "elsewhere it decides nothing"
    where.chmod(0o711)
    assert asks(w, where / "d1", token)[0] is None, "but above it does"


@git_test
def a_repository_that_names_another_as_shared_is_left_alone(w):
    project(w)
    where = clone(w, "a")
    real = (w.project / ".git" / "config").read_bytes()
    (where / ".git" / "commondir").write_text(f"{w.project}/.git\n")
    w.snap("fsmonitor", "--setup", "a").fails(7, "no repository of its own")
    assert (w.project / ".git" / "config").read_bytes() == real


@git_test
def what_cannot_be_answered_is_said(w):
    top = project(w)
    where = clone(w, "a")
    w.snap("fsmonitor", "1", "0", cwd=where).fails(2, "version 2")
    w.snap("fsmonitor", cwd=where).fails(2, "VERSION TOKEN")
    w.snap("fsmonitor", "2", "x").fails(2, "is in no clone")
    w.snap("fsmonitor", "--setup").fails(2, "name the clone")
    w.snap("fsmonitor", "--setup", "b").fails(4, "b")
    shutil.rmtree(where / ".git")
    w.snap("fsmonitor", "--setup", "a").fails(7, "no repository")
    assert b"no fsmonitor" in w.ok("clone", "-n", "c", "--from", "a", "--fsmonitor").err


@git_test
def where_nobody_answers_git_looks_at_everything_and_is_quiet(w):
    """As in a run, which has no daemon, and perhaps no snap either."""
    project(w)
    where = clone(w, "a")
    same(w, where, "the clone")
    hook = git(w, where, "config", "core.fsmonitor").decode().strip()
    for broken in (hook.replace("fsmonitor", "fsmonitor --bogus"), "'/nowhere" + hook[1:]):
        git(w, where, "config", "core.fsmonitor", broken)
        (where / "d0/e0/f0").write_text(f"changed {broken}\n")
        done = subprocess.run(["git", "status", "-s"], cwd=where, env=w.env, capture_output=True, check=True)
        assert done.stdout == b" M d0/e0/f0\n" and done.stderr == b"", done
        same(w, where, "a hook that fails")


@git_test
def setting_up_changes_the_clone_alone(w):
    top = project(w)
    before = (top / ".git/config").read_bytes()
    where = Path(w.ok("clone", "-n", "a").out.decode().strip())
    w.ok("fsmonitor", "--setup", cwd=where / "d0")
    hook = git(w, where, "config", "core.fsmonitor").decode()
    assert " fsmonitor" in hook and "'" in hook, hook
    assert (top / ".git/config").read_bytes() == before
    same(w, where, "setting up")
    w.ok("promote", "a")
    assert (top / ".git/config").read_bytes() == before


main()
