"""Results of guests: read, judged, and printed as Markdown."""

import json
import statistics

import situations

# Column: the checks it stands for. A cell is the worst of them.
COLUMNS = {
    "run": ["probe", "package", "socket", "run"],
    "heap": ["mem-heap"],
    "memfd": ["mem-memfd"],
    "pids": ["pids"],
    "cpus": ["cpus"],
    "caller's group": ["group"],
    "left behind": ["tree", "units", "after-tree"],
    "doctor": ["doctor-looks", "doctor-true"],
    "promote": ["promote"],
    "restart": ["restart", "watch"],
    "outlives": ["outlives"],
}
ACCELS = {"kvm": "with KVM", "tcg": "emulated", "steady": "by a clock that counts instructions"}
TIMED = ("restart",)  # of these the cell says how long it took
GOOD = ("ok", "holds", "refused", "said", "ends", "none")
WORST = ("fails", "not tried", "said", "ends", "refused", "holds", "ok", "none")


def load(folder):
    meta = json.loads((folder / "guest.json").read_text())
    found = {}
    for one in situations.ALL:
        path = folder / f"{one.name}.json"
        if path.exists():
            found[one.name] = json.loads(path.read_text())
    return {"meta": meta, "found": found}


def failures(one):
    failed = [(name, c["why"]) for name, c in one["checks"].items() if c["result"] == "fails"]
    return failed + [(t["name"], t.get("why", "")) for t in one.get("tests", []) if t["result"] == "fails"]


def one_line(one):
    failed = failures(one)
    programs = f"{len(one['tests'])} test programs, " if one.get("tests") else ""
    return f"{one['name']}: {one['seconds']} s, {programs}" + (
        "all passed" if not failed else "; ".join(f"{name} FAILS: {why}" for name, why in failed))


def all_passed(results):
    asked, found = results["meta"]["asked"], results["found"]
    return all(name in found and not failures(found[name]) for name in asked)


def summary(results):
    asked, found = results["meta"]["asked"], results["found"]
    bad = [n for n in asked if n in found and failures(found[n])]
    missing = [n for n in asked if n not in found]
    return (f"{len(asked) - len(bad) - len(missing)} situations passed, {len(bad)} failed, "
            f"{len(missing)} not tried{': ' + ' '.join(missing) if missing else ''}")


def cell(one, names):
    results = [one["checks"][n]["result"] for n in names if n in one["checks"]]
    if not results:
        return "not tried"
    worst = min(results, key=WORST.index)
    if worst == "fails":
        return f"**{worst}**"
    took = [one["checks"][n]["why"] for n in names if n in TIMED and worst == "ok"]
    return " ".join([worst, *took])


def tests_cell(one):
    tests = one.get("tests")
    if tests is None:
        return "not tried"
    counts = {}
    for test in tests:
        counts[test["result"]] = counts.get(test["result"], 0) + 1
    checks = sum(t.get("passed", 0) for t in tests)
    words = [f"{n} {'**fail**' if kind == 'fails' else kind}" for kind, n in sorted(counts.items())]
    commits = sorted({t["commit"] for t in tests})
    return ", ".join(words) + f" ({checks} checks, {' and '.join(commits)})"


def commit_cell(one):
    """What was probed, and when; a row whose program was installed by its package says so."""
    return ", ".join(filter(None, [one["commit"], one.get("package") and "package",
                                   "steady" if one.get("accel") == "steady" else "", one.get("day")]))


def merge(folders):
    """Results of one guest from several runs: of each situation and of each test program the last."""
    guests = {}
    for results in map(load, folders):
        meta = results["meta"]
        found = guests.setdefault((meta["suite"], meta["arch"]), {})
        for name, one in results["found"].items():
            before = found.get(name, {})
            tests = {t["name"]: t for t in before.get("tests", [])}
            tests.update((t["name"], {**t, "commit": one["commit"]}) for t in one.get("tests", []))
            found[name] = one if one["checks"] or not before else before  # it may have run tests only
            if tests:
                found[name]["tests"] = list(tests.values())
    return guests


def costs(found):
    """What a run cost, beside what systemd takes for a scope: of each situation the cells of a row."""
    measured = {one["what"]: one["cost_ms"] for one in found.values() if one.get("cost_ms")}
    return {what: {name: f"{min(ms):.0f}, {statistics.median(ms):.0f}" if ms else "not tried"
                   for name, ms in cost.items()} for what, cost in measured.items()}


def section(suite, arch, found):
    """One guest: what it is, a row for each situation, why each failure failed, what runs cost."""
    first = next(iter(found.values()), {})
    reasons = {}
    for name, one in found.items():
        for check, why in failures(one):
            reasons.setdefault((check, " ".join(why.split())[:300].replace("|", "/")), []).append(name)
    return {
        "guest": f"{suite}, {arch}",
        "system": f"Linux {first.get('kernel', 'not booted')}, {first.get('systemd', '')}",
        "rows": {one["what"]: [*(cell(one, names) for names in COLUMNS.values()), tests_cell(one), commit_cell(one)]
                 for one in found.values()},
        "failed": [(check, names, why) for (check, why), names in reasons.items()],
        "costs": costs(found),
        "how": " and ".join(sorted({ACCELS[one.get("accel", "tcg")] for one in found.values()})),
    }
