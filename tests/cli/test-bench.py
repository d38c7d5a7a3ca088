"""tools/bench: turns, verdicts, the table, the curves, and the one command. No figure is judged."""

import json
import os
import subprocess
import sys
import time
import xml.dom.minidom
from pathlib import Path
from types import SimpleNamespace

from snaptest import SNAP, World, main, needs_fuse, test

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tools" / "bench"
sys.path.insert(0, str(BENCH))
import plot  # noqa: E402
import rounds  # noqa: E402
from curve import Curve  # noqa: E402
from report import Report  # noqa: E402
from row import OURS, Row, at_least, at_most  # noqa: E402

from benches import GROUPS  # noqa: E402


def row_with(values, *targets, rate=False):
    row = Row("what", "ms", *targets, rate=rate)
    for who, some in values.items():
        for value in some:
            row.add(who, value)
    return row


def verdicts(row):
    return [row.judge(target)["verdict"] for target in row.targets]


@test
def the_documentation_lists_every_group(w: World):
    text = (ROOT / "docs" / "dev" / "benchmarks.md").read_text()
    listed = [line for line in text.splitlines() if line.startswith("| `")]
    for name, group in GROUPS.items():
        rows = [line for line in listed if line.startswith(f"| `{name}` |")]
        assert len(rows) == 1, f"the table of groups has {len(rows)} rows for {name}"
        assert group.named == ("only if it is named" in rows[0]), rows[0]


@test
def contestants_take_turns_forth_and_back_and_the_first_round_is_forgotten(w: World):
    row, order = Row("what", "ms", at_most(1, "peer")), []
    row.add("du", 5.0)  # known before

    def act(who):
        def do(number):
            order.append((number, who))
            row.add(who, float(number))
        return do
    rounds.take_turns("test", 3, {"peer": act("peer"), OURS: act(OURS)}, [row])
    assert order == [(0, "peer"), (0, OURS), (1, OURS), (1, "peer"), (2, "peer"), (2, OURS),
                     (3, OURS), (3, "peer")], order
    assert row.values == {"du": [5.0], "peer": [1.0, 2.0, 3.0], OURS: [1.0, 2.0, 3.0]}, row.values


@test
def who_takes_long_has_one_round_unless_a_target_names_it(w: World):
    row = Row("what", "ms", at_most(1, "needed"))
    before, rounds.PATIENCE = rounds.PATIENCE, -1
    try:
        rounds.take_turns("test", 2, {who: lambda n, who=who: row.add(who, n)
                                      for who in ("needed", "slow", OURS)}, [row])
    finally:
        rounds.PATIENCE = before
    assert row.values == {"needed": [1, 2], "slow": [0], OURS: [1, 2]}, row.values
    assert row.notes == ["slow takes long and had one round"], row.notes


@test
def a_target_is_met_only_if_median_and_best_meet_it(w: World):
    cases = [
        (at_most(1.1, "peer"), {"peer": [10, 10, 10], OURS: [11, 11, 11]}, False, "met"),
        (at_most(1.1, "peer"), {"peer": [10, 10, 10], OURS: [5, 12, 12]}, False, "short"),
        (at_most(1.1, "peer"), {"peer": [5, 10, 10], OURS: [9, 9, 9]}, False, "short"),
        (at_least(1.2, "peer"), {"peer": [100, 100], OURS: [120, 120]}, True, "met"),
        (at_least(1.2, "peer"), {"peer": [100, 200], OURS: [200, 200]}, True, "short"),
        (at_most(10), {OURS: [1, 10, 99]}, False, "met"),
        (at_most(10), {OURS: [1, 11, 11]}, False, "short"),
        (at_least(200), {OURS: [150, 199]}, True, "short"),
    ]
    for target, values, rate, want in cases:
        got = verdicts(row_with(values, target, rate=rate))
        assert got == [want], (target.text("ms"), values, got)


@test
def what_cannot_be_judged_is_skipped_with_the_reason(w: World):
    row = row_with({OURS: [1.0]}, at_most(1, "btrfs"), at_most(2, "xfs"))
    row.skip("mounting it needs root", "btrfs")
    assert verdicts(row) == ["skipped: btrfs: mounting it needs root",
                             "skipped: xfs: not measured"], verdicts(row)
    row = Row("what", "ms", at_most(10))
    row.skip("needs root")
    assert verdicts(row) == ["skipped: needs root"], verdicts(row)


def report_of(*rows, columns=("ext4",)):
    report = Report(SimpleNamespace(entries=80000, large=1 << 30, rounds=7, quick=False,
                                    sizes=[1, 2]), "/")
    report.sections.append(SimpleNamespace(
        name="fs", title="Work", columns=columns, rows=list(rows), curves=[], seconds={"a": 60},
        skipped={"bindfs": "not installed"}, failed={}))
    return report


@test
def the_table_has_peers_side_by_side_and_says_what_is_short(w: World):
    text = report_of(
        row_with({"ext4": [10, 12, 11], OURS: [22, 24, 23]}, at_most(1.5, "ext4")),
        row_with({"du": [100], OURS: [20]}, at_most(0.35, "du"))).markdown()
    lines = text.splitlines()
    assert "|  | ext4 | peer | snap | ratio | of the best | target | verdict |" in lines, text
    assert ("| what | 11.0 ms (10.0) |  | 23.0 ms (22.0) | 2.09 | 2.20 | <= 1.50x ext4 | short |"
            in lines), text
    assert ("| what |  | du: 100 ms | 20.0 ms | 0.20 | 0.20 | <= 0.35x du | met |" in lines), text
    assert "- skipped bindfs: not installed" in lines, text
    assert "2 targets: 1 met, 1 short, 0 skipped." in lines, text
    assert "what (by 47 %)" in lines[-1], text


@test
def a_report_does_not_say_whose_machine_it_is(w: World):
    text = report_of(row_with({OURS: [1.0]})).markdown()
    assert os.uname().nodename not in text and str(BENCH.parents[1]) not in text, text


@test
def curves_become_a_picture_with_a_legend(w: World):
    curves = []
    for panel, label in (("entries", "clone"), ("entries", "diff <a>"), ("clones", "clone")):
        curve = Curve(panel, label)
        for at in (1, 10, 1000):
            for ms in (0.5, 0.4 * at, 3):
                curve.add(at, ms)
        curves.append(curve)
    curves.append(Curve("clones", "without points"))
    picture = xml.dom.minidom.parseString(plot.svg(curves, "title", "machine"))
    words = [t.firstChild.data for t in picture.getElementsByTagName("text")]
    assert len(picture.getElementsByTagName("polyline")) == 3
    for want in ("title", "machine", "entries", "clones", "milliseconds",
                 "diff <a>: 3 ms at 1,000"):
        assert want in words, (want, words)
    assert not any("without points" in word for word in words), words


def bench(w, *words):
    env = {**w.env, "SNAP_BENCH_DIR": str(w.top / "bench")}
    return subprocess.run([BENCH / "run", *words], env=env, cwd=w.top, timeout=600, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


@test
def one_command_measures_and_writes_table_figures_and_picture(w: World):
    needs_fuse()
    done = bench(w, "change", "clones", "--quick", "--rounds", "1", "--entries", "300",
                 "--sizes", "100,300", "--no-loop", "--build", SNAP.parents[1],
                 "--json", "out.json", "--markdown", "out.md", "--svg", "out.svg")
    assert done.returncode == 0, done.stderr
    assert (w.top / "out.md").read_text() == done.stdout, done.stdout
    data = json.loads((w.top / "out.json").read_text())
    assert [group["name"] for group in data["groups"]] == ["snapshot", "growth"], data
    names = [row["name"] for row in data["groups"][0]["rows"]]
    assert len(names) == 3 and all("10 changed files in 300" in name for name in names), names
    assert all(len(row["contestants"][OURS]["values"]) == 1
               for row in data["groups"][0]["rows"]), data
    assert "Quick" in done.stdout.splitlines()[0], done.stdout
    xml.dom.minidom.parse(str(w.top / "out.svg"))
    assert not list((w.top / "bench").glob("arena-*")), "the arena is left"


@test
def a_part_that_fails_is_told_and_the_others_go_on(w: World):
    needs_fuse()
    done = bench(w, "put", "change", "--quick", "--rounds", "1", "--entries", "300", "--no-loop",
                 "--build", make_build_without_helpers(w), "--json", "out.json")
    assert done.returncode == 1, done.stderr
    assert "skipped: the part 'put' failed" in done.stdout, done.stdout
    groups = json.loads((w.top / "out.json").read_text())["groups"]
    assert list(groups[0]["failed"]) == ["put"] and not groups[1]["failed"], groups
    assert OURS in groups[1]["rows"][0]["contestants"], groups


def make_build_without_helpers(w):
    (w.top / "build" / "cli").mkdir(parents=True)
    (w.top / "build" / "cli" / SNAP.name).symlink_to(SNAP)
    return w.top / "build"


@test
def who_interrupts_gets_what_was_measured_and_nothing_stays(w: World):
    needs_fuse()
    words = ["change", "clones", "--rounds", "100000", "--entries", "300", "--sizes", "100,300",
             "--no-loop", "--build", SNAP.parents[1], "--json", "out.json"]
    with subprocess.Popen([BENCH / "run", *words], cwd=w.top, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**w.env, "SNAP_BENCH_DIR": str(w.top / "bench")}) as process:
        while not list((w.top / "bench").glob("arena-*/store/clones/*")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.terminate()
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1, (process.returncode, err)
    assert "Interrupted" in out.splitlines()[0], out
    assert json.loads((w.top / "out.json").read_text())["interrupted"]
    assert not list((w.top / "bench").glob("arena-*")) and not w.mounts(), err


@test
def a_name_that_is_not_there_is_refused_with_those_that_are(w: World):
    done = bench(w, "nonsense")
    assert done.returncode == 2 and "there is no 'nonsense'" in done.stderr, done.stderr
    assert "growth" in done.stderr and "passthrough" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(main())
