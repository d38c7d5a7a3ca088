"""experiment, at work: many arms, limits of the whole, early ends; and without a terminal."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import experiment, nothing_is_left  # noqa: E402
from livetest import LONG, live_test  # noqa: E402


@live_test
def many_arms_leave_nothing_behind(w):
    count = 200 if LONG else 20
    w.ok("init")
    args = [word for i in range(count) for word in ("--arm", f"a{i}=echo {i} > n")]
    got = experiment(w, "-n", "many", *args, "--check", "grep -q '[05]$' n", "--score", "cat n",
                     "--jobs", "8")
    assert got["winner"] == "a0" and got["passed"] == count // 5, got["verdict"]
    nothing_is_left(w, "many-a0")
    w.ok("exp", "rm", "many")
    nothing_is_left(w)
    assert list((w.store / "experiments").iterdir()) == []
    w.ok("gc")
    assert w.ok("check", "--json").json("snap.check/1")["errors"] == []


if __name__ == "__main__":
    sys.exit(livetest.main())
