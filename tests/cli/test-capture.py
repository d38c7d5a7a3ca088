#!/usr/bin/env python3
"""What a snapshot of a project holds: all of it, at the cost of what changed, or a sentence."""

import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from snaptest import Skip, main, needs_fuse, test  # noqa: E402


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def signatures(world):
    return sorted((world.store / "signatures").iterdir())


def settle():
    """Past the time in which a change might not show in a file's times."""
    time.sleep(0.05)


# --- round trip ---------------------------------------------------------------------------------

def fill_with_everything(top):
    """Every type of file, odd names, attributes, access lists, holes, hard links."""
    (top / "deep" / "er" / "est").mkdir(parents=True)
    (top / "empty-dir").mkdir(mode=0o1700)
    for i, name in enumerate([b"plain", b"with space", b"new\nline", b"\xff\xfe", b"n" * 255,
                              "\u00fcml\u00e4ut".encode(), b"-rf", b"back\\slash", b"*?[x]"]):
        path = os.fsencode(top) + b"/deep/" + name
        with open(path, "wb") as out:
            out.write(name * (i + 1))
        os.chmod(path, (0o600, 0o644, 0o4755, 0o2711)[i % 4])
        os.utime(path, ns=(10**18 + i, 10**18 + 7 * i))
    (top / "big").write_bytes(random.Random(1).randbytes(300_000))
    with open(top / "holes", "wb") as out:
        out.seek(10 << 20)
        out.write(b"middle")
        out.truncate(30 << 20)
    os.link(top / "deep" / "plain", top / "deep" / "er" / "hard")
    os.link(top / "deep" / "plain", top / "harder")
    os.symlink("nowhere/at all", top / "dangling")
    os.symlink("deep", top / "to-dir")
    os.link(top / "dangling", top / "dangling-too", follow_symlinks=False)
    os.mkfifo(top / "fifo", 0o640)
    os.setxattr(top / "big", b"user.note", b"\0binary\xff")
    os.setxattr(top / "deep", b"user.dir", b"d")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.relpath(top / "sock"))
    if os.geteuid() == 0:
        os.mknod(top / "null", 0o666 | 0o020000, os.makedev(1, 3))
        os.chown(top / "deep" / "er", 12345, 54321)
        os.setxattr(top / "dangling", b"trusted.of-link", b"l", follow_symlinks=False)
    for args in (["u:12345:rw", top / "big"], ["d:g:777:rx", top / "deep"]):
        subprocess.run(["setfacl", "-m", *args], check=True)


def same(one, other):
    """What rsync would change to make the other like the one; both ways."""
    out = b""
    for a, b in ((one, other), (other, one)):
        done = subprocess.run(["rsync", "-aHAXn", "--checksum", "--itemize-changes", "--delete",
                               "--specials", "--devices", f"{a}/", f"{b}/"],
                              check=True, capture_output=True)
        out += done.stdout + done.stderr
    assert out == b"", out.decode(errors="replace")


@test
def a_clone_shows_exactly_what_is_in_the_project(w):
    need("rsync")
    need("setfacl")
    os.chdir(w.project)
    fill_with_everything(w.project)
    w.ok("clone", "-n", "one")
    same(w.project, w.store / "clones" / "one")

    # And when only what changed is read.
    settle()
    (w.project / "deep" / "plain").write_bytes(b"through one of three names")
    os.rename(w.project / "big", w.project / "deep" / "er" / "moved")
    os.unlink(w.project / "harder")
    os.chmod(w.project / "holes", 0o604)
    os.setxattr(w.project / "deep", b"user.dir", b"other")
    os.utime(w.project / "deep" / "-rf", ns=(5, 6))
    shutil.rmtree(w.project / "empty-dir")
    os.unlink(w.project / "fifo")
    (w.project / "fifo").write_text("a file now")
    w.ok("clone", "-n", "two")
    same(w.project, w.store / "clones" / "two")
    w.ok("clone", "-n", "three")
    same(w.project, w.store / "clones" / "three")
    w.ok("check")


# --- programs that look at times ------------------------------------------------------------------

def make_work_tree(top, files):
    for i in range(files):
        d = top / f"d{i % 100}"
        d.mkdir(exist_ok=True)
        (d / f"f{i}").write_text(f"{i}\n")
    (top / "Makefile").write_text("out: d0/f0\n\tcp d0/f0 out\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *args], cwd=top, check=True)
    subprocess.run(["make", "-s", "out"], cwd=top, check=True)
    settle()
    time.sleep(1.1)  # git itself doubts an index as old as its files
    subprocess.run(["git", "status"], cwd=top, check=True, stdout=subprocess.DEVNULL)


@test
def in_a_fresh_clone_git_reads_no_file_and_make_has_nothing_to_do(w):
    need("git")
    need("make")
    need("strace")
    make_work_tree(w.project, 10_000)
    path = w.ok("-q", "clone", "-n", "c").out.decode().strip()
    trace = w.top / "trace"
    done = subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=openat", "git", "-C", path,
                           "status", "--porcelain"], capture_output=True, check=False)
    if done.returncode != 0 and b"ptrace" in done.stderr:
        raise Skip("this machine lets nobody trace")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"?? out\n", done.stdout
    opened = [line for line in trace.read_text(errors="replace").splitlines()
              if '"d' in line and "/f" in line and "O_DIRECTORY" not in line]
    assert not opened, opened[:5]
    built = subprocess.run(["make", "-q", "out"], cwd=path, check=False)
    assert built.returncode == 0, "make would build it again"


NINJA = """
rule cp
  command = cp $in $out
rule cat
  command = cat $in > $out
  depfile = $out.d
  deps = gcc
"""


@test
def in_a_fresh_clone_ninja_has_no_work_to_do(w):
    need("ninja")
    needs_fuse()
    parts = range(200)
    lines = [f"build out/{i}.o: cp src/{i}.c" for i in parts]
    lines.append("build out/all: cat " + " ".join(f"out/{i}.o" for i in parts))
    (w.project / "build.ninja").write_text(NINJA + "\n".join(lines) + "\n")
    for i in parts:
        (w.project / "src" / f"{i}.c").write_text(f"part {i}\n")
    (w.project / "out").mkdir()
    (w.project / "out" / "all.d").write_text("out/all: src/0.c\n")
    subprocess.run(["ninja"], cwd=w.project, check=True, stdout=subprocess.DEVNULL)

    def ninja(path):
        return subprocess.run(["ninja", "-n", "-d", "explain"], cwd=path, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    assert b"no work to do" in ninja(w.project)
    w.take()
    path = Path(w.ok("--json", "clone", "-n", "c").json("snap.clone/1")["path"])
    assert b"no work to do" in ninja(path), ninja(path)
    (path / "src" / "7.c").write_text("another\n")
    assert b"no work to do" not in ninja(path)



# --- what is left out ------------------------------------------------------------------------------

ATOMS = ["a", "b", "ab", "*", "**", "?", "[ab]", "[!a]", "[a-c]", "\\a", "a*", "*b", "x.o", "*.o",
         "[[:alpha:]]", "[]", "a**b", "[a", "\\", " ", "a ", "\\ "]


def random_rules(rng):
    lines = []
    for _ in range(rng.randint(1, 5)):
        parts = [rng.choice(ATOMS) + rng.choice(["", "", rng.choice(ATOMS)])
                 for _ in range(rng.randint(1, 3))]
        lines.append(rng.choice(["", "", "", "!", "#", "\\"]) + rng.choice(["", "", "/"])
                     + "/".join(parts) + rng.choice(["", "", "/", " "]))
    return "\n".join(lines) + "\n"


@test
def snapignore_leaves_out_what_git_ignores_by_the_same_rules(w):
    need("git")
    rng = random.Random(int(os.environ.get("SNAP_TEST_SEED", "4711")))
    names = ["a", "b", "ab", "x.o", "abb", " ", "c]"]
    subprocess.run(["git", "init", "-q", "."], cwd=w.project, check=True)
    shutil.rmtree(w.project / "src")
    for top in names:
        (w.project / top).mkdir()
        for sub in names:
            (w.project / top / sub).mkdir()
            for leaf in names[:5]:
                (w.project / top / sub / leaf).write_text("")
    everything = sorted(str(p.relative_to(w.project)) for p in w.project.rglob("*")
                        if ".git" not in p.parts and p.is_file())
    for i in range(25):
        rules = random_rules(rng), random_rules(rng)
        for where, text in zip((w.project, w.project / "ab"), rules):
            (where / ".snapignore").write_text(text)
            (where / ".gitignore").write_text(text)
        ids = w.take()
        clone = Path(w.ok("-q", "clone", "-n", f"c{i}", "--from", ids).out.decode().strip())
        ours = {str(p.relative_to(clone)) for p in clone.rglob("*")
                if ".git" not in p.parts and p.is_file() and not p.name.startswith(".")}
        asked = subprocess.run(["git", "check-ignore", "--no-index", "-z", "--stdin"],
                               input="\0".join(everything).encode(), cwd=w.project,
                               capture_output=True, check=False)
        ignored = set(asked.stdout.decode().split("\0"))
        theirs = {p for p in everything if p not in ignored and not p.startswith(".")}
        assert ours == theirs, (rules, sorted(ours ^ theirs)[:10])
        w.ok("-q", "rm", f"c{i}")


@test
def the_stage_of_a_project_in_the_project_is_not_captured(w):
    inner = w.project / "inner"
    stage = inner / ".snapcow-stage-0123456789abcdef"
    stage.mkdir(parents=True)
    (stage / "n0").write_text("half")
    (inner / "kept").write_text("kept")
    near = [inner / ".snapcow-stage-0123456789ABCDEF", inner / ".snapcow-stage-0"]
    for path in near:
        path.mkdir()
        (path / "file").write_text("somebody's")
    (w.project / ".snapcow-stage-fedcba9876543210").write_text("a file is no stage")
    first = w.take()
    names = w.ok("show", "@:inner").out.decode()
    assert stage.name not in names, names
    assert all(path.name in names for path in near) and "kept" in names, names
    assert b"is no stage" in w.ok("show", "@:.snapcow-stage-fedcba9876543210").out
    # It comes and goes without a change, and going back does not touch it.
    shutil.rmtree(stage)
    assert w.ok("--json", "snapshot").json("snap.snapshot/1")["changed"] == 0
    stage.mkdir()
    (inner / "kept").write_text("changed")
    w.ok("rollback", first)
    assert (inner / "kept").read_text() == "kept" and stage.is_dir()


@test
def what_cannot_be_read_fails_the_snapshot_or_is_left_out_and_told(w):
    if os.geteuid() != 0:
        raise Skip("only root can be somebody else")
    needs_fuse(somebody_else=True)
    uid = 65534  # to root nothing is unreadable
    for path in (w.top, w.top / "work"):
        os.chmod(path, 0o755)
    for path in (w.home, w.project, w.project / "src", w.project / "README.md",
                 w.project / "src" / "main.c"):
        os.chown(path, uid, uid)
    w.store.mkdir()
    os.chown(w.store, uid, uid)
    secret = w.project / "src" / "se\ncret"
    secret.write_text("x")
    (w.project / "closed").mkdir(mode=0o700)
    secret.chmod(0o600)

    def snap(*args):
        return w.snap(*args, user=uid, group=uid, extra_groups=[])

    first = snap("snapshot")
    first.ends(1)
    text = first.err.decode()
    assert "/closed': cannot be opened: Permission denied (and 1 more cannot be read)" in text, text
    assert "snapshot --skip-unreadable" in text, text
    assert "'src/se" in text, text
    assert not (w.store / "signatures").exists()
    for command in ("init", "snapshot"):
        got = snap("--json", command, "--skip-unreadable")
        answer = got.json(f"snap.{command}/1", "skipped")
        assert [s["path"] for s in answer["skipped"]] == ["closed", "src/se\\x0acret"], answer
        assert answer["skipped"][0]["why"] == "cannot be opened: Permission denied", answer
        assert b"left out" in got.err, got
    snap("clone", "-n", "c", "--skip-unreadable").ends(0)
    snap("rm", "c").ends(0)
    snap("-q", "stop", "--force").ends(0)


# --- signatures ------------------------------------------------------------------------------------

def reads_of(w, *args):
    """How many bytes of content the daemon read for a command."""
    (pid,) = w.daemons()

    def rchar():
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["rchar"])

    before = rchar()
    w.ok(*args)
    return rchar() - before


@test
def a_second_snapshot_reads_only_what_changed(w):
    size = 8 << 20
    (w.project / "large").write_bytes(os.urandom(size))
    settle()
    w.take()
    (kept,) = signatures(w)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert reads_of(w, "snapshot") < size / 2
    (w.project / "README.md").write_text("changed\n")
    assert reads_of(w, "snapshot") < size / 2
    w.stop()
    w.ok("start")
    assert reads_of(w, "snapshot") < size / 2
    kept.unlink()
    assert reads_of(w, "snapshot") >= size
    assert reads_of(w, "snapshot") < size / 2


@test
def damaged_or_foreign_signatures_are_not_used(w):
    first = w.take()
    (kept,) = signatures(w)
    sound = kept.read_bytes()
    for bad in (b"", b"nonsense", sound[:-1], sound + b"x", bytes(len(sound)),
                sound[:24] + struct.pack("<I", 99) + sound[28:]):
        kept.write_bytes(bad)
        got = w.ok("--json", "snapshot").json("snap.snapshot/1", "changed")
        assert got["changed"] == 0, got
    kept.unlink()
    kept.mkdir()
    w.ok("snapshot")
    shutil.rmtree(kept.parent)
    kept.parent.write_text("in the way")
    got = w.ok("snapshot")
    assert first and b"Traceback" not in got.err
    w.ok("check")


@test
def signatures_of_a_snapshot_that_is_gone_are_not_used(w):
    """What they name may have been swept."""
    w.ok("clone", "-n", "c")
    (w.project / "new").write_text("new\n" * 1000)
    w.take()
    (kept,) = signatures(w)
    saved = kept.read_bytes()
    w.stop()
    shutil.copytree(w.store, w.top / "copy", ignore=shutil.ignore_patterns("clones", "run"))
    # Signatures of a root that this store has never had, under its own secret.
    (w.project / "more").write_text("more\n" * 1000)
    w.take()
    later = kept.read_bytes()
    assert later != saved
    w.stop()
    old = w.top / "copy"
    (old / "signatures" / kept.name).write_bytes(later)
    w.ok("--store", str(old), "snapshot")
    w.ok("--store", str(old), "check")
    w.ok("--store", str(old), "-q", "stop", "--force")


# --- interruption ------------------------------------------------------------------------------------

@test
def a_capture_that_is_killed_leaves_no_snapshot_and_the_next_one_works(w):
    for i in range(400):
        d = w.project / f"d{i % 20}"
        d.mkdir(exist_ok=True)
        (d / f"f{i}").write_bytes(os.urandom(20_000))
    w.ok("start")
    taken = 0
    rng = random.Random(3)
    for _ in range(12):
        (pid,) = w.daemons()
        (w.project / "README.md").write_bytes(os.urandom(100))
        delay = rng.random() * 0.4

        def kill(victim=pid, after=delay):
            time.sleep(after)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        done = w.snap("-q", "snapshot")
        killer.join()
        assert done.status in (0, 1), done
        taken += done.status == 0
        w.ok("start")
        listed = len(w.ok("--json", "log").json("snap.log/1")["snapshots"]) if taken else 0
        # One whose answer was lost may be there, whole; none that was answered may be missing.
        assert listed >= taken, (listed, taken)
        taken = max(taken, listed)
    last = w.take()
    w.ok("check")
    path = w.ok("-q", "clone", "-n", "c", "--from", last).out.decode().strip()
    diff = subprocess.run(["diff", "-r", w.project, path], capture_output=True, check=False)
    assert diff.returncode == 0, diff.stdout[:1000]


if __name__ == "__main__":
    sys.exit(main())
