"""tools/guest without a guest: what it is asked to do, how restarts are timed, what the tables keep."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from snaptest import World, main, test

TOOL = Path(__file__).resolve().parents[2] / "tools" / "guest"
LOADER = importlib.machinery.SourceFileLoader("guest", str(TOOL))
guest = importlib.util.module_from_spec(importlib.util.spec_from_loader("guest", LOADER))
LOADER.exec_module(guest)
import page  # noqa: E402  (found by what the lines above loaded)
import probe  # noqa: E402
import report  # noqa: E402

PROGRAMS = [{"name": "cli-run"}, {"name": "cli-promote"}]


def planned(*words, tests=False, only_tests=False, test=()):
    opts = SimpleNamespace(tests=tests, only_tests=only_tests, all_tests=False, test=list(test))
    return {step["name"]: (step["probe"], step["tests"])
            for step in guest.plan(opts, guest.parse_situations(words), PROGRAMS)}


def refused(what, *words):
    try:
        what(*words)
    except SystemExit as why:
        return str(why)
    return ""


def result(**more):
    return {"name": "user-login", "what": "user, login", "checks": {"run": {"result": "ok", "why": ""}},
            "commit": "abc", "day": "2026-01-02", "kernel": "6.1", "systemd": "252", "accel": "tcg", **more}


@test
def a_situation_is_probed_and_tested_as_it_was_asked_for(w: World):
    assert planned("user-login", "sudo") == {"user-login": (True, []), "sudo": (True, [])}
    both = ["cli-run", "cli-promote"]
    asked = ["user-login", "sudo", "root-login=cli-promote"]
    assert planned(*asked, tests=True) == {
        "user-login": (True, both), "sudo": (True, []), "root-login": (False, ["cli-promote"])}
    assert planned("user-login", only_tests=True) == {"user-login": (False, both)}
    assert planned(*asked, test=["cli-run"]) == {
        "user-login": (True, ["cli-run"]), "sudo": (True, []), "root-login": (False, ["cli-promote"])}
    # Tests of one situation are nothing that another one runs, too.
    assert planned(*asked)["user-login"] == (True, [])
    assert len(planned()) == len(guest.situations.ALL)


@test
def a_name_that_nobody_has_is_refused_with_those_that_there_are(w: World):
    for word, kind, other in (("user-logi", "situation", "user-login"), ("sudo=cli-runs", "test", "cli-run")):
        said = refused(guest.parse_situations, [word])
        assert f"unknown {kind}: {word.split('=')[-1]};" in said and f" {other} " in f"{said} ", said


@test
def a_steady_clock_is_for_one_emulated_processor(w: World):
    def make(accel, processors):
        return guest.Guest("bookworm", guest.HOST_ARCH, w.top, accel, processors, True)
    for accel, processors in (("kvm", 1), ("tcg", 2)):
        assert "--steady is for one emulated processor" in refused(make, accel, processors)
    # Its saved state is no other one's: a clock cannot go on as another kind.
    assert make("tcg", 1).booted != guest.Guest("bookworm", guest.HOST_ARCH, w.top, "tcg", 1).booted


@test
def a_service_is_back_when_another_process_says_its_number(w: World):
    said = w.top / "number"
    with subprocess.Popen(["sleep", "600"]) as victim:
        said.write_text(f"{victim.pid}\n")
        with subprocess.Popen([sys.executable, "-c", probe.KILL_AND_WAIT, said, str(victim.pid)],
                              stdout=subprocess.PIPE, text=True) as timer:
            assert victim.wait() == -9
            for old in (f"{victim.pid}\n", ""):
                said.write_text(old)
                try:
                    timer.wait(0.3)
                    raise AssertionError(f"{old!r} is taken for a new process")
                except subprocess.TimeoutExpired:
                    pass
            (w.top / "new").write_text(f"{victim.pid + 1}\n")
            (w.top / "new").rename(said)
            assert timer.communicate()[0].startswith("after ") and timer.returncode == 0


@test
def a_table_keeps_what_was_not_run_again(w: World):
    def table(text, one):
        return page.bring_up_to_date(text, {("bookworm", "amd64"): {one["name"]: one}})

    def last_cells(text):
        line = next(line for line in text.splitlines() if line.startswith("| user, login "))
        return [cell.strip() for cell in line.strip("|").split("|")][-2:]

    tests = [{"name": "cli-run", "result": "passed", "passed": 9, "commit": "abc"}]
    text = table("", result(tests=tests, package="a.deb", accel="steady"))
    assert last_cells(text) == ["1 passed (9 checks, abc)", "abc, package, steady, 2026-01-02"], text
    text = table(text, result(commit="def", day="2026-01-03"))
    assert last_cells(text) == ["1 passed (9 checks, abc)", "def, 2026-01-03"], text
    text = table(text, result(commit="fed", checks={}, tests=[{**tests[0], "commit": "fed"}]))
    assert last_cells(text) == ["1 passed (9 checks, fed)", "def, 2026-01-03"], text
    assert report.failures(result()) == []


if __name__ == "__main__":
    sys.exit(main())
