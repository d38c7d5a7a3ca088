"""Numbers for a monitoring system: their form, and that they count what was done."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from snaptest import World, main, needs_fuse, test

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'^({NAME})(?:\{{((?:[a-z_]+="[^"\\\n]*",?)+)\}})? ([0-9]+(?:\.[0-9]+)?)$')
DASHBOARD = Path(__file__).resolve().parents[2] / "docs/grafana/snapcow.json"


def parse(text):
    """The families, by the rules of the text format; what breaks one is an error."""
    families, current = {}, None
    assert text.endswith("\n") and "\n\n" not in text
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert re.fullmatch(NAME, name) and name not in families and words.endswith("."), line
            current = families[name] = {"type": None, "samples": {}}
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert families[name] is current and current["type"] is None, line
            assert kind in ("counter", "gauge", "histogram"), line
            assert (kind == "counter") == name.endswith("_total"), line
            current["type"] = kind
        else:
            found = SAMPLE.match(line)
            assert found and current and current["type"], line
            name, labels, value = found.groups()
            base = re.sub("_(bucket|sum|count)$", "", name) if current["type"] == "histogram" else name
            assert families.get(base) is current, line
            key = (name, labels or "")
            assert key not in current["samples"], f"twice: {line}"
            current["samples"][key] = float(value)
    return families


def histograms(families):
    """Operation -> (buckets, count), after a look whether they rise and agree."""
    family = families.get("snapcow_fuse_operation_seconds")
    got = {}
    for (name, labels), value in (family or {"samples": {}})["samples"].items():
        parts = dict(re.findall(r'([a-z_]+)="([^"]*)"', labels))
        one = got.setdefault(parts["op"], {"buckets": []})
        if name.endswith("_bucket"):
            one["buckets"].append((parts["le"], value))
        else:
            one[name.rsplit("_", 1)[1]] = value
    for op, one in got.items():
        values = [v for _, v in one["buckets"]]
        assert values == sorted(values) and one["buckets"][-1] == ("+Inf", one["count"]), (op, one)
        assert one["sum"] > 0, (op, one)
    return {op: one["count"] for op, one in got.items()}


def metrics(w):
    return parse(w.ok("metrics").out.decode())


def value(families, name, labels=""):
    return families[f"snapcow_{name}"]["samples"][(f"snapcow_{name}", labels)]


@test
def the_text_is_what_prometheus_takes(w: World):
    w.snap("metrics").fails(4, "no store")
    w.ok("init")
    w.stop()
    got = metrics(w)
    assert value(got, "up") == 0 and value(got, "snapshots") == 1 and value(got, "projects") == 1
    assert "snapcow_dirty_bytes" not in got, "the daemon does not run, and is not started"
    assert not w.daemons()
    needs_fuse()
    w.ok("clone", "-n", "try")
    got = metrics(w)
    assert value(got, "up") == 1 and value(got, "clones_mounted") == 1 and value(got, "clones") == 1
    rows = w.ok("metrics", "--json").json("snap.metrics/1", "families")["families"]
    assert {row["name"] for row in rows} <= {name.removeprefix("snapcow_") for name in metrics(w)}
    if not shutil.which("promtool"):
        print("# promtool is not here: only our own parser looked")
        return
    text = w.ok("metrics").out
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@test
def operations_are_counted_one_by_one(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    top = w.store / "clones" / "try"
    before = histograms(metrics(w))
    for i in range(20):
        (top / f"dir{i}").mkdir()
    for i in range(7):
        os.rmdir(top / f"dir{i}")
    fd = os.open(top / "file", os.O_RDWR | os.O_CREAT, 0o644)
    for i in range(30):
        assert os.pwrite(fd, b"x" * 10, i * 100) == 10
    for _ in range(3):
        os.fsync(fd)
    os.close(fd)
    after = histograms(metrics(w))
    grown = {op: after[op] - before.get(op, 0) for op in after}
    want = {"mkdir": 20, "rmdir": 7, "write": 30, "fsync": 3}
    assert {op: grown.get(op) for op in want} == want, grown


@test
def acts_and_runs_are_counted(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    w.ok("run", "try", "--", "sh", "-c", "echo 1 > new")
    w.snap("run", "try", "--", "false")
    w.ok("promote", "try", "--yes")
    w.ok("undo", "--yes")
    got = metrics(w)
    assert value(got, "receipts", 'kind="promotion"') == 1 and value(got, "receipts", 'kind="undo"') == 1
    assert value(got, "runs", 'state="ended"') == 2 and value(got, "runs_failed") == 1
    assert value(got, "events_total") > 5 and value(got, "store_disk_bytes") > 0


@test
def the_dashboard_shows_what_there_is(w: World):
    board = json.loads(DASHBOARD.read_text())
    needs_fuse()
    w.ok("clone", "-n", "try")
    list((w.store / "clones" / "try").iterdir())
    there = metrics(w)
    asked = set(re.findall(r"snapcow_[a-z_]+", json.dumps([p["targets"] for p in board["panels"]])))
    assert asked, "no panel asks for anything"
    for name in asked:
        base = re.sub("_(bucket|sum|count)$", "", name)
        assert name in there or base in there, f"the dashboard asks for {name}, which there is not"


if __name__ == "__main__":
    sys.exit(main())
