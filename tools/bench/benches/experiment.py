"""How long until five arms of an experiment have run, against five copies of the project; and how long the
first `git status` takes in each of eight arms.

What a person would do without it: copy the project five times, or add five worktrees, and run the
command in each.
"""

import shutil
import subprocess
import time

import trees
from arena import timed
from row import OURS, at_most

COPY, WORKTREE, EXT4 = "cp -a", "git worktree", "ext4"
ARMS = 5
ROUNDS = 3  # the others take tens of seconds
LOOKERS = 8  # arms that look at the work tree
NOTICE = 2  # seconds between the announcement and the experiment
STATUS = "git -c core.fsmonitor=false status"


def entries_of(session):
    return 2000 if session.opts.quick else session.opts.entries


def arms(session):
    row = session.row("five arms of `true`", "ms", at_most(1 / 50, COPY), at_most(1 / 50, WORKTREE))
    row.notes.append(f"{entries_of(session):,} entries; the project is captured first, and was captured before")
    project = session.repo(entries_of(session))
    store, beside = session.store, project.parent / "beside"
    words = [word for i in range(ARMS) for word in ("--arm", f"a{i}=true")]
    store.snap("experiment", "--keep", "none", *words, cwd=project)

    def each(command, after):
        def act(_):
            beside.mkdir()
            row.add(act.who, sum(timed("sh", "-c", command.format(i=i, to=beside / str(i), of=project),
                                       cwd=project) for i in range(ARMS)))
            shutil.rmtree(beside)
            subprocess.run(after, shell=True, cwd=project, check=True)
        return act
    copy = each("cp -a {of} {to} && cd {to} && true", "true")
    tree = each("git worktree add -q --detach {to} && cd {to} && true", "git worktree prune")
    copy.who, tree.who = COPY, WORKTREE

    def ours(_):
        row.add(OURS, store.timed("experiment", "-q", "--keep", "none", *words, cwd=project))
    session.rounds("five arms", {COPY: copy, WORKTREE: tree, OURS: ours}, [row],
                   count=min(session.opts.rounds, ROUNDS), sync=False)


def look(session, entries, with_notice, without):
    """The slowest of eight first looks, one arm at a time, as each arm's own record has it."""
    announced = session.row(f"first `git status` in each of eight arms, announced two seconds before, {entries:,}",
                            "ms", at_most(with_notice, EXT4))
    unannounced = session.row(f"the same without notice, {entries:,}", "ms", at_most(without, EXT4))
    rows = [announced, unannounced]
    if not shutil.which("git"):
        for row in rows:
            row.skip("git is not installed")
        return
    project, store = session.repo(entries), session.store
    for row in rows:
        row.notes.append(f"{entries:,} entries; the slowest of {LOOKERS}, one after the other")
    words = [word for i in range(LOOKERS) for word in ("--arm", f"a{i}={STATUS} > /dev/null")]
    store.snap("experiment", "--keep", "none", *words, cwd=project)
    trees.warm(project)

    def plain(_):
        worst = max(timed("sh", "-c", f"{STATUS} > /dev/null", cwd=project) for _ in range(LOOKERS))
        for row in rows:
            row.add(EXT4, worst)

    def ours(_):
        unannounced.add(OURS, run_arms())
        told = store.snap("experiment", "announce", str(LOOKERS), cwd=project, check=False)
        if told["schema"] == "snap.error/1":
            announced.skip("this snapcow cannot be given notice of an experiment")
            return
        time.sleep(NOTICE)
        announced.add(OURS, run_arms())

    def run_arms():
        got = store.snap("experiment", "--jobs", "1", "--keep", "none", *words, cwd=project)
        assert all(arm["exit_code"] == 0 for arm in got["arms"]), got
        return max(arm["duration_ms"] for arm in got["arms"])
    session.rounds("eight first looks", {EXT4: plain, OURS: ours}, rows, sync=False)


def looks(session):
    look(session, entries_of(session), 1.5, 3.0)


def looks_at_less(session):
    look(session, 1000 if session.opts.quick else 30000, 1.2, 3.0)


PARTS = {"experiment": arms, "experiment-look": looks, "experiment-look-30000": looks_at_less}
