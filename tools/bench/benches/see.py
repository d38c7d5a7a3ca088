"""What it costs to be able to see: the metrics of every request, and blame of a file with many versions."""

import json
import os
import re
from pathlib import Path

from arena import run
from rounds import say
from row import OURS, at_most

FILES, TIMES = 1000, 5  # that one round makes, uses and removes, and how often
VERSIONS, SNAPSHOTS = 1000, 20000
QUICK = 20  # times less of both
LINES = 200  # of the file


def requests(session, project):
    """That the daemon has answered."""
    text = run(session.snapcow, "metrics", cwd=project, env=session.store.env)
    return sum(int(n) for n in re.findall(r"^snapcow_fuse_operation_seconds_count\S* (\d+)$", text, re.M))


def daemon_seconds(session):
    """Of the processor."""
    words = Path(f"/proc/{session.store.daemon()}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def metrics(session):
    """There is no switch, so: how many requests, and what the metrics of one take.

    All in seconds of the processor, of who asks and of who answers. One waits for the other, so the
    whole takes longer than these and the real share is smaller.
    """
    each = session.row("metrics of one request", "ns")
    share = session.row("metrics, of the processor's time of file-system operations", "%", at_most(1.0))
    project = session.tree()
    clone = session.clone_of(project, session.number("metered"))

    def ours(_):
        cost = json.loads(run(session.helper("bench-meter")))["ns"]
        before, answered, asked = requests(session, project), daemon_seconds(session), os.times()
        run(session.helper("bench-ops"), clone, FILES, TIMES)
        now = os.times()
        took = now.children_user + now.children_system - asked.children_user - asked.children_system
        took += daemon_seconds(session) - answered
        each.add(OURS, cost)
        share.add(OURS, 100 * (requests(session, project) - before) * cost / (took * 1e9))
    session.rounds("metrics", {OURS: ours}, [each, share])


def history(session, clone):
    """Many snapshots of a clone, few of which change the file; its path there."""
    few = QUICK if session.opts.quick else 1
    file, other = clone / "versions.txt", clone / "other.txt"
    lines = [f"line {i}\n" for i in range(LINES)]
    every = SNAPSHOTS // VERSIONS
    say(f"  {SNAPSHOTS // few:,} snapshots, {VERSIONS // few:,} of which change a file")
    for i in range(SNAPSHOTS // few):
        if i % every == 0:
            lines[i // every * 7 % LINES] = f"changed by {i}\n"
            file.write_text("".join(lines))
        else:
            other.write_text(f"{i}\n")
        session.store.snap("snapshot", clone.name, "-m", str(i), cwd=clone)
    return file


def blame(session):
    row = session.row("`blame` of a file with many versions among many more snapshots", "ms", at_most(300))
    clone = session.clone_of(session.tree(), session.number("blamed"))
    file = history(session, clone)

    def ours(_):
        row.add(OURS, session.store.timed("blame", file, cwd=clone))
    session.rounds("blame", {OURS: ours}, [row], sync=False)


METRICS, BLAME = {"metrics": metrics}, {"blame": blame}
