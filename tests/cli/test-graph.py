"""log of a project with its clones, and what follows what."""

import sys

from snaptest import World, main, test


def grown(w):
    """Four snapshots of the project; two clones of the second, with snapshots of their own."""
    made = {name: w.take("-m", name) for name in ("p1", "p2")}
    w.ok("clone", "-n", "a", "--from", made["p2"])
    w.ok("clone", "-n", "b", "--from", made["p2"])
    for name in ("a1", "p3", "b1", "a2", "p4"):
        of = [name[0]] if name[0] != "p" else []
        made[name] = w.take(*of, "-m", name)
    return made


def drawn(w, *args):
    """The lines, each as the drawing and the message."""
    lines = w.ok("log", "--graph", *args).out.decode().splitlines()
    return [line.rstrip() if "*" not in line else
            line[:line.index("*") + 2 + line[line.index("*") + 2:].count("| ") * 2].rstrip() + " "
            + line.split()[-1] for line in lines]


@test
def log_all_lists_the_project_and_its_clones(w: World):
    made = grown(w)
    want = [made[n] for n in ("p4", "a2", "b1", "p3", "a1", "p2", "p1")]
    got = w.ok("log", "--all", "--json").json("snap.log/1", "snapshots")["snapshots"]
    assert [s["snapshot"] for s in got] == want, got
    assert [s["origin"] for s in got] == [".", "a", "b", ".", "a", ".", "."], got
    assert w.ok("-q", "log", "--all").out.decode().split() == want
    assert w.ok("-q", "log", "-g", "-n", "2").out.decode().split() == want[:2]
    lines = w.ok("log", "--all").out.decode().splitlines()
    assert len(lines) == 8 and lines[2].endswith("  a  a2") and lines[1].endswith("  p4"), lines


@test
def the_graph_shows_where_clones_branched_off(w: World):
    grown(w)
    got = drawn(w)
    assert got == ["* p4", "| * a2", "| | * b1", "* | | p3", "| * | a1", "|_|/", "|/", "* p2",
                   "* p1"], got


@test
def a_line_of_history_is_a_line(w: World):
    w.take("-m", "one")
    w.take("-m", "two", "-t", "tagged")
    got = w.ok("log", "--graph").out.decode().splitlines()
    assert len(got) == 2 and got[0].startswith("* ") and got[0].endswith("  [tagged] two"), got
    assert got[1].startswith("* ") and got[1].endswith("  one"), got
    assert drawn(w, "-n", "1") == ["* two"]


@test
def the_graph_is_of_all_and_not_of_one(w: World):
    grown(w)
    w.snap("log", "--graph", "a").fails(2, "'a'", "hint: snapcow log --all a")
    assert len(w.ok("-q", "log", "--all", "a").out.split()) == 2
    assert len(w.ok("-q", "log", "--all", "a", cwd=w.top).out.split()) == 2, "found from elsewhere"
    w.snap("log", "nope").fails(4, "'nope'", "hint: snapcow list --all")
    assert b"no snapshots" in w.ok("log", "--graph", cwd=w.top).out


if __name__ == "__main__":
    sys.exit(main())
