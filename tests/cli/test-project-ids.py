"""Runs and events belong to a project, not to a path: whoever lives there later does not inherit them."""

import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from runtest import clone, run  # noqa: E402

AHEAD = 10**18  # nanoseconds: the clock was wrong when the first project was there, and was set back since


def runs(w):
    return [r["run"] for r in w.ok("runs", "--json").json("snap.runs/1")["runs"]]


def events(w, *args):
    return [json.loads(line) for line in w.ok("events", "--json", *args).out.splitlines()]


def postdate(w):
    """As if all that there is had been written by a clock that was far ahead."""
    for path in (w.store / "runs").glob("*/*"):
        if path.is_file() and path.read_bytes()[:1] == b"{":
            record = json.loads(path.read_text())
            if "started" in record:
                record["started"] += AHEAD
                path.write_text(json.dumps(record, separators=(",", ":")) + "\n")
    for path in (w.store / "events").iterdir():
        lines = path.read_text().splitlines() if path.name.isalnum() else []
        if lines and lines[0].startswith("{"):
            changed = [json.loads(line) for line in lines]
            for event in changed:
                event["time"] += AHEAD
            path.write_text("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in changed))


@live_test
def a_later_project_at_the_same_path_inherits_nothing(w):
    clone(w)
    first = run(w, "try", "--", "true")["run"]
    assert runs(w) == [first] and events(w)
    w.stop()
    postdate(w)
    assert runs(w) == [first], "the project itself still has it, whatever the clock said"
    seen = {e["n"] for e in events(w)}
    w.ok("rm", "-f", "try")
    w.ok("projects", "forget", str(w.project))
    w.ok("init")
    assert runs(w) == [], "path and time fit, but it is another project"
    assert not {e["n"] for e in events(w)} & seen, events(w)
    assert seen <= {e["n"] for e in events(w, "--all")}, "nothing is lost"
    clone(w, "new")
    second = run(w, "new", "--", "true")["run"]
    assert runs(w) == [second]


@live_test
def a_project_that_moved_keeps_them_and_the_one_in_its_place_has_its_own(w):
    clone(w)
    first = run(w, "try", "--", "true")["run"]
    there = w.project.with_name("moved")
    w.project.rename(there)
    w.project.mkdir()
    (w.project / "file").write_text("another project\n")
    w.ok("projects", "mv", str(w.project), str(there), "--force")
    w.ok("init")
    clone(w, "new")
    second = run(w, "new", "--", "true")["run"]
    assert runs(w) == [second]
    got = w.snap("runs", "--json", cwd=there).json("snap.runs/1")["runs"]
    assert [r["run"] for r in got] == [first], got
    shutil.rmtree(there)


@live_test
def records_of_an_earlier_version_are_found_by_path_and_time(w):
    clone(w)
    first = run(w, "try", "--", "true")["run"]
    w.stop()
    count = 0
    for path in [*(w.store / "runs").glob("*/*"), *(w.store / "events").iterdir()]:
        text = path.read_text(errors="replace") if path.is_file() else ""
        if '"project_id":"' in text:
            head, _, rest = text.partition('"project_id":"')
            while rest:
                count += 1
                text = head + rest.partition('",')[2]
                head, _, rest = text.partition('"project_id":"')
            path.write_text(text)
    assert count > 3, "they had it"
    assert runs(w) == [first]
    assert {"clone", "run-started", "run-ended"} <= {e["kind"] for e in events(w)}


if __name__ == "__main__":
    sys.exit(livetest.main())
