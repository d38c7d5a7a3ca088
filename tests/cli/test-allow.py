"""Hosts that a person allows to the runs of a clone: which runs reach them, and who can allow none."""

import sys

from mcptest import Client
from snaptest import SNAP, World, main, needs_fuse, test

RULE = "nowhere.invalid:443"
ASK = ("import urllib.request\ntry:\n urllib.request.urlopen('https://nowhere.invalid/', timeout=20)\n"
       "except OSError as e:\n print(e)\n")


def run(w, *args):
    return w.ok("run", "--json", *args, "--", "python3", "-c", ASK).json("snap.run/1")


def allowed(w, clone="try"):
    return w.ok("allow", "--list", clone, "--json").json("snap.allow/1", "allow")["allow"]


@test
def what_is_allowed_counts_for_the_next_runs_of_that_clone_alone(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    w.ok("clone", "-n", "other")
    assert run(w, "try")["net"] == "none"
    w.ok("allow", RULE, "10.1.0.0/16:5432,b.example:80-89", "try")
    w.ok("allow", RULE, "try")
    rules = [RULE, "10.1.0.0/16:5432", "b.example:80-89"]
    assert allowed(w) == rules, "each once"
    got = run(w, "try")
    assert got["net"] == ",".join(rules), got["net"]
    assert not [r for r in got["refusals"] if r["rule"] == "not-listed"], got["refusals"]
    got = run(w, "try", "--net", "a.example:443")
    assert got["net"] == "a.example:443," + ",".join(rules), "beside the run's own"
    for said in ("none", "loopback"):
        assert run(w, "try", "--net", said)["net"] == said, "who says none gets none"
    assert run(w, "other")["net"] == "none"
    assert run(w)["net"] == "none", "nor does a throw-away clone have it"
    w.ok("clone", "-n", "child", "--from", "try")
    assert run(w, "child")["net"] == "none" and allowed(w, "child") == [], "nor a clone of it"
    assert w.ok("status", "try", "--json").json("snap.status/1")["allow"] == rules
    w.ok("stop", "--force")
    w.ok("allow", "--remove", RULE, "try")
    assert allowed(w) == rules[1:] and RULE not in run(w, "try")["net"]
    w.ok("rm", "-f", "try")
    w.ok("clone", "-n", "try")
    assert allowed(w) == [] and run(w, "try")["net"] == "none", "another clone of that name"
    w.ok("check")


@test
def what_is_allowed_voids_no_rule_for_requests_and_opens_no_profile(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    w.ok("allow", "nowhere.invalid:80", "b.example:80", "try")
    result = w.ok("run", "try", "--json", "--net", "GET http://nowhere.invalid/x", "--", "true")
    assert result.json("snap.run/1")["net"] == "GET http://nowhere.invalid/x,b.example:80", str(result)
    assert b"'nowhere.invalid:80' is allowed to clone 'try', but here only single requests" in result.err, str(result)
    result = w.ok("run", "try", "--json", "--profile", "build", "--", "true")
    assert result.json("snap.run/1")["net"] == "none", str(result)
    assert b"profile 'build' has no network: what is allowed to clone 'try'" in result.err, str(result)
    assert run(w, "try", "--profile", "default")["net"] == "nowhere.invalid:80,b.example:80", "the control"


@test
def a_profile_that_lends_secrets_says_where_they_go(w: World):
    needs_fuse()
    mine = w.home / ".config/snapcow/profiles"
    mine.mkdir(parents=True)
    (mine / "hub.yaml").write_text("net: [GET http://a.example/x, b.example:80]\n"
                                   "secret_for: ['http://a.example=TOKEN']\n")
    env = {"TOKEN": "t0ken-that-nobody-sees"}
    for more in ("a.example:80", "POST http://a.example/x", "c.example:80", "host"):
        w.snap("run", "--profile", "hub", "--net", more, "--", "true", env=env).fails(
            2, f"'{more}' allows more than profile 'hub'")
    got = w.ok("run", "--json", "--profile", "hub", "--net", "GET http://a.example/x", "--", "true", env=env)
    assert got.json("snap.run/1")["net"] == "GET http://a.example/x", str(got)
    with Client(w) as c:
        c.fails("snap_run", "allows more than profile 'hub'", command="true", profile="hub", net="a.example:80")


@test
def what_is_no_rule_is_refused_and_nothing_changes(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    for args, status, why in ((("a.example", "try"), 2, "'try' is no HOST:PORT"), (("a.example:0", "try"), 2, ""),
                              (("a:b:c", "try"), 2, ""), (("try",), 2, "needs HOST:PORT"), ((RULE,), 2, "clone"),
                              ((RULE, "none"), 4, "none"), (("--remove", RULE, "try"), 4, "not allowed there"),
                              (("--list", RULE, "try"), 2, "and nothing else")):
        w.snap("allow", *args).fails(status, why)
    assert allowed(w) == []


@test
def neither_a_run_nor_an_agent_can_allow_anything(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    w.ok("run", "try", "--ro", str(SNAP), "--env", "ASAN_OPTIONS=detect_leaks=0", "--", str(SNAP),
         "--version")  # it runs there
    inside = w.snap("run", "try", "--ro", str(SNAP), "--", str(SNAP), "--store", str(w.store), "allow", RULE, "try")
    assert inside.status != 0, inside
    assert allowed(w) == []
    w.ok("--store", str(w.store), "allow", RULE, "try")  # the same line, outside
    assert allowed(w) == [RULE]
    w.ok("allow", "--remove", RULE, "try")
    with Client(w) as c:
        names = [t["name"] for t in c.ask("tools/list")["result"]["tools"]]
        assert not [n for n in names if "allow" in n], names


if __name__ == "__main__":
    sys.exit(main())
