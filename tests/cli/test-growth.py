"""How large the store was, as `stats` tells it."""

import os
import sys

from snaptest import main, test


def growth(w):
    return w.ok("stats", "--json").json("snap.stats/1", "growth")["growth"]


def grow(w, name, megabytes):
    (w.project / name).write_bytes(os.urandom(megabytes << 20))
    w.take()
    w.ok("stop")


@test
def a_daemon_that_ends_notes_what_was_stored_meanwhile(w):
    grow(w, "a", 1)
    grow(w, "b", 2)
    rows = growth(w)
    assert len(rows) == 2, rows
    assert rows[0]["time"] < rows[1]["time"] and rows[0]["garbage"] is None, rows
    # Two snapshots: the first shows 1 MiB and more, the second 3 MiB and more; 3 MiB are stored.
    assert rows[1]["logical"] - rows[0]["logical"] >= 3 << 20, rows
    assert 2 << 20 <= rows[1]["used"] - rows[0]["used"] < 4 << 20, rows
    assert all(r["used"] <= r["disk"] for r in rows), rows
    assert b"more since" in w.ok("stats").out


@test
def a_gc_notes_what_it_found_and_what_was_left(w):
    grow(w, "a", 2)
    (w.project / "a").unlink()
    w.take()
    freed = w.ok("gc", "--keep-last", "1", "--json").json("snap.gc/1", "freed")["freed"]
    assert freed >= 2 << 20, freed
    before, after = growth(w)[-2:]
    assert before["garbage"] == freed and after["garbage"] == 0, (before, after)
    assert before["used"] - after["used"] >= 1 << 20, (before, after)
    n = len(growth(w))
    w.ok("gc", "--dry-run")
    assert len(growth(w)) == n, "who only looks notes nothing"


@test
def nothing_depends_on_the_notes(w):
    grow(w, "a", 1)
    (w.store / "growth").write_bytes(b"\x00nonsense\n1 2\n")
    assert growth(w) == []
    (w.store / "growth").unlink()
    (w.store / "growth").mkdir()
    (w.project / "b").write_text("b")
    w.take()
    w.ok("stop")
    w.ok("check")


if __name__ == "__main__":
    sys.exit(main())
