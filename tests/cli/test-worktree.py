"""A project whose `.git` is a file: its clones have a repository of their own.

As root, and with --user as an ordinary user.
"""

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from snaptest import Skip  # noqa: E402

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@b"}


def git(top, *args, **env):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
           **WHO, **env}
    words = ["git", "-c", "protocol.file.allow=always", "-c", "safe.directory=*", *args]
    done = subprocess.run(words, cwd=top, env=env, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, (args, done)
    return done.stdout.decode().strip()


def sums(top):
    """Every file below it: its content, its mode and its times."""
    return {str(p.relative_to(top)): (hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else None,
                                      p.lstat().st_mode, p.lstat().st_mtime_ns)
            for p in sorted(top.rglob("*"))}


def repository(w):
    """One with two commits and a tag, of which w.project becomes a worktree."""
    real = w.top / "real"
    real.mkdir()
    git(real, "init", "-q", "-b", "main")
    (real / "file").write_text("one\n")
    git(real, "add", ".")
    git(real, "commit", "-q", "-m", "one")
    (real / "sub").mkdir()
    (real / "sub" / "other").write_text("x\n" * 100)
    git(real, "add", ".")
    git(real, "commit", "-q", "-m", "two")
    git(real, "tag", "v1")
    git(real, "pack-refs", "--all")
    subprocess.run(["rm", "-rf", w.project], check=True)
    git(real, "worktree", "add", "-q", "-b", "topic", str(w.project))
    return real


def clone(w, name="c", *args, **more):
    got = w.ok("clone", "--json", "-n", name, *args, **more).json("snap.clone/1", "path", "git_dir")
    return Path(got["path"]), got


def sh(w, script, *args):
    words = [word for key, value in WHO.items() for word in ("--env", f"{key}={value}")]
    return w.snap("run", *words, *args, "--", "sh", "-c", script).ends(0)


@live_test
def commits_in_a_clone_of_a_worktree_stay_in_it(w):
    real = repository(w)
    mark = (w.project / ".git").read_bytes()
    before = sums(real), sums(w.project)
    top, got = clone(w)
    assert got["git_dir"] == str(real / ".git/worktrees/project"), got
    assert git(top, "status", "--porcelain=v2", "--branch").split("\n")[1:] == ["# branch.head topic"]
    assert git(top, "log", "--format=%s", "--all") == "two\none"
    assert git(top, "describe", "--tags") == "v1"
    (top / "file").write_text("clone\n")
    git(top, "commit", "-q", "-a", "-m", "mine")
    git(top, "branch", "other")
    git(top, "gc", "-q", "--prune=now")
    assert git(top, "fsck", "--strict") == ""
    assert git(top, "worktree", "list").count("\n") == 0, "the other worktrees are not its own"
    assert (sums(real), sums(w.project)) == before, "refs, objects, index: all as it was"
    said = w.ok("clone", "-n", "second").err.decode()
    assert f"git: a copy of {real}/.git/worktrees/project" in said, said
    assert (w.project / ".git").read_bytes() == mark


@live_test
def a_fresh_clone_is_clean_and_nothing_is_read_again(w):
    repository(w)
    top, _ = clone(w)
    index = (top / ".git/index").read_bytes()
    git(top, "status")
    assert (top / ".git/index").read_bytes() == index, "git found every file as its index has it"
    got = w.ok("status", "c", "--json").json("snap.status/1", "changed", "stale")
    assert got["changed"] == {"added": 0, "modified": 0, "deleted": 0}, got
    assert got["stale"]["changed"] == 0, got
    [one] = w.ok("list", "--json").json("snap.list/1", "clones")["clones"]
    assert not one["stale"], one
    assert w.ok("diff", "c").out == b"" and w.ok("diff", ".", "c").out == b""
    assert w.ok("stats", "--json").json("snap.stats/1")["projects"] == 1, "git's directory is none"
    (w.project / "new" / "deep").mkdir(parents=True)
    for name in ("new/a", "new/deep/b", "file"):
        (w.project / name).write_text("of the project\n")
    w.ok("snapshot")
    assert w.ok("list", "--json").json("snap.list/1", "clones")["clones"][0]["stale"]
    assert w.ok("status", "c", "--json").json("snap.status/1")["stale"]["changed"] == 3
    w.ok("check")


@live_test
def git_works_in_a_run_and_promote_brings_what_it_made(w):
    real = repository(w)
    clone(w)
    if w.snap("run", "--", "true").status == 125:
        raise Skip("no sandbox can be set up here")
    done = sh(w, "git status --porcelain && echo run > file && git commit -q -a -m run && git log --format=%s",
              "c")
    assert done.out.decode().split("\n")[:3] == ["run", "two", "one"], done
    head, index = git(w.project, "rev-parse", "HEAD"), sums(real / ".git/worktrees")
    mark = (w.project / ".git").stat()
    got = w.ok("promote", "--json", "--git", "c").json("snap.promote/1", "git", "changed")
    assert [g["ref"] for g in got["git"]] == ["refs/heads/snap/c/topic"], got
    assert [c["path"] for c in got["changed"]] == ["file"], got
    assert git(real, "log", "--format=%s", "snap/c/topic") == "run\ntwo\none"
    assert git(real, "fsck", "--strict") == "" and git(w.project, "rev-parse", "HEAD") == head
    assert sums(real / ".git/worktrees") == index
    assert (w.project / ".git").stat() == mark
    # Without a clone, too, and the loop goes on.
    assert "two" in sh(w, "git log --format=%s").out.decode()
    sh(w, "echo again > file && git commit -q -a -m again", "c")
    w.ok("promote", "--git", "c")
    assert git(real, "log", "-1", "--format=%s", "snap/c/topic") == "again"


@live_test
def snapshots_rollback_and_rebase_keep_the_clones_repository(w):
    repository(w)
    top, _ = clone(w)
    git(top, "commit", "-q", "--allow-empty", "-m", "kept")
    w.ok("snapshot", "c")
    git(top, "commit", "-q", "--allow-empty", "-m", "lost")
    w.ok("rollback", "c")
    assert git(top, "log", "-1", "--format=%s") == "kept"
    (w.project / "new").write_text("of the project\n")
    w.ok("rebase", "c")
    assert (top / "new").exists() and (top / ".git").is_dir()
    assert git(top, "log", "-1", "--format=%s") == "kept"
    assert git(top, "status", "--porcelain") == "?? new"
    w.ok("rollback", "c", "c@")
    assert not (top / "new").exists() and (top / ".git").is_dir(), "and its old base is back"
    second, _ = clone(w, "of-clone", "--from", "c")
    assert git(second, "log", "-1", "--format=%s") == "kept"
    w.ok("rm", "c", "of-clone")
    w.ok("gc")
    w.ok("check")


@live_test
def a_clone_needs_nothing_of_the_real_repository_later(w):
    real = repository(w)
    top, _ = clone(w)
    (w.project / "file").write_text("amended\n")
    git(w.project, "commit", "-q", "-a", "--amend", "-m", "other")
    git(real, "reflog", "expire", "--expire=now", "--all")
    git(real, "update-ref", "-d", "refs/tags/v1")
    git(real, "reset", "-q", "--hard", "main~")
    git(real, "gc", "-q", "--prune=now")
    assert git(top, "fsck", "--strict") == ""
    assert git(top, "log", "--format=%s") == "two\none"
    git(real, "worktree", "remove", "--force", str(w.project))
    assert git(top, "status", "--porcelain") == ""


@live_test
def bare_repositories_submodules_and_those_elsewhere_are_copied_too(w):
    real = repository(w)
    bare, tree = w.top / "bare.git", w.top / "tree"
    git(w.top, "clone", "-q", "--bare", str(real), str(bare))
    git(bare, "worktree", "add", "-q", str(tree), "main")
    above = w.top / "above"
    git(w.top, "init", "-q", "-b", "main", str(above))
    git(above, "submodule", "add", "-q", str(real), "lib")
    git(above, "commit", "-q", "-m", "lib")
    apart = w.top / "apart"
    git(w.top, "clone", "-q", "--separate-git-dir", str(w.top / "apart.store"), str(real), str(apart))
    for name, place, common in (("bare", tree, bare), ("lib", above / "lib", above / ".git/modules/lib"),
                                ("apart", apart, w.top / "apart.store")):
        before = sums(common)
        top, got = clone(w, name, cwd=place)
        assert got["git_dir"].startswith(str(common)), got
        assert git(top, "status", "--porcelain") == "", name
        git(top, "commit", "-q", "--allow-empty", "-m", name)
        assert sums(common) == before, name
        got = w.ok("promote", "--json", "--git", name, cwd=place).json("snap.promote/1", "git")
        assert git(place, "log", "-1", "--format=%s", got["git"][0]["ref"]) == name, got


def others(w):
    """Repositories of their own: `inner`, and `outer` with `inner` as a submodule."""
    inner, outer = w.top / "inner", w.top / "outer"
    for top in (inner, outer):
        git(w.top, "init", "-q", "-b", "main", str(top))
        (top / "text").write_text(f"{top.name}\n")
        git(top, "add", ".")
        git(top, "commit", "-q", "-m", top.name)
    git(outer, "submodule", "add", "-q", str(inner), "in")
    git(outer, "commit", "-q", "-m", "with inner")
    return inner, outer


def commit_below(top, *places):
    """A commit at each place of a clone, on a branch or not as it is there."""
    for place in places:
        (top / place / "made-here").write_text(f"{place} of {top.name}\n")
        git(top / place, "add", "made-here")
        git(top / place, "commit", "-q", "-a", "-m", f"in {place}")


def untouched(*tops):
    return [sums(top) for top in tops]


@live_test
def submodules_of_a_worktree_and_their_submodules_have_copies(w):
    inner, outer = others(w)
    real = repository(w)
    git(w.project, "submodule", "add", "-q", str(outer), "lib/outer")
    git(w.project, "submodule", "update", "-q", "--init", "--recursive")
    git(w.project, "commit", "-q", "-m", "with outer")
    before = untouched(real, w.project, inner, outer)
    top, got = clone(w)
    assert got["warnings"] == [], got
    assert [link["path"] for link in got["git_links"]] == ["lib/outer/.git", "lib/outer/in/.git"], got
    said = w.ok("clone", "-n", "text").err.decode()
    assert "git: lib/outer/in/.git leads to the clone's own " in said, said
    assert git(top, "status", "--porcelain") == "" and git(top, "submodule", "status", "--recursive").count("\n") == 1
    got = w.ok("status", "c", "--json").json("snap.status/1", "changed", "stale")
    assert got["stale"]["changed"] == 0 and sum(got["changed"].values()) == 0, got
    assert w.ok("diff", ".", "c").out == b"" and w.ok("diff", "c", ".").out == b""
    git(top / "lib/outer", "checkout", "-q", "-b", "mine")
    commit_below(top, "lib/outer/in", "lib/outer")
    git(top, "commit", "-q", "-a", "-m", "above")
    assert untouched(real, w.project, inner, outer) == before, "nothing of it reached what is real"
    (w.project / "new").write_text("of the project\n")
    w.ok("rebase", "c")
    assert git(top / "lib/outer/in", "log", "-1", "--format=%s") == "in lib/outer/in"
    assert git(top, "status", "--porcelain") == "?? new"
    got = w.ok("promote", "--json", "--git", "c").json("snap.promote/1", "git")
    brought = {(g["repository"], g["ref"]) for g in got["git"]}
    assert brought == {("", "refs/heads/snap/c/topic"),
                       ("lib/outer", "refs/heads/snap/c/mine"),
                       ("lib/outer/in", "refs/heads/snap/c/detached")}, got
    for place, ref in (("lib/outer", "mine"), ("lib/outer/in", "detached")):
        assert git(w.project / place, "log", "-1", "--format=%s", f"snap/c/{ref}") == f"in {place}"
    made = git(w.project, "rev-parse", "snap/c/topic:lib/outer")
    git(w.project / "lib/outer", "cat-file", "-e", made)
    w.ok("check")


@live_test
def a_removed_submodule_and_a_branch_called_detached_are_no_obstacle(w):
    inner, outer = others(w)
    repository(w)
    git(w.project, "submodule", "add", "-q", str(outer), "lib")
    git(w.project, "submodule", "add", "-q", str(inner), "gone")
    git(w.project, "commit", "-q", "-m", "with both")
    top, _ = clone(w)
    git(top / "lib", "checkout", "-q", "-b", "detached")
    commit_below(top, "lib")
    git(top / "lib", "checkout", "-q", "--detach")
    (top / "lib/made-here").write_text("and again\n")
    git(top / "lib", "commit", "-q", "-a", "-m", "on no branch")
    git(top, "rm", "-q", "-f", "gone")
    subprocess.run(["rm", "-rf", top / ".git/modules/gone"], check=True)
    git(top, "commit", "-q", "-a", "-m", "without gone")
    got = w.ok("promote", "--json", "--git", "--allow", ".gitmodules", "c").json("snap.promote/1", "git")
    brought = {(g["repository"], g["ref"].removeprefix("refs/heads/snap/c/")) for g in got["git"]}
    assert brought == {("", "topic"), ("lib", "detached"), ("lib", "detached-2")}, got
    for ref, said in (("detached", "in lib"), ("detached-2", "on no branch")):
        assert git(w.project / "lib", "log", "-1", "--format=%s", f"snap/c/{ref}") == said


@live_test
def what_a_run_does_to_a_git_below_the_top_is_seen(w):
    """Only what snap itself put there is left out, never what differs from the clone's base."""
    _, outer = others(w)
    repository(w)
    git(w.project, "submodule", "add", "-q", str(outer), "lib")
    plain = w.top / "work" / "plain"
    (plain / "lib").mkdir(parents=True)
    (plain / "lib" / ".git").write_text("gitdir: ../.git/modules/lib\n")
    for place in (w.project, plain):
        for name, script in (("folder", "rm lib/.git; mkdir lib/.git; echo evil > lib/.git/config"),
                             ("lead", "echo 'gitdir: /tmp/evil' > lib/.git")):
            name = f"{place.name}-{name}"
            top, _ = clone(w, name, cwd=place)
            assert w.ok("diff", name, cwd=place).out == b""
            subprocess.run(["sh", "-c", script], cwd=top, check=True)
            assert b"lib/.git" in w.ok("diff", "--json", name, cwd=place).out, name
            got = w.ok("compare", "--json", name, name, cwd=place).json("snap.compare/1", "states")
            assert got["states"][0]["git_paths"] > 0, got
            kept = w.ok("snapshot", "--json", name, cwd=place).json("snap.snapshot/1")["snapshot"]
            base = w.ok("status", name, "--json", cwd=place).json("snap.status/1", "base")["base"]
            assert b"lib/.git" in w.ok("diff", "--json", base, kept, cwd=place).out, name
    clone(w, "quiet")
    assert w.ok("diff", ".", "quiet").out == b"", "a copy in place of a file is no change"


@live_test
def a_submodule_with_submodules_is_a_project_like_any_other(w):
    inner, outer = others(w)
    above = w.top / "above"
    git(w.top, "init", "-q", "-b", "main", str(above))
    git(above, "submodule", "add", "-q", str(outer), "outer")
    git(above, "submodule", "update", "-q", "--init", "--recursive")
    git(above, "commit", "-q", "-m", "outer")
    before = untouched(above, inner, outer)
    top, got = clone(w, cwd=above / "outer")
    assert [link["path"] for link in got["git_links"]] == ["in/.git"] and got["warnings"] == [], got
    commit_below(top, "in", ".")
    assert untouched(above, inner, outer) == before
    got = w.ok("promote", "--json", "--git", "c", cwd=above / "outer").json("snap.promote/1", "git")
    assert {g["repository"] for g in got["git"]} == {"", "in"}, got
    # Of the project above, both are in its own `.git` and need nothing.
    top, got = clone(w, "all", cwd=above)
    assert got["git_links"] == [] and got["warnings"] == [], got
    before = untouched(above)
    commit_below(top, "outer/in", "outer")
    assert untouched(above) == before
    got = w.ok("promote", "--json", "--git", "all", cwd=above).json("snap.promote/1", "git")
    assert {g["repository"] for g in got["git"]} == {"outer", "outer/in"}, got


@live_test
def worktrees_inside_a_project_and_clones_of_clones_keep_their_commits(w):
    git(w.project, "init", "-q", "-b", "main")
    git(w.project, "add", ".")
    git(w.project, "commit", "-q", "-m", "one")
    git(w.project, "worktree", "add", "-q", "-b", "topic", ".worktrees/topic")
    nested = w.project / ".worktrees/topic"
    git(w.project, "worktree", "add", "-q", "-b", "deeper", str(nested / "deeper"))
    before = untouched(w.project)
    top, got = clone(w)
    assert [link["path"] for link in got["git_links"]] == [".worktrees/topic/.git",
                                                           ".worktrees/topic/deeper/.git"], got
    second, got = clone(w, "second", "--from", "c")
    third, _ = clone(w, "third", "--from", "second")
    assert got["warnings"] == [], got
    commit_below(third, ".worktrees/topic/deeper", ".worktrees/topic", ".")
    assert untouched(w.project) == before
    for other in (top, second):
        assert git(other, "log", "--format=%s", "--all") == "one"
    got = w.ok("promote", "--json", "--git", "third").json("snap.promote/1", "git")
    assert {g["ref"] for g in got["git"]} == {f"refs/heads/snap/third/{b}" for b in ("main", "topic", "deeper")}
    # A worktree whose project is a worktree, and one that comes later.
    outside = w.top / "outside"
    git(w.project, "worktree", "add", "-q", "-b", "outside", str(outside))
    git(w.project, "worktree", "add", "-q", "-b", "within", str(outside / "within"))
    inside, got = clone(w, "inside", cwd=outside)
    assert [link["path"] for link in got["git_links"]] == ["within/.git"], got
    before = untouched(w.project / ".git")
    commit_below(inside, "within", ".")
    assert untouched(w.project / ".git") == before
    got = w.ok("promote", "--json", "--git", "inside", cwd=outside).json("snap.promote/1", "git")
    assert {g["ref"] for g in got["git"]} == {f"refs/heads/snap/inside/{b}" for b in ("outside", "within")}, got
    git(w.project, "worktree", "add", "-q", "-b", "later", "later")
    before = untouched(w.project / ".git")
    w.ok("rebase", "c")
    assert (top / "later/.git").read_text() == "gitdir: ../.git/worktrees/later\n"
    assert untouched(w.project / ".git") == before


@live_test
def a_worktree_in_the_project_that_leads_out_of_the_clone_is_told(w):
    git(w.project, "init", "-q", "-b", "main")
    (w.project / "file").write_text("one\n")
    git(w.project, "add", ".")
    git(w.project, "commit", "-q", "-m", "one")
    other = w.top / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    git(other, "-c", "safe.directory=*", "commit", "-q", "--allow-empty", "-m", "x")
    git(w.project, "submodule", "add", "-q", str(other), "sub")
    assert clone(w, "none")[1]["warnings"] == [], "what a submodule leads to is in the clone"
    git(w.project, "worktree", "add", "-q", "-b", "topic", ".worktrees/topic")
    (w.project / "odd" / "deep").mkdir(parents=True)
    (w.project / "odd" / "deep" / ".git").write_text("gitdir: ../../../other/.git\n")
    (w.project / "odd" / ".git").write_text("no path\n")
    real = w.project.resolve()
    expected = [{"path": "odd/deep/.git", "leads_to": str(real.parent / "other/.git")}]
    for name in ("first", "again", "third"):  # read, and known from last time
        assert clone(w, name)[1]["warnings"] == expected, name
    said = w.ok("clone", "-n", "text").err.decode()
    assert f"'odd/deep/.git' leads to '{real.parent}/other/.git'" in said, said
    assert clone(w, "from", "--from", "first")[1]["warnings"] == []
    saved = w.ok("-q", "snapshot").out.decode().strip()
    assert clone(w, "stored", "--from", saved)[1]["warnings"] == expected, "of a snapshot it is told, too"
    assert clone(w, "tagged", "--from", "@")[1]["warnings"] == expected
    head = git(w.project, "rev-parse", "topic")
    top = w.store / "clones" / "stored" / ".worktrees" / "topic"
    git(top, "commit", "-q", "--allow-empty", "-m", "stays in the clone")
    assert git(w.project, "rev-parse", "topic") == head, "and a worktree in it has a copy of its repository"


@live_test
def a_file_that_leads_to_a_strangers_repository_is_not_followed(w):
    real = repository(w)
    evil = w.top / "evil"
    evil.mkdir()
    for target in (real / ".git", real / ".git/worktrees/project"):
        (evil / ".git").write_text(f"gitdir: {target}\n")
        done = w.ok("clone", "--json", cwd=evil)
        got = done.json("snap.clone/1", "git_dir", "path")
        assert got["git_dir"] is None and (Path(got["path"]) / ".git").is_file(), got
        assert b"does not name" in done.err + done.out, done
    top, _ = clone(w)
    subprocess.run(["rm", "-rf", top / ".git"], check=True)
    (top / ".git").write_text(f"gitdir: {real}/.git/worktrees/project\n")
    got = w.ok("clone", "--json", "--from", "c").json("snap.clone/1", "git_dir", "path")
    assert got["git_dir"] is None and (Path(got["path"]) / ".git").is_file(), got


# What anybody does with git in a clone: (words for git, or a file to write).
ACTS = (("commit", "--allow-empty", "-q", "-m", "empty"), ("branch", "-f", "side"), ("tag", "-f", "t"),
        ("checkout", "-q", "-B", "other"), ("stash", "-u"), ("reset", "-q", "--hard", "HEAD~1"), ("gc", "-q", "--prune=now"),
        ("pack-refs", "--all"), ("update-ref", "refs/heads/made", "HEAD"), ("config", "core.abbrev", "12"),
        ("reflog", "expire", "--expire=now", "--all"), ("worktree", "prune"), ("notes", "add", "-f", "-m", "n"))


def act_at_random(top, rng):
    """One of them; some fail where there is nothing to stash or to go back to, and that is no matter."""
    (top / f"f{rng.randrange(4)}").write_text(f"{rng.random()}\n")
    if rng.random() < 0.6:
        git(top, "add", "-A")
        git(top, "commit", "-q", "--allow-empty", "-m", f"r{rng.randrange(1000)}")
    words = rng.choice(ACTS)
    subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=top, check=False, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **WHO})


@live_test
def whatever_git_does_in_clones_the_real_repository_stays_as_it_was(w):
    """Random histories: clones, clones of clones, rollbacks, rebases and acts of git between them."""
    seed = int(os.environ.get("SNAP_TEST_SEED") or random.randrange(1 << 30))
    print(f"# seed {seed}: SNAP_TEST_SEED={seed} repeats it")
    rng = random.Random(seed)
    real = repository(w)
    before = sums(real), sums(w.project)
    tops = {"c0": clone(w, "c0")[0]}
    for step in range(100 if livetest.LONG else 24):
        name = rng.choice(sorted(tops))
        act = rng.randrange(8)
        if act == 0 and len(tops) < 5:
            new = f"c{len(tops)}"
            tops[new] = clone(w, new, "--from", rng.choice([name, "."]))[0]
        elif act == 1:
            w.ok("snapshot", name)
        elif act == 2:
            w.ok("rollback", name)
        elif act == 3:
            w.ok("rebase", name, "--conflict", "theirs")
        else:
            act_at_random(tops[name], rng)
        assert (sums(real), sums(w.project)) == before, (seed, step, act, name)
        git(tops[name], "rev-parse", "HEAD")
    heads = {name: git(top, "rev-parse", "HEAD") for name, top in tops.items()}
    for name, top in tops.items():
        git(top, "fsck", "--connectivity-only")
        assert git(top, "rev-parse", "--git-common-dir").find(str(real)) < 0, name
    w.ok("promote", "--git", "c0", "--conflict", "theirs")
    brought = git(real, "for-each-ref", "--format=%(objectname)", "refs/heads/snap/")
    assert heads["c0"] in brought or git(real, "merge-base", "--is-ancestor", heads["c0"], "main") == "", (seed, heads)


if __name__ == "__main__":
    sys.exit(livetest.main())
