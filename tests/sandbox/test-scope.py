#!/usr/bin/env python3
"""Scopes from a real systemd: a manager that is started for the test, in namespaces of its own.

That the limits hold is for a machine that runs on version 2 (tools/guest).
"""

import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandboxtest import Skip, main, note, test  # noqa: E402
from managertest import with_manager  # noqa: E402  (beside snaptest)

ASK = os.environ["SNAP_SCOPE_ASK"]


@test
def a_process_gets_a_scope_of_its_own_and_nothing_stays(box):
    act = ('"$1" 5 || exit; left() { find /sys/fs/cgroup -name "snap-run-test*"; }; '
           'for i in $(seq 600); do [ -n "$(left)" ] || exit 0; sleep 0.05; done; left; exit 1')
    done = with_manager(box, box.top, "sh", "-c", act, "sh", ASK)
    assert done.returncode == 0, done
    lines = [line.rsplit(" ", 2) for line in done.stdout.decode().splitlines()]
    assert len(lines) == 5 and len({group for group, _, _ in lines}) == 5, lines
    for group, kind, _ in lines:
        assert Path(group).name.startswith("snap-run-test-") and group.endswith(".scope"), lines
        assert kind == "domain", lines
    took = statistics.median(int(us) for _, _, us in lines)
    note(f"a scope took {took / 1000:.1f} ms from the first connection on (median of 5)")


@test
def a_scope_whose_process_died_on_its_way_is_ended_by_the_next_run(box):
    act = ('name=$("$1" dead) || { echo "no scope"; exit 0; }; there() { find /sys/fs/cgroup -name "$name"; }; '
           '[ -n "$(there)" ] || { echo "no scope"; exit 0; }; '
           '"$1" 1 || exit; for i in $(seq 600); do [ -n "$(there)" ] || { echo ended; exit 0; }; sleep 0.05; done; '
           'there; exit 1')
    done = with_manager(box, box.top, "sh", "-c", act, "sh", ASK)
    assert done.returncode == 0, done
    if done.stdout == b"no scope\n":
        raise Skip("this systemd makes no scope for a process that has ended")
    assert done.stdout.endswith(b"\nended\n"), done


if __name__ == "__main__":
    sys.exit(main())
