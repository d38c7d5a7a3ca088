"""Promotion while others are at work in the project: nobody's edit is lost, nothing is half done.

SNAP_TESTS_LONG=1 repeats each 200 times, which is what is promised; otherwise it is a few.
"""

import os
import shutil
import subprocess
import sys
import threading

from promotetest import Watch, clone, daemon, picture, same
from snaptest import SNAP, main, test

ROUNDS = 200 if os.environ.get("SNAP_TESTS_LONG") else 10
REFUSED = (5, 11)  # a conflict, or it changes faster than it can be captured
LINES = [f"line {i}\n" for i in range(40)]


def edited(**changed):
    lines = list(LINES)
    for key, value in changed.items():
        lines[int(key[1:])] = f"{value}\n"
    return "".join(lines)


def begin(w, *args):
    return subprocess.Popen([SNAP, "promote", "--json", *args], cwd=w.project, env=w.env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Meanwhile:
    """Does something again and again until it is asked to end; how often it did."""

    def __init__(self, act):
        self.act, self.ended, self.count, self.failure = act, False, 0, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.ended:
                self.act(self.count)
                self.count += 1
        except OSError as e:
            self.failure = e

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()
        assert not self.failure, f"who works there was disturbed: {self.failure}"


def no_strays(w):
    assert not list(w.project.glob(".snapcow-stage-*")), "a stage is left"
    journal = w.store / "journal"
    assert not journal.exists() or not list(journal.iterdir()), "a journal is left"


@test
def of_two_at_once_each_lands_whole_or_not_at_all(w):
    (w.project / "both").write_text(edited())
    for i in range(ROUNDS):
        for name, line in (("a", "l3"), ("b", "l30")):
            path = clone(w, name)
            (path / "both").write_text(edited(**{line: f"{name} {i}"}))
            for k in range(20):
                (path / f"{name}{k}").write_text(f"{name} {i}\n")
        acts = {name: begin(w, name) for name in ("a", "b")}
        for name, act in acts.items():
            act.communicate(timeout=120)
            seen = {(w.project / f"{name}{k}").read_text() if (w.project / f"{name}{k}").exists()
                    else None for k in range(20)}
            if act.returncode == 0:
                assert seen == {f"{name} {i}\n"}, seen
            else:
                assert act.returncode == 5 and f"{name} {i}\n" not in seen, (act.returncode, seen)
        text = (w.project / "both").read_text()
        for name, act in acts.items():
            assert (f"{name} {i}\n" in text) == (act.returncode == 0), text
        no_strays(w)
        w.ok("rm", "--force", "a", "b")
        (w.project / "both").write_text(edited())


def against_an_editor(w, put):
    """It looks at what is there, changes a line and saves, again and again."""
    path = w.project / "text"
    path.write_text(edited())

    def save(n):
        lines = path.read_text().splitlines(keepends=True)
        lines[30] = f"editor {n}\n"
        put(path, "".join(lines))

    for i in range(ROUNDS):
        there = clone(w)
        (there / "text").write_text(path.read_text().replace("line 3\n", f"clone {i}\n"))
        for k in range(20):
            (there / f"f{k}").write_text(f"{i}\n")
        with Meanwhile(save) as editor:
            act = begin(w, "try")
            act.communicate(timeout=120)
        text = path.read_text()
        assert f"editor {editor.count - 1}\n" in text, (editor.count, text)
        seen = {(w.project / f"f{k}").read_text() if (w.project / f"f{k}").exists() else None
                for k in range(20)}
        assert (f"{i}\n" in seen) == (act.returncode == 0) and len(seen) == 1, (act.returncode, seen)
        no_strays(w)
        w.ok("rm", "--force", "try")
        path.write_text(edited())


@test
def what_an_editor_saves_meanwhile_is_never_lost(w):
    def put(path, text):
        """Another file in its place, as most editors do."""
        w.top.joinpath("saved").write_text(text)
        os.replace(w.top / "saved", path)

    against_an_editor(w, put)


@test
def what_an_editor_saves_in_place_meanwhile_is_never_lost(w):
    against_an_editor(w, lambda path, text: path.write_text(text))


@test
def a_directory_that_is_removed_meanwhile_stays_removed_or_gets_all(w):
    target = w.project / "deep" / "er"
    for i in range(ROUNDS):
        target.mkdir(parents=True, exist_ok=True)
        for k in range(30):
            (target / f"f{k}").write_text("old\n")
        there = clone(w)
        for k in range(30):
            (there / "deep" / "er" / f"f{k}").write_text(f"{i}\n")
        act = begin(w, "try")
        shutil.rmtree(w.project / "deep", ignore_errors=True)
        act.communicate(timeout=120)
        left = sorted(target.glob("*")) if target.exists() else []
        # A removal file by file may meet what has landed, or land may meet what is left: never the old.
        assert act.returncode in (0, *REFUSED), act.returncode
        assert act.returncode == 0 or all(p.read_text() == "old\n" for p in left), left
        no_strays(w)
        w.ok("rm", "--force", "try")


def git(top, *args):
    return subprocess.run(["git", "-C", top, "-c", "user.name=n", "-c", "user.email=e@x", *args], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def two_branches(top):
    """In which 30 files differ, one is the same, and one directory is of the second alone."""
    git(top, "init", "-q", "-b", "one")
    for branch in ("one", "two"):
        if branch == "two":
            git(top, "checkout", "-q", "-b", branch)
            (top / "two").mkdir()
            (top / "two" / "file").write_text("two\n")
        for k in range(30):
            (top / f"f{k}").write_text(edited(l30=f"{branch} {k}"))
        (top / "same").write_text(edited())
        git(top, "add", "-A")
        git(top, "commit", "-q", "-m", branch)


def no_half_of_a_branch(w, i, landed):
    """Each file is the branch's own, or that with what the clone did to it."""
    changed = {k: (w.project / k).read_text() for k in ("same", "f3")}
    plain = {k: git(w.project, "show", f"HEAD:{k}").stdout.decode() for k in changed}
    for k, text in changed.items():
        assert text in (plain[k], plain[k].replace("line 3\n", f"clone {i}\n")), (k, text, plain[k])
    status = git(w.project, "status", "--porcelain").stdout.decode().splitlines()
    ours = {" M same", " M f3", "?? new/"}
    assert set(status) <= (ours if landed else set()), (landed, status)
    if landed:
        assert {p.read_text() for p in (w.project / "new").iterdir()} == {f"{i}\n"}
        assert len(list((w.project / "new").iterdir())) == 20 and changed["same"] != plain["same"]
    fsck = git(w.project, "fsck", "--strict")
    assert fsck.returncode == 0, fsck.stderr


@test
def a_branch_that_is_checked_out_meanwhile_is_whole(w):
    two_branches(w.project)
    landed = 0
    for i in range(ROUNDS):
        git(w.project, "checkout", "-q", "-f", ("one", "two")[i // 2 % 2])
        there = clone(w)
        # What differs between the branches, git does not carry from one to the other: then it stops there.
        for name in ("same", "f3")[:1 + i % 2]:
            (there / name).write_text((there / name).read_text().replace("line 3\n", f"clone {i}\n"))
        (there / "new").mkdir()
        for k in range(20):
            (there / "new" / f"n{k}").write_text(f"{i}\n")
        with Meanwhile(lambda n: git(w.project, "checkout", "-q", ("one", "two")[n % 2])):
            act = begin(w, "try")
            out, err = act.communicate(timeout=120)
        assert act.returncode in (0, *REFUSED), (act.returncode, out, err)
        landed += act.returncode == 0
        no_half_of_a_branch(w, i, act.returncode == 0)
        no_strays(w)
        w.ok("rm", "--force", "try")
        git(w.project, "checkout", "-q", "-f", "one")
        git(w.project, "clean", "-fdq")
    print(f"# {landed} of {ROUNDS} landed")


@test
def directories_that_become_links_lead_nowhere(w):
    outside = w.top / "outside"
    outside.mkdir()
    for k in range(10):
        (outside / f"f{k}").write_text("not yours\n")
    before = picture(outside)
    target, aside = w.project / "dir", w.project / "aside"
    target.mkdir()
    for k in range(10):
        (target / f"f{k}").write_text("old\n")

    watch = Watch(outside) if os.geteuid() == 0 else None

    def swap(_):
        os.rename(target, aside)
        os.symlink(outside, target)
        os.unlink(target)
        os.rename(aside, target)

    for i in range(ROUNDS):
        there = clone(w)
        for k in range(10):
            (there / "dir" / f"f{k}").write_text(f"evil {i}\n")
        (there / "dir" / "new").write_text("evil\n")
        with Meanwhile(swap):
            act = begin(w, "try")
            act.communicate(timeout=120)
        assert act.returncode in (0, 1, *REFUSED), act.returncode
        same(picture(outside), before)
        w.ok("rm", "--force", "try")
    if watch:
        assert daemon(w) not in watch.pids(), "cowfsd was there"
        watch.end()


if __name__ == "__main__":
    sys.exit(main())
