"""`git status` in a clone with very many files of which few changed, when git asks snap what changed."""

import shutil
import subprocess

from arena import timed
from row import OURS, at_most

EXT4 = "ext4"
CHANGES = 10
FULL = 1_000_000


def fsmonitor(session):
    """Each round changes the same few files once more; the peer is git that looks at all files of the project."""
    entries = 2000 if session.opts.quick else FULL
    status = session.row("`git status` with fsmonitor, ten changes", "ms", at_most(100))
    hook = session.row("what of it is `snap fsmonitor`", "ms")
    if not shutil.which("git"):
        for row in (status, hook):
            row.skip("git is not installed")
        return
    status.notes.append(f"{entries:,} entries; ext4: `git status` in the project, without fsmonitor")
    project, store = session.repo(entries), session.store
    clone = session.clone_of(project, "fsmonitor", "--fsmonitor")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=clone, capture_output=True, check=True).stdout.split(b"\0")
    changed = [name.decode() for name in names[:-1:max(1, len(names) // CHANGES)]][:CHANGES]
    for _ in range(2):  # the first looks at everything, and git believes what is older than its index
        subprocess.run(["git", "status"], cwd=clone, capture_output=True, check=True)

    def plain(_):
        status.add(EXT4, timed("git", "-c", "core.fsmonitor=false", "status", cwd=project))

    def ours(n):
        for name in changed:
            with open(clone / name, "ab") as f:
                f.write(b"more\n")
        status.add(OURS, timed("git", "status", cwd=clone))
        hook.add(OURS, store.timed("fsmonitor", "2", "none", cwd=clone))
    session.rounds("git status with fsmonitor", {EXT4: plain, OURS: ours}, [status, hook], sync=False)


PARTS = {"git-fsmonitor": fsmonitor}
