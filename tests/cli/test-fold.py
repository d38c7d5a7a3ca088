"""Tables on a narrow terminal: a row goes on below between two words, and loses none."""

import fcntl
import os
import re
import struct
import sys
import termios

from snaptest import Skip, World, main, needs_fuse, test

MESSAGE = "the parser takes empty lines now, and the tests for it ask for ünïcödé names as well"


def shown(w, columns, *args):
    """The lines that a terminal of so many columns gets."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    w.snap(*args, stdout=theirs, env={"SNAP_PAGER": ""})
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    return text.replace("\r\n", "\n").splitlines()


def words(lines):
    """All of them; times, sizes and counts may differ from one call to the next."""
    return re.sub(r"just now|\d+ (?:second|minute)s? ago|[\d.,]+", "#", " ".join(" ".join(lines).split()))


def folded(w, *args):
    whole = w.snap(*args).out.decode().splitlines()
    for columns in (40, 60, 80, 120):
        lines = shown(w, columns, *args)
        long = [line for line in lines if len(line) > columns and len(line.split()) > 1]
        assert not long, (columns, long)
        assert words(lines) == words(whole), (columns, lines, whole)
        rows = [[line for line in of if not line.startswith(" ")] for of in (lines, whole)]
        assert len(rows[0]) == len(rows[1]), (columns, lines)
    assert shown(w, 1000, *args)[1:2] and max(map(len, whole)) > 40, whole
    return shown(w, 40, *args)


@test
def the_history_folds_below_its_messages(w: World):
    w.take("-m", MESSAGE, "-t", "v1")
    lines = folded(w, "log")
    below = [line for line in lines if line.startswith(" ")]
    assert len(below) > 2 and all(re.match(r" {4}\S", line) for line in below), lines
    lines = shown(w, 80, "log")
    at = lines[0].index("TAGS")
    assert len(lines) > 3 and all(line[:at].isspace() and line[at] != " " for line in lines[2:]), lines
    assert len(shown(w, 1000, "log")) == len(w.ok("log").out.splitlines()) == 2


@test
def clones_and_runs_fold(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    w.ok("umount", "try")
    assert folded(w, "list")[-1].endswith("(not mounted)")
    if w.snap("run", "try", "--", "printf", "%s\n", *MESSAGE.split()).status == 125:
        raise Skip("no sandbox can be set up here")
    lines = shown(w, 40, "runs")
    assert len(lines) > 3 and max(map(len, lines)) <= 40 and "printf" in "".join(lines), lines
    lines = shown(w, 80, "runs")
    assert len(lines) == 2 and len(lines[1]) <= 80 and lines[1].endswith("..."), lines


@test
def what_the_machine_can_do_folds_below_the_names(w: World):
    lines = folded(w, "doctor")
    below = [line for line in lines if line.startswith(" ")]
    long = [line for line in below if not line.startswith(" " * 16)]
    assert len(below) > len(long) + 5 and all(len(line.split()[0]) > 24 for line in long), lines


if __name__ == "__main__":
    sys.exit(main())
