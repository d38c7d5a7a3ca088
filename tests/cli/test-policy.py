"""How risky the changes of a clone are, and what may land without a person."""

import os
import subprocess
import sys
import time

from promotetest import clone, promote
from snaptest import World, main, test


def put(path, text="x\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def rules(w, text):
    """Write the user's own rules."""
    path = w.home / ".config" / "snapcow" / "policy.yaml"
    put(path, text)
    return path


def explain(w, *args, name="try"):
    return w.ok("policy", "explain", name, "--json", *args).json("snap.policy/1", "then", "risk")


def reasons(got):
    return {r["rule"]: (r["risk"], r["path"]) for r in got["reasons"]}


DOCS = """
- name: documentation
  paths: ["docs/", "*.md"]
  when: [risk<=low, "lines<=200"]
  then: land
"""


@test
def without_rules_nothing_lands_unseen(w: World):
    there = clone(w)
    put(there / "docs" / "a.md")
    got = explain(w)
    assert got["then"] == "approve" and got["risk"] == "low", got
    assert got["facts"]["kind"] == "docs" and got["facts"]["files"] == 1, got
    assert [s["because"] for s in got["steps"]] == [
        "no rule fits: a person must approve", "no rule narrows it"], got


@test
def a_path_that_the_guard_holds_counts_once(w: World):
    put(clone(w) / ".envrc")
    got = explain(w)
    assert [(r["rule"], r["path"], r["paths"]) for r in got["reasons"]] == [("shell", ".envrc", 1)], got
    assert got["facts"]["held"] == 1, got


@test
def each_risk_has_a_reason_that_names_a_path(w: World):
    put(w.project / "tests" / "test_a.py", "assert True\n")
    put(w.project / "tool.sh", "#!/bin/sh\n")
    there = clone(w)
    (there / "tests" / "test_a.py").unlink()
    (there / "tool.sh").chmod(0o755)
    (there / "logo.png").write_bytes(b"\x89PNG\0\1\2")
    put(there / "package-lock.json", "{}\n")
    put(there / ".env", "TOKEN=1\n")
    put(there / ".github" / "workflows" / "a.yml")
    put(there / "Makefile", "all:\n\ttrue\n")
    put(there / "long.txt", "".join(f"{i}\n" for i in range(600)))
    got = explain(w, "--subject", "*.txt", "--subject", "docs/")
    seen = reasons(got)
    assert got["risk"] == "high" and got["facts"]["kind"] == "mixed", got
    assert got["reasons"][0]["risk"] == "high", got
    for rule, risk, path in (("tests-deleted", "high", "tests/test_a.py"), ("secret", "high", ".env"),
                             ("ci", "high", ".github/workflows/a.yml"), ("executable", "medium", "tool.sh"),
                             ("binary", "medium", "logo.png"), ("recipes", "medium", "Makefile"),
                             ("dependencies", "medium", "package-lock.json"), ("large", "medium", None)):
        assert seen.get(rule) == (risk, path), (rule, seen)
    assert seen["far"][0] == "medium" and "long.txt" not in seen["far"], seen
    facts = got["facts"]
    assert (facts["tests_deleted"], facts["executables"], facts["binaries"]) == (1, 1, 1), facts
    out = w.ok("policy", "explain", "try").out.decode()
    assert "risk: high" in out and "tests/test_a.py: a check that no longer runs cannot fail" in out, out


@test
def a_dry_run_of_a_promotion_shows_the_risk(w: World):
    there = clone(w)
    put(there / "tool.sh", "#!/bin/sh\n")
    (there / "tool.sh").chmod(0o755)
    out = w.ok("promote", "-n", "try").out.decode()
    assert "risk: medium\n" in out and "executable      tool.sh: it can be run from now on" in out, out
    assert "risk:" not in w.ok("promote", "-n", "try", "--path", "*.sh").out.decode()
    put(there / ".github" / "a.yml")
    result = w.snap("promote", "-n", "try")
    assert result.status == 7 and b"risk: high\n" in result.out, str(result)


@test
def a_promotion_tells_a_person_the_risk_of_what_landed(w: World):
    there = clone(w)
    put(there / "tool.sh", "#!/bin/sh\n")
    (there / "tool.sh").chmod(0o755)
    put(there / "run.sh", "#!/bin/sh\n")
    (there / "run.sh").chmod(0o755)
    put(there / ".github" / "a.yml")
    w.snap("promote", "try").fails(7, "held by rule")
    out = w.ok("promote", "try", "--path", "*.sh").out.decode()
    assert "  risk: medium (executable run.sh and 1 more)\n" in out, out
    out = w.ok("promote", "try", "--allow", ".github").out.decode()
    assert "  risk: high (" in out and "run.sh" not in out.split("risk:")[1].splitlines()[0], out
    put(there / "notes.md")
    assert "  risk: low\n" in w.ok("promote", "try").out.decode()
    assert "risk" not in w.ok("promote", "try").out.decode(), "nothing landed"
    for i in range(201):
        put(there / "many" / f"{i}.md")
    assert "  risk: high (very-large)\n" in w.ok("promote", "try").out.decode()
    put(there / "more.md")
    assert b"risk" not in w.ok("-q", "promote", "try").out
    put(there / "more2.md")
    got = w.ok("promote", "--json", "try")
    assert b"risk" not in got.out and got.json("snap.promote/1"), str(got)


@test
def the_first_rule_that_fits_decides_and_says_why_others_do_not(w: World):
    path = rules(w, DOCS + """
- name: small fixes
  when: ["tests==pass", "files<=2"]
  who: [agent]
  then: land
- name: nothing else by agents
  who: agent
  then: refuse
""")
    there = clone(w)
    put(there / "README.md", "new\n")
    got = explain(w)
    assert got["then"] == "land" and got["steps"][0]["rule"] == "documentation", got
    assert got["steps"][0]["file"] == str(path) and got["steps"][0]["line"] == 2, got

    put(there / "main.c", "int main(void) { return 0; }\n")
    got = explain(w, "--as", "agent:claude", "--tests", "pass")
    assert got["then"] == "land", got
    assert [(s["fits"], s["because"]) for s in got["steps"][:2]] == [
        (False, "'main.c' is none of its paths"), (True, None)], got
    got = explain(w, "--as", "agent:claude")
    assert got["then"] == "refuse" and got["steps"][1]["because"] == \
        "it needs tests==pass, and tests is unknown", got
    assert explain(w)["then"] == "approve"
    assert explain(w, "--as", "agents")["then"] == "approve", "a name that only begins alike"


@test
def nothing_is_a_way_around_the_facts(w: World):
    """Each of these was one: renames, modes, long lines, rules of the project, a second path, .git."""
    put(w.project / "tests" / "test_a.py", "assert True\n" * 9)
    put(w.project / ".snap" / "guard.yaml", "- {name: ours, paths: [.github/], why: fine, level: pass}\n")
    put(w.project / ".snap" / "policy.yaml", "- {name: never, paths: [vendor/], then: refuse}\n")
    rules(w, "- {name: small, when: [risk<=low, 'files<=5', 'lines<=200'], then: land}\n")
    there = clone(w)
    assert explain(w)["then"] == "land"
    (there / "docs").mkdir()
    (there / "tests" / "test_a.py").rename(there / "docs" / "a.txt")
    got = explain(w)
    assert got["facts"]["tests_deleted"] == 1 and got["then"] == "approve", got
    w.ok("rollback", "try")
    (there / "README.md").chmod(0o666)
    got = explain(w)
    assert reasons(got).get("metadata") == ("medium", "README.md") and got["facts"]["files"] == 1, got
    w.ok("rollback", "try")
    put(there / "one.txt", "x" * (2 << 20))
    assert "large" in reasons(explain(w)) and explain(w)["facts"]["bytes"] == 2 << 20
    w.ok("rollback", "try")
    put(there / ".github" / "a.yml")
    got = explain(w)
    assert got["then"] == "approve" and reasons(got)["ci"][0] == "high", got
    w.ok("rollback", "try")
    put(there / "vendor" / "a.c")
    put(there / "b.c")
    assert explain(w)["then"] == "refuse"
    w.ok("rollback", "try")
    rules(w, "- {name: docs, paths: [docs/], then: land}\n")
    put(there / "docs" / "a.md")
    put(there / ".git" / "index")
    assert explain(w)["then"] == "land", "a file of git's own, which never lands"


@test
def files_of_rules_are_files_of_those_who_may_write_them(w: World):
    clone(w)
    rules(w, "- {name: mine, then: approve, approvers: [alice]}\n")
    put(w.project / ".snap" / "policy.yaml", "- {name: theirs, then: approve, approvers: [mallory]}\n")
    assert explain(w)["approvers"] == ["alice"]
    (w.project / ".snap" / "policy.yaml").unlink()
    for make in (os.mkfifo, lambda p: p.symlink_to("/dev/stdin"), lambda p: p.mkdir()):
        make(w.project / ".snap" / "policy.yaml")
        w.snap("policy", "explain", "try").fails(2, "policy.yaml")
        path = w.project / ".snap" / "policy.yaml"
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    put(w.project / "policy.yaml", "- {name: here, then: land}\n")
    env = {k: v for k, v in w.env.items() if k not in ("HOME", "XDG_CONFIG_HOME")}
    got = w.snap("policy", "explain", "try", "--json", "--store", str(w.store), env=env)
    assert got.json("snap.policy/1")["then"] == "approve", str(got)


@test
def a_project_can_only_narrow_it(w: World):
    rules(w, "- {name: all, then: land}\n")
    put(w.project / ".snap" / "policy.yaml",
        "- {name: ours, paths: [src/], then: approve, approvers: [alice, '%ops']}\n"
        "- {name: never, paths: [vendor/], then: refuse}\n"
        "- {name: docs, paths: [docs/], then: land}\n")
    there = clone(w)
    put(there / "src" / "a.c")
    got = explain(w)
    assert got["then"] == "approve" and got["approvers"] == ["alice", "%ops"], got
    rules(w, "- {name: none, then: refuse}\n")
    w.ok("rollback", "try")
    put(there / "docs" / "a.md")
    assert explain(w)["then"] == "refuse", "a project allowed what its user does not"


@test
def rules_of_a_clone_count_for_nothing(w: World):
    rules(w, "- {name: all, then: approve}\n")
    there = clone(w)
    put(there / ".snap" / "policy.yaml", "- {name: mine, then: land}\n")
    got = explain(w)
    assert got["then"] == "approve" and got["risk"] == "high", got
    assert not [s for s in got["steps"] if s["rule"] == "mine"], got


@test
def what_is_held_or_conflicts_needs_a_person_whatever_rules_say(w: World):
    rules(w, "- {name: all, then: land}\n")
    there = clone(w)
    put(there / ".github" / "a.yml")
    assert explain(w)["then"] == "approve"
    (there / ".github" / "a.yml").unlink()
    (there / ".github").rmdir()
    assert explain(w)["then"] == "land"
    put(there / "README.md", "theirs\n")
    put(w.project / "README.md", "ours\n")
    got = explain(w)
    assert got["then"] == "approve" and got["facts"]["conflicts"] == 1, got


@test
def hours_and_numbers_are_held(w: World):
    there = clone(w)
    put(there / "a.c")
    rules(w, "- {name: seldom, at_most: 1 in 1h, then: land}\n")
    assert explain(w)["then"] == "land"
    promote(w, "try")
    put(there / "b.c")
    got = explain(w)
    assert got["then"] == "approve" and "1 promotions landed lately" in got["steps"][0]["because"], got
    now = time.time()
    for first, last, then in ((-3600, 3600, "land"), (2 * 3600, 3 * 3600, "approve"), (2 * 3600, 3600, "land")):
        span = "-".join(time.strftime("%H:%M", time.localtime(now + at)) for at in (first, last))
        rules(w, f"- {{name: then, hours: '{span}', then: land}}\n")
        assert explain(w)["then"] == then, span


@test
def rules_that_cannot_be_understood_let_nothing_land(w: World):
    clone(w)
    for text, why in (("name: x\n", "this is a list of rules"), ("- then: land\n", "the rule has no 'name'"),
                      ("- name: x\n", "has no 'then'"), ("- {name: x, then: maybe}\n", "one of land"),
                      ("- {name: x, then: land, when: [lines<]}\n", "a number is needed"),
                      ("- {name: x, then: land, when: lines}\n", "one of =="),
                      ("- {name: x, then: land, hours: 25:00-26:00}\n", "such as 22:00-06:00"),
                      ("- {name: x, then: land, at_most: often}\n", "such as 5 in 24h"),
                      ("- {name: x, then: land, paths: ['!a']}\n", "takes nothing back"),
                      ("- {name: x, then: land, who: []}\n", "empty"),
                      ("- {name: x, then: land, unless: a}\n", "a rule has name")):
        path = rules(w, text)
        result = w.snap("policy", "explain", "try")
        assert result.status == 2 and f"{path}:1:" in result.err.decode() and why in result.err.decode(), f"{text}{result}"


@test
def a_diff_shows_the_risk_and_stays_a_patch(w: World):
    c = clone(w)
    put(c / "README.md", "second\n")
    assert w.ok("diff", "--risk", "try").out.startswith(b"# risk: low\n")
    put(c / ".github" / "workflows" / "ci.yml")
    got = w.ok("diff", "--risk", "--json", "try").json("snap.diff/1", "risk", "reasons", "files")
    assert got["risk"] == "high" and [r["path"] for r in got["reasons"]] == [".github/workflows/ci.yml"], got
    text = w.ok("diff", "--risk", "try").out
    assert text.startswith(b"# risk: high\n#   high ") and b"diff --git" in text, text
    subprocess.run(["git", "apply", "--check", "-"], cwd=w.project, input=text, check=True)
    assert b"risk" not in w.ok("diff", "try").out
    w.snap("diff", "--risk", "try", ".").fails(2, "all that one clone changed")


@test
def the_score_of_an_experiment_counts_for_what_was_scored(w: World):
    rules(w, "- {name: best, then: land, when: ['experiment==won', 'score>=2']}\n")
    w.ok("experiment", "-n", "e", "--arm", "a=echo 1 > n", "--arm", "b=echo 3 > n", "--score", "cat n", "--max", "--keep", "all")
    arms = {a["arm"]: a["clone"] for a in w.ok("experiment", "show", "e", "--json").json("snap.experiment/1")["arms"]}
    got = {arm: w.ok("policy", "explain", arms[arm], "--json").json("snap.policy/1") for arm in "ab"}
    assert [got[arm]["facts"]["experiment"] for arm in "ab"] == ["lost", "won"], got
    assert got["b"]["facts"]["score"] == 3 and got["b"]["then"] == "land" and got["a"]["then"] == "approve", got
    put(w.store / "clones" / arms["b"] / "more")
    late = w.ok("policy", "explain", arms["b"], "--json").json("snap.policy/1")
    assert late["facts"]["experiment"] == "none" and late["facts"]["score"] is None and late["then"] == "approve", late


if __name__ == "__main__":
    sys.exit(main())
