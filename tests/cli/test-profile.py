"""Profiles: where they are found, what they say, what is wrong with them, whom to trust."""

import json
import os
import sys

from snaptest import World, main, test


def project_profile(w, name, text):
    folder = w.project / ".snap" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)


def user_profile(w, name, text):
    folder = w.home / ".config" / "snapcow" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)


def show(w, *name, **more):
    return w.snap("--json", "profile", "show", *name, **more).json("snap.profile/1",
                                                                   "profile")["profile"]


@test
def the_built_in_ones_are_there_and_right(w: World):
    got = w.ok("--json", "profile").json("snap.profile/1", "profiles")["profiles"]
    assert [p["name"] for p in got] == ["build", "default", "node", "offline-python", "strict"]
    assert all(p["origin"] == "built-in" and p["ok"] and p["file"] is None for p in got)
    default = show(w)
    assert default["name"] == "default" and default["mem"] == 1 << 30
    assert (default["pids"], default["time_ms"], default["disk"]) == (512, 600_000, 4 << 30)
    assert default["net"] == "none" and default["caps"] == []
    node = show(w, "node")
    assert node["extends"] == "build" and node["mem"] == 4 << 30
    assert node["mounts"] == [{"host": f"{w.home}/.npm", "guest": f"{w.home}/.npm", "mode": "ro",
                               "optional": True}]
    assert "mem         1.0 GiB" in w.ok("profile", "show").out.decode()
    assert not w.store.exists(), "looking makes no store"


@test
def a_profile_says_everything_that_a_run_takes(w: World):
    user_profile(w, "all", f"""
name: all
description: everything
extends: strict
cpu: 0.5
mem: 3G
pids: 7
time: 1h30m
disk: 2G
inodes: 3000
fsize: 1M
nofile: 64
lifetime: 2h
net: a.example:443,*.b.example:80-90
net_out: 7M
mounts:
  - {{host: ~/data, guest: /data, mode: rw}}
  - host: src
hide: [secrets, /opt/x]
env: {{CI: "1", EMPTY: ""}}
pass_env: [LANG]
secret_for: [http://a.example=TOKEN]
tls_inspect: [a.example]
seccomp: /etc/filter.json
caps: []
entrypoint: [nice, -n, "10"]
""")
    got = show(w, "all")
    want = {"name": "all", "origin": "user", "extends": "strict", "cpu": 0.5, "mem": 3 << 30,
            "pids": 7, "time_ms": 5_400_000, "disk": 2 << 30, "inodes": 3000, "fsize": 1 << 20, "nofile": 64,
            "lifetime_ms": 7_200_000, "net": "a.example:443,*.b.example:80-90",
            "net_out": 7 << 20,
            "seccomp": "/etc/filter.json",
            "hide": ["@secrets", f"{w.project}/secrets", "/opt/x"],
            "env": ["CI=1", "EMPTY="], "pass_env": ["LANG"],
            "secret_for": ["http://a.example=TOKEN"], "tls_inspect": ["a.example"],
            "entrypoint": ["nice", "-n", "10"]}
    assert {k: got[k] for k in want} == want, json.dumps(got, indent=1)
    assert got["mounts"] == [
        {"host": f"{w.home}/data", "guest": "/data", "mode": "rw", "optional": False},
        {"host": f"{w.project}/src", "guest": f"{w.project}/src", "mode": "ro", "optional": False}]


@test
def what_a_profile_does_not_say_it_inherits(w: World):
    user_profile(w, "low", "mem: 100M\nenv: {A: low, B: low}\nhide: [/a]\npass_env: [X]\n")
    user_profile(w, "high", "extends: low\npids: 3\nenv: {B: high, C: high}\nhide: [/b]\n")
    got = show(w, "high")
    assert (got["mem"], got["pids"], got["time_ms"]) == (100 << 20, 3, 600_000)
    assert got["env"] == ["A=low", "B=high", "C=high"] and got["hide"] == ["/a", "/b"]
    assert got["pass_env"] == ["X"]
    # Its own name means the one that it stands in front of; and none named means the user's.
    user_profile(w, "default", "pids: 9\n")
    assert (show(w)["pids"], show(w)["mem"], show(w, "low")["pids"]) == (9, 1 << 30, 9)


@test
def the_nearest_of_a_name_counts_and_the_project_only_if_named(w: World):
    user_profile(w, "strict", "pids: 50\n")
    assert show(w, "strict")["origin"] == "user"
    project_profile(w, "strict", "pids: 40\n")
    got = show(w, "strict")
    assert (got["origin"], got["pids"]) == ("project", 40)
    project_profile(w, "default", "pids: 30\n")
    assert show(w)["origin"] == "built-in" and show(w, "default")["pids"] == 30
    w.take()
    assert show(w, "strict", cwd=w.project / "src")["pids"] == 40, "it is a project by now"
    assert show(w, "strict", env={"XDG_CONFIG_HOME": str(w.top / "none")})["pids"] == 40


@test
def what_is_wrong_is_told_with_its_place(w: World):
    for text, why in (
            ("meem: 2G\n", "1:1: unknown key 'meem', did you mean 'mem'?"),
            ("zzzzzz: 2G\n", "1:1: unknown key 'zzzzzz'"),
            ("mem: 1G\nmem: 2G\n", "2:1: "),
            ("mem: lots\n", "1:6: 'mem' is 'lots', expected a size, as 512M or 2G"),
            ("mem: -1\n", "1:6: 'mem' is '-1'"),
            ("mem: [1]\n", "1:7: 'mem': expected a size"),
            ("mem:\n", "1:1: 'mem' has no value, expected a size"),
            ("\ntime: 5 minutes\n", "2:7: 'time' is '5 minutes', expected a time"),
            ("pids: 1.5\n", "1:7: 'pids' is '1.5'"),
            ("cpu: 1.2345\n", "1:6: 'cpu' is '1.2345'"),
            ("cpu: two\n", "1:6: 'cpu' is 'two', expected a number of processors"),
            ("net: everywhere\n", "1:6: 'net': network 'everywhere' is not one of"),
            ("net: a.example\n", "1:6: 'net': "),
            ("caps: [CAP_NET_ADMIN]\n", "1:8: 'caps': a run never has a capability"),
            ("caps: all\n", "1:7: 'caps' is 'all', expected an empty list"),
            ("name: other\n", "1:7: 'name' is 'other'"),
            ("mounts: /x\n", "1:9: 'mounts'"),
            ("mounts: [/x]\n", "1:10: 'mounts' is '/x', expected a list of {host, guest, mode}"),
            ("mounts: [{guest: /x}]\n", "1:11: 'mounts': there is no 'host'"),
            ("mounts: [{host: /x, mode: rx}]\n", "1:27: 'mode' is 'rx', expected ro or rw"),
            ("mounts: [{host: /x, mod: ro}]\n", "1:21: unknown key 'mod', did you mean 'mode'?"),
            ("mounts: [{host: /x/../etc}]\n", "1:17: 'host': '/x/../etc' has a '..' in it"),
            ("mounts: [{host: /x, optional: yes}]\n", "1:31: 'optional' is 'yes'"),
            ("env: [A]\n", "1:7: 'env'"),
            ("env: {1A: x}\n", "1:7: 'env': '1A' is not the name of a variable"),
            ("env: {A: [x]}\n", "1:7: 'env': the value of 'A' is no text"),
            ("pass_env: ['A=B']\n", "1:13: 'pass_env' is 'A=B', expected the name"),
            ("entrypoint: sh\n", "1:13: 'entrypoint' is 'sh', expected a list of words"),
            ("extends: nobody\n", "1:1: 'extends': there is no profile 'nobody'"),
            ("- a\n", "1:3: expected keys and values"),
            ("mem: *a\n", "1:"),
            ("a: [\n", "x.yaml:"),
    ):
        user_profile(w, "x", text)
        w.snap("profile", "show", "x").fails(2, "profiles/x.yaml:", why)
    user_profile(w, "x", "extends: y\n")
    user_profile(w, "y", "extends: x\n")
    w.snap("profile", "show", "x").fails(2, "circle")


@test
def a_profile_of_the_project_may_only_narrow(w: World):
    user_profile(w, "wide", "mem: 8G\nnet: a.example:443,*.b.example:80-90\npass_env: [LANG]\n"
                            "lifetime: 0s\n")
    project_profile(w, "ok", """
extends: wide
mem: 2G
net: x.b.example:85
pass_env: [LANG]
lifetime: 3h
mounts: [{host: src, guest: /src}]
hide: [secrets]
env: {A: b}
entrypoint: [env]
""")
    got = show(w, "ok")
    assert (got["mem"], got["net"], got["origin"]) == (2 << 30, "x.b.example:85", "project")
    for text in ("mem: 9G", "mem: 0", "pids: 513", "time: 11m", "disk: 5G", "net: host",
                 "net: evil.example:443", "net: a.example:80", "net: '*.a.example:443'",
                 "pass_env: [AWS_SECRET_ACCESS_KEY]", "seccomp: /tmp/all.json",
                 "mounts: [{host: /etc}]", "mounts: [{host: ~/.ssh}]",
                 f"mounts: [{{host: {w.project}-other}}]", f"mounts: [{{host: {w.top}}}]"):
        project_profile(w, "more", f"extends: wide\n{text}\n")
        w.snap("profile", "show", "more").fails(
            7, ".snap/profiles/more.yaml:2:1: ", "may only narrow", "'wide'")
        w.snap("--json", "profile", "show", "more").fails_json(7, "E_REFUSED")
        # The control: said by the user it is taken.
        user_profile(w, "mine", f"extends: wide\n{text}\n")
        show(w, "mine")
    project_profile(w, "more", "extends: strict\nseccomp: default\n")
    w.snap("profile", "show", "more").fails(7, "more.yaml:2:1: 'seccomp'", "may only narrow")
    project_profile(w, "less", "extends: wide\nseccomp: strict\n")
    assert show(w, "less")["seccomp"] == "strict"


@test
def a_profile_of_the_project_extends_none_of_the_project(w: World):
    project_profile(w, "low", "pids: 5\n")
    project_profile(w, "high", "extends: low\n")
    w.snap("profile", "show", "high").fails(2, "there is no profile 'low' of yours or built in")
    project_profile(w, "build", "mem: 2G\n")
    w.snap("profile", "show", "build").fails(7, "'default'")
    project_profile(w, "build", "extends: build\nmem: 2G\n")
    assert show(w, "build")["time_ms"] == 3_600_000


@test
def no_profile_mounts_the_project_for_writing(w: World):
    for host in (str(w.project), f"{w.project}/src", str(w.top), "/", "."):
        user_profile(w, "x", f"mounts: [{{host: {host}, mode: rw}}]\n")
        w.snap("profile", "show", "x").fails(7, "x.yaml:1:1: ", "a run never writes the project")
    user_profile(w, "x", "mounts: [{host: /srv, mode: rw}]\n")
    assert show(w, "x")["mounts"][0]["mode"] == "rw"


@test
def files_of_the_project_are_not_followed_anywhere(w: World):
    secret = w.top / "secret.yaml"
    secret.write_text("pids: 1\n")
    folder = w.project / ".snap" / "profiles"
    folder.mkdir(parents=True)
    (folder / "link.yaml").symlink_to(secret)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "dir.yaml").mkdir()
    w.snap("profile", "show", "link").fails(1, ".snap/profiles/link.yaml")
    for name in ("pipe", "dir"):
        w.snap("profile", "show", name).fails(2, f"'.snap/profiles/{name}.yaml' is no regular file")
    (w.project / "other").symlink_to(w.project / ".snap")
    (w.project / ".snap").rename(w.project / "moved")
    (w.project / ".snap").symlink_to(w.project / "moved")
    (w.project / "moved" / "profiles" / "fine.yaml").write_text("pids: 1\n")
    w.snap("profile", "show", "fine").fails(4, "there is no profile 'fine'")


@test
def check_reads_all_and_tells_of_each(w: World):
    w.ok("profile", "check")
    user_profile(w, "bad", "meem: 1\n")
    user_profile(w, "good", "mem: 1M\n")
    (w.home / ".config/snapcow/profiles/-odd.yaml").write_text("x")
    (w.home / ".config/snapcow/profiles/notes.txt").write_text("x")
    got = w.snap("--json", "profile", "check").json("snap.profile/1", "profiles", status=8)
    wrong = [p for p in got["profiles"] if not p["ok"]]
    assert len(got["profiles"]) == 7 and [p["name"] for p in wrong] == ["bad"]
    assert "did you mean 'mem'?" in wrong[0]["problem"] and wrong[0]["origin"] == "user"
    w.snap("profile", "check", "bad").ends(8)
    project_profile(w, "evil", '"\\e[31m": 1\n')
    for word in ("list", "check", "show"):
        got = w.snap("profile", word, *(["evil"] if word != "list" else []))
        assert b"\x1b" not in got.out + got.err and b"\\x1b" in got.out + got.err, got
    w.ok("profile", "check", "good")
    w.ok("profile", "list")


@test
def a_wrong_word_is_usage_and_a_missing_name_is_not_found(w: World):
    w.snap("profile", "shwo").fails(2, "list, show and check")
    w.snap("profile", "list", "x").fails(2, "takes no name")
    w.snap("profile", "show", "nobody").fails(4, "there is no profile 'nobody'",
                                              "hint: snapcow profile list")
    w.snap("profile", "check", "nobody").fails(4)
    for bad in ("../x", ".x", "-x", "a/b", "x" * 65, ""):
        w.snap("profile", "show", "--", bad).fails(2, "cannot be the name of a profile")


@test
def outside_of_a_project_there_are_the_others(w: World):
    assert show(w, "build", cwd=w.home)["origin"] == "built-in"
    user_profile(w, "x", "hide: [a]\n")
    w.snap("profile", "show", "x", cwd=w.home).fails(2, "1:8: 'hide': 'a' is a path in a project")


if __name__ == "__main__":
    sys.exit(main())
