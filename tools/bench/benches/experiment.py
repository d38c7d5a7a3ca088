"""How long until five arms of an experiment have run, against five copies of the project.

What a person would do without it: copy the project five times, or add five worktrees, and run the
command in each.
"""

import shutil
import subprocess

from arena import timed
from row import OURS, at_most

COPY, WORKTREE = "cp -a", "git worktree"
ARMS = 5
ROUNDS = 3  # the others take tens of seconds


def arms(session):
    row = session.row("five arms of `true`", "ms", at_most(1 / 50, COPY), at_most(1 / 50, WORKTREE))
    entries = 2000 if session.opts.quick else 80000
    row.notes.append(f"{entries:,} entries; the project is captured first, and was captured before")
    project = session.repo(entries)
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


PARTS = {"experiment": arms}
