"""How long until a command has run in a sandbox, against bubblewrap and unshare.

Each is timed as a person waits for it, from the start of the process to its end. Bubblewrap gets
the flags that come closest: all its namespaces, the same folders, a new session, no capability.
It has neither filter nor limits.
"""

import os
import shutil

from arena import timed
from row import OURS, at_most

EXEC, UNSHARE, BUBBLEWRAP = "plain exec", "unshare", "bubblewrap"
COMMAND = ["true"]
FOLDERS = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt"]
SHORT_ROUNDS = 6  # for each round of what takes longer


def bubblewrap(project):
    words = ["bwrap", "--unshare-all", "--new-session", "--die-with-parent", "--cap-drop", "ALL",
             "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]
    for folder in FOLDERS:
        if os.path.islink(folder):
            words += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            words += ["--ro-bind", folder, folder]
    return [*words, "--bind", str(project), str(project), "--chdir", str(project), *COMMAND]


def p95(values):
    return sorted(values)[int(len(values) * 0.95)]


def start(session):
    kept = session.row("`snap run CLONE -- true`", "ms", at_most(1.5, BUBBLEWRAP))
    thrown = session.row("`snap run -- true`, throw-away clone", "ms", at_most(3.0, BUBBLEWRAP))
    entries = 1000 if session.opts.quick else 8000
    thrown.notes.append(f"in a project of {entries:,} entries, which is captured first")
    project = session.tree(entries)
    store, env = session.store, session.store.env
    session.clone_now(project, "bench")

    def both(who, *argv):
        value = timed(*argv, cwd=project, env=env)
        kept.add(who, value)
        thrown.add(who, value)

    def ours(_):
        kept.add(OURS, store.timed("run", "bench", "--", *COMMAND, cwd=project))
        thrown.add(OURS, store.timed("run", "--", *COMMAND, cwd=project))
    acts = {EXEC: lambda _: both(EXEC, *COMMAND),
            UNSHARE: lambda _: both(UNSHARE, "unshare", "--user", "--map-root-user", "--mount",
                                    "--pid", "--fork", "--net", "--ipc", "--uts", "--kill-child",
                                    *COMMAND)}
    if shutil.which("bwrap"):
        acts[BUBBLEWRAP] = lambda _: both(BUBBLEWRAP, *bubblewrap(project))
    else:
        session.skipped[BUBBLEWRAP] = "not installed"
    session.rounds("start of a run", {**acts, OURS: ours}, [kept, thrown],
                   count=session.opts.rounds * SHORT_ROUNDS, sync=False)
    for row in kept, thrown:
        row.notes.append("p95: " + ", ".join(f"{who} {p95(values):.2f} ms"
                                             for who, values in row.values.items()))


PARTS = {"start": start}
