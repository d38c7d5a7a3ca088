"""run --profile NAME: everything that a profile says holds for the run, and options come on top."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import is_clean, kill_daemon, live_test  # noqa: E402
from runtest import clone, clones, line_of, run, sh, start  # noqa: E402
from snaptest import Skip, leak_checks  # noqa: E402

GIB = 1 << 30
# What profiles ask for by name cannot be had everywhere; what is missing is then said.
MISSING = ("--allow-missing", "memory", "--allow-missing", "cpu")


def user_profile(w, name, text):
    folder = w.home / ".config" / "snapcow" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)


def project_profile(w, name, text):
    folder = w.project / ".snap" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)


def limits(w, *args):
    return run(w, *MISSING, *args, "--", "true")["limits"]


# --- the built-in ones ------------------------------------------------------------------------

@live_test
def every_built_in_profile_runs_a_command(w):
    for name in ("default", "strict", "build", "offline-python", "node"):
        got = run(w, "--profile", name, *MISSING, "--", "true")
        assert got["profile"] == name and got["net"] == "none", got
    assert run(w, "--", "true")["profile"] == "default"


@live_test
def without_a_profile_the_limits_are_those_of_the_contract(w):
    assert limits(w) == {"mem": GIB, "cpus": None, "pids": 512, "time_ms": 600_000,
                         "disk": 4 * GIB, "inodes": 1_000_000, "fsize": None, "nofile": 4096,
                         "output": GIB, "net_out": None}, limits(w)


@live_test
def strict_leaves_little_of_everything(w):
    got = sh(w, "ulimit -n; head -c 300000000 /dev/zero > big; stat -c %s big", *MISSING,
             "--profile", "strict")
    assert got["stdout"].split() == ["256", str(256 << 20)], got
    want = {"mem": GIB // 2, "cpus": 1.0, "pids": 128, "time_ms": 120_000, "disk": GIB,
            "fsize": 256 << 20, "nofile": 256}
    assert {k: got["limits"][k] for k in want} == want, got["limits"]
    if "pids" in got["isolation"]["walls"] and os.geteuid() == 0:
        got = sh(w, "for i in $(seq 200); do sleep 20 & done; wait", *MISSING, "--profile",
                 "strict", status=None)
        assert "ork" in got["stderr"] and got["limit"] == "pids", got


@live_test
def strict_refuses_more_calls_and_hides_secrets(w):
    act = ("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
           "print(libc.ptrace(0, 0, 0, 0), libc.personality(0x0040000), libc.memfd_create(b'x', 0))\n"
           "for name in ('.env', 'id_rsa', '.ssh/key', 'linked/.env', 'apps/web/.env.production.local', 'tls/a.pem',\n"
           "             'README.md', 'tls/ca.pem', 'apps/web/.env.example'):\n"
           "    try: print(name, len(open(name).read()))\n"
           "    except OSError as e: print(name, -e.errno)\n")
    (w.project / ".env").write_text("TOKEN=secret")
    (w.project / "id_rsa").symlink_to(".env")
    (w.project / ".ssh").mkdir()
    (w.project / ".ssh" / "key").write_text("secret")
    (w.project / "linked").symlink_to(".")
    (w.project / "apps" / "web").mkdir(parents=True)
    (w.project / "tls").mkdir()
    (w.project / "apps/web/.env.production.local").write_text("TOKEN=secret")
    (w.project / "apps/web/.env.example").write_text("TOKEN=")
    (w.project / "tls/a.pem").write_text("-----BEGIN EC PRIVATE KEY-----\nMHcC\n")
    (w.project / "tls/ca.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIC\n")
    python = ("--", "/usr/bin/python3", "-I", "-c", act)
    usual = run(w, *python)["stdout"].splitlines()  # the control
    assert "-1" not in usual[0].split() and usual[1] == ".env 12" and usual[2] == "id_rsa 12", usual
    got = run(w, "--profile", "strict", *MISSING, *python)
    lines = got["stdout"].splitlines()
    assert lines[0] == "-1 -1 -1", got
    assert all(line.split()[1].startswith("-") for line in lines[1:7]), lines
    assert lines[7:] == ["README.md 6", "tls/ca.pem 33", "apps/web/.env.example 6"], lines
    assert {r["what"] for r in got["refusals"]} >= {"ptrace", "memfd_create"}, got["refusals"]
    # Of a directory with many there is nothing, and no run has as many mounts as it takes to hide all of these.
    for i in range(200):
        (w.project / "certs" / f"{i}.key").parent.mkdir(exist_ok=True)
        (w.project / "certs" / f"{i}.key").write_text("secret")
    got = sh(w, "cat certs/*; ls certs; cat README.md", "--profile", "strict", *MISSING)
    assert got["stdout"] == "first\n", got
    for i in range(160):
        (w.project / f"{i}.key").write_text("secret")
    w.snap("run", "--profile", "strict", *MISSING, "--", "true").fails(125, "look like secrets", "'hide'")
    for i in range(160):
        (w.project / f"{i}.key").unlink()
    # Nor under another name of the directory.
    got = sh(w, "mv apps other; mv tls keys; cat other/web/.env.production.local keys/a.pem; rm -rf other keys; true",
             "--profile", "strict", *MISSING)
    assert "secret" not in got["stdout"] and "EC PRIVATE" not in got["stdout"], got


RENAMES = """
import os, itertools
print('ready', flush=True)
at = 'conf'
for i in itertools.count():
    to = f'd{i % 1000}' if i % 3 else f'deep/d{i % 1000}'
    try: os.rename(at, to)
    except OSError: continue
    at = to
"""
SEARCHES = """
import os, time
end = time.monotonic() + 0.3
while time.monotonic() < end:
    for top in ('.', 'deep', 'node_modules'):
        for name in os.listdir(top):
            for path in (f'{top}/{name}/.env', f'{top}/{name}/other'):
                try: print(open(path).read())
                except OSError: pass
"""


@live_test
def a_run_that_renames_meanwhile_shows_no_secret(w):
    python = ("/usr/bin/python3", "-I", "-c")
    for folder in "conf", "deep", "node_modules":
        (w.project / folder).mkdir()
    (w.project / "conf" / ".env").write_text("TOKEN=secret")
    os.link(w.project / "conf" / ".env", w.project / "conf" / "other")
    w.ok("clone", "-n", "c")
    assert "secret" in run(w, "c", "--", *python, SEARCHES)["stdout"], "the control"
    attacker = start(w, "c", "--profile", "strict", *MISSING, "--time", "10m", "--", *python, RENAMES)
    try:
        assert line_of(attacker) == b"ready\n"
        for _ in range(12):
            got = run(w, "c", "--profile", "strict", *MISSING, "--", *python, SEARCHES)
            assert "secret" not in got["stdout"], got
        assert attacker.poll() is None
    finally:
        attacker.terminate()
        attacker.communicate(timeout=60)
    # Nor what a run hid in the directory of a package before, under its own name or another.
    sh(w, "mv d* deep/d* node_modules/x 2>/dev/null; mkdir node_modules/y; mv node_modules/x/.env node_modules/y/other",
       "c", status=None)
    assert "secret" in run(w, "c", "--", *python, SEARCHES)["stdout"], "the control"
    got = run(w, "c", "--profile", "strict", *MISSING, "--", *python, SEARCHES)
    assert "secret" not in got["stdout"], got


@live_test
def strict_hides_secrets_under_their_other_names_and_at_other_places(w):
    for folder in ".ssh", "conf", "apps", "node_modules":
        (w.project / folder).mkdir()
    (w.project / ".ssh" / "work").write_text("secret1\n")
    (w.project / "conf" / "dev").write_text("secret2\n")
    (w.project / "apps" / ".env").write_text("secret3\n")
    (w.project / "apps" / "README").write_text("plain\n")
    os.link(w.project / ".ssh" / "work", w.project / "node_modules" / "linked")
    (w.project / ".env").symlink_to("conf/dev")
    for i in range(9):
        (w.project / "certs" / "in").mkdir(parents=True, exist_ok=True)
        (w.project / "certs" / f"{i}.key").write_text("secret4\n")
    (w.project / "certs" / "in" / "a.key").write_text("secret4\n")
    mounts = ("mounts: [{host: apps, guest: /srv/apps}, {host: .ssh, guest: /srv/ssh}, "
              "{host: certs, guest: /srv/certs}, {host: certs/in, guest: /srv/in}]\n")
    user_profile(w, "shown", f"extends: strict\n{mounts}")
    user_profile(w, "control", mounts)
    w.ok("clone", "-n", "c")
    look = "cat .ssh/* conf/dev .env node_modules/linked apps/.env /srv/apps/.env moved /srv/ssh/* /srv/certs/* " \
        "/srv/in/* /srv/apps/README"
    got = sh(w, look, "c", "--profile", "control", status=1)
    assert [got["stdout"].count(f"secret{i}") for i in (1, 2, 3, 4)] == [3, 2, 2, 10], got
    got = sh(w, look, "c", "--profile", "shown", *MISSING, status=1)
    assert got["stdout"] == "plain\n", got
    # Nor what a run took out of a hidden directory, or after it removed the symlink that told.
    sh(w, "mv .ssh/work moved; rm .env node_modules/linked", "c")
    assert "secret1" in sh(w, look, "c", "--profile", "control", status=1)["stdout"], "the control"
    got = sh(w, look, "c", "--profile", "shown", *MISSING, status=1)
    assert got["stdout"] == "plain\n", got


@live_test
def no_path_beside_its_own_shows_the_project(w):
    """A symlink on the host leads to it, or to what holds it."""
    for name in ".env", "sub/.env", "plain":
        (w.project / name).parent.mkdir(exist_ok=True)
        (w.project / name).write_text("secret\n" if ".env" in name else "the clone's\n")
    w.ok("clone", "-n", "c")
    (w.project / "plain").write_text("the project's\n")
    (w.top / "to").symlink_to(w.project)
    (w.top / "around").symlink_to(w.project.parent)
    inside = w.top / "around" / w.project.name
    look = f"cat {w.top}/to/plain {w.top}/to/.env {w.top}/to/sub/.env {inside}/plain {inside}/.env"
    grant = ("c", "--ro", w.top / "to", "--ro", w.top / "around")
    assert sh(w, look, *map(str, grant), status=1)["stdout"] == "the clone's\nsecret\nsecret\n", "the control"
    got = sh(w, look, *map(str, grant), "--profile", "strict", *MISSING, status=1)
    assert got["stdout"] == "the clone's\n", got
    sub = str(w.top / "to" / "sub")
    assert sh(w, f"cat {sub}/.env", "c", "--ro", sub)["stdout"] == "secret\n", "the control"
    got = sh(w, f"cat {sub}/.env", "c", "--ro", sub, "--profile", "strict", *MISSING, status=1)
    assert got["stdout"] == "", got


def kept(w):
    """The clones, and the snapshots of clones that are gone, of which the store keeps what was hidden in them."""
    w.ok("stop")
    with contextlib.closing(sqlite3.connect(w.store / "meta.db", timeout=30)) as db:
        names = sorted(bytes(name).decode() for name, in db.execute("SELECT name FROM ref WHERE kind = 11"))
    return [n for n in names if n[0] == "@"], [n for n in names if n[0] != "@"]


@live_test
def what_a_strict_run_moved_among_packages_stays_hidden(w):
    """Also what the clone did not begin with, and a symlink that is gone told."""
    strict = ("--profile", "strict", *MISSING)
    look = "cat vendor/conf/.env vendor/conf/dev vendor/conf/plain 2>/dev/null"
    (w.project / "vendor").mkdir()
    (w.project / "id_rsa").write_text("secret\n")
    w.ok("clone", "-n", "c")
    w.ok("clone", "-n", "e")
    sh(w, "mkdir conf; echo secret > conf/.env; cp conf/.env conf/dev; echo plain > conf/plain; ln -s conf/dev .npmrc", "c")
    got = sh(w, "mv conf vendor/conf; rm .npmrc; " + look, "c", *strict, status=1)
    assert got["stdout"] == "plain\n", got
    control = sh(w, look, "c")
    assert control["stdout"] == "secret\nsecret\nplain\n", control

    def hides(name):
        got = sh(w, look, name, *strict, status=1)
        assert got["stdout"] == "plain\n", got

    hides("c")
    # Another clone can get the same files.
    w.ok("rollback", "e", control["before"])
    hides("e")
    w.ok("rm", "e")
    # Nor does a check see it of what would become the project's.
    user_profile(w, "hides", "hide: ['@secrets']\n")
    w.ok("promote", "c", "--profile", "hides", "--check", "cd vendor/conf && cat plain && ! cat .env && ! cat dev")
    hides("c")
    kill_daemon(w)
    hides("c")
    w.ok("stop")
    hides("c")
    gone = sh(w, "rm -r vendor/conf", "c")
    w.ok("run", "c", *strict, "--", "true")
    w.ok("rollback", "c", gone["before"])
    hides("c")
    # A clone of that clone has the same files, also when that is gone.
    w.ok("clone", "--from", "c", "-n", "d")
    w.ok("rm", "c")
    assert sh(w, look, "d")["stdout"] == "secret\nsecret\nplain\n", "the control"
    hides("d")
    run(w, *strict, "--", "true")
    [start], now = kept(w)
    assert now == ["d"], "it goes with its clone"
    # The snapshot that clone began as is there, and so is its list.
    w.ok("rm", "d")
    assert kept(w) == ([start], [])
    w.ok("clone", "--from", start[1:], "-n", "f")
    hides("f")
    w.ok("rm", "f")
    w.ok("rm", start[1:])
    assert kept(w) == ([], []), "it goes with its snapshot"
    is_clean(w)


@live_test
def build_has_room_for_a_compiler(w):
    if not shutil.which("make") or not Path("/usr/bin/cc").exists():
        raise Skip("make or cc is not installed")
    (w.project / "src" / "main.c").write_text("int main(void)\n{\n\treturn 0;\n}\n")
    (w.project / "Makefile").write_text("test: src/main.c\n\tcc -o prog $<\n\t./prog && echo ok\n")
    got = run(w, "--profile", "build", *MISSING, "--", "make", "-s", "test")
    assert got["stdout"] == "ok\n" and got["limits"]["mem"] == 4 * GIB, got
    assert (got["limits"]["pids"], got["limits"]["disk"]) == (2048, 16 * GIB), got["limits"]


@live_test
def offline_python_tests_and_sees_what_pip_has_cached(w):
    if subprocess.run(["/usr/bin/python3", "-c", "import venv, ensurepip"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("python3-venv is not installed")
    cache = w.home / ".cache" / "pip"
    cache.mkdir(parents=True)
    (cache / "wheel").write_text("cached")
    (w.project / "test_it.py").write_text("import unittest\n\n\nclass T(unittest.TestCase):\n"
                                          "    def test_it(self):\n        pass\n")
    got = sh(w, "cat ~/.cache/pip/wheel; echo x > ~/.cache/pip/new; echo $PIP_NO_INDEX; "
                "/usr/bin/python3 -m venv v && v/bin/python -m unittest && "
                "v/bin/pip install nothing-such", "--profile", "offline-python", status=1)
    assert got["stdout"].startswith("cached1\n") and "Read-only" in got["stderr"], got
    assert "Ran 1 test" in got["stderr"] and "No matching distribution" in got["stderr"], got
    assert not (cache / "new").exists()


@live_test
def node_tests_with_what_npm_has_cached(w):
    if not Path("/usr/bin/node").exists():
        raise Skip("node is not installed")
    (w.home / ".npm").mkdir()
    (w.home / ".npm" / "kept").write_text("cached")
    (w.project / "it.test.js").write_text(
        "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "test('it', () => assert.strictEqual(process.env.npm_config_offline, 'true'));\n")
    got = sh(w, "cat ~/.npm/kept && /usr/bin/node --test", "--profile", "node", *MISSING)
    assert got["stdout"].startswith("cached") and "pass 1" in got["stdout"], got


# --- what one says ----------------------------------------------------------------------------

@live_test
def limits_are_the_profile_s_unless_an_option_says_otherwise(w):
    user_profile(w, "mine", "cpu: 0.5\nmem: 600M\npids: 99\ntime: 5m\ndisk: 8M\nfsize: 3M\n"
                            "nofile: 77\ninodes: 900\nnet_out: 9K\n")
    got = limits(w, "--profile", "mine")
    assert got == {"mem": 600 << 20, "cpus": 0.5, "pids": 99, "time_ms": 300_000,
                   "disk": 8 << 20, "inodes": 900, "fsize": 3 << 20, "nofile": 77,
                   "output": GIB, "net_out": 9 << 10}, got
    got = limits(w, "--profile", "mine", "--mem", "0", "--cpus", "0", "--pids", "98", "--time",
                 "1h", "--disk", "1G", "--inodes", "7", "--fsize", "0", "--nofile", "0", "--output", "5M",
                 "--net-out", "6M")
    assert got == {"mem": None, "cpus": None, "pids": 98, "time_ms": 3_600_000, "disk": GIB,
                   "inodes": 7, "fsize": None, "nofile": None, "output": 5 << 20,
                   "net_out": 6 << 20}, got
    # And they hold.
    got = sh(w, "ulimit -n; head -c 4000000 /dev/zero > a", *MISSING, "--profile", "mine",
             status=None)
    assert got["stdout"] == "77\n" and got["exit_code"] != 0, got
    got = sh(w, "for i in 1 2 3 4; do head -c 3000000 /dev/urandom > f$i; done", *MISSING,
             "--profile", "mine", status=None)
    assert got["limit"] == "disk", got


@live_test
def mounts_show_what_they_name_and_no_more(w):
    data = w.top / "data"
    data.mkdir()
    (data / "f").write_text("data")
    user_profile(w, "m", f"""
mounts:
  - {{host: {data}, guest: /data, mode: rw}}
  - {{host: {data}, guest: /srv/read}}
  - {{host: src, guest: /srv/sources}}
  - {{host: ~/nowhere, optional: true}}
""")
    got = sh(w, "cat /data/f /srv/read/f; echo new > /data/new; echo x > /srv/read/x; "
                "head -1 /srv/sources/main.c; ls ~", "--profile", "m")
    assert got["stdout"] == "datadataint main(void)\n", got
    assert got["stderr"].count("Read-only") == 1 and (data / "new").read_text() == "new\n", got
    # What lies in the project is the clone's.
    path = clone(w)
    (path / "src" / "main.c").write_text("of the clone\n")
    assert sh(w, "cat /srv/sources/main.c", "try", "--profile", "m")["stdout"] == "of the clone\n"
    user_profile(w, "gone", "mounts: [{host: /no/such}]\n")
    w.snap("run", "--profile", "gone", "--", "true").fails(125, "profile 'gone'", "/no/such")
    assert clones(w) == ["try"], "what is refused leaves nothing"


@live_test
def no_profile_and_no_option_writes_the_project_or_sees_the_store(w):
    w.take()
    back = w.top / "back"
    back.symlink_to(w.project / "src")
    for host, words in ((str(back), "no run writes"), (str(w.store), "is in the store"),
                        (str(w.top), " writes")):
        user_profile(w, "bad", f"mounts: [{{host: {host}, guest: /mnt/x, mode: rw}}]\n")
        w.snap("run", "--profile", "bad", "--", "true").fails(125, words)
        result = w.snap("run", "--rw", host, "--", "true").fails(125, words)
        assert b"hint" not in result.err, "there is nothing that would help"
    user_profile(w, "bad", "mounts: [{host: src, mode: rw}]\n")
    w.snap("run", "--profile", "bad", "--", "true").fails(125, "never writes the project")
    assert clones(w) == []


@live_test
def the_environment_is_the_profile_s_and_the_options_come_last(w):
    user_profile(w, "e", 'env: {A: "1", B: "2", TZ: CET}\npass_env: [GIVEN, UNSET, C]\n')
    env = {"GIVEN": "given", "C": "c", "TZ": "UTC", "OTHER": "other"}
    text = run(w, "--profile", "e", "--env", "B=mine", "--", "env", env=env)["stdout"]
    got = dict(line.split("=", 1) for line in text.splitlines())
    assert (got["A"], got["B"], got["GIVEN"], got["C"]) == ("1", "mine", "given", "c"), got
    assert got["TZ"] == "CET" and not {"UNSET", "OTHER"} & set(got), got


@live_test
def what_it_hides_is_hidden(w):
    (w.project / "secrets").mkdir()
    (w.project / "secrets" / "key").write_text("key")
    user_profile(w, "h", "hide: [secrets]\n")
    got = sh(w, "ls src; ls secrets; cat secrets/key", "--profile", "h", "--hide", "src",
             status=None)
    assert got["stdout"] == "" and got["exit_code"] != 0, got
    assert "key" in sh(w, "cat secrets/key")["stdout"]  # the control


@live_test
def its_entrypoint_comes_first(w):
    user_profile(w, "n", 'entrypoint: [nice, -n, "7"]\n')
    own = os.nice(0)  # who tests may be nice already
    got = run(w, "--profile", "n", "--", "nice")
    assert got["stdout"] == f"{own + 7}\n" and got["command"] == ["nice", "-n", "7", "nice"], got
    user_profile(w, "none", "extends: n\nentrypoint: []\n")
    assert run(w, "--profile", "none", "--", "nice")["stdout"] == f"{own}\n"


@live_test
def its_lifetime_is_that_of_a_clone_that_is_kept(w):
    user_profile(w, "l", "lifetime: 2h\n")
    run(w, "--profile", "l", "--", "true")
    assert clones(w) == []
    for args, expires in (((), True), (("--ttl", "0"), False)):
        got = run(w, "--profile", "l", "--keep", *args, "--", "true")
        listed = w.ok("list", "--json").json("snap.list/1")["clones"][0]
        assert (listed["expires"] is not None) == expires, listed
        w.ok("rm", got["clone"])


@live_test
def its_network_is_joined_and_an_option_replaces_it(w):
    user_profile(w, "net", "net: ok.example:443\n")
    got = sh(w, "echo $https_proxy; cat /etc/resolv.conf", "--profile", "net")
    assert got["net"] == "ok.example:443" and "3128" in got["stdout"], got
    assert "nameserver 127.0.0.1\n" in got["stdout"], got
    got = sh(w, "echo $https_proxy", "--profile", "net", "--net", "none")
    assert got["net"] == "none" and got["stdout"] == "\n", got


@live_test
def its_filter_takes_the_place_of_ours(w):
    path = w.home / "filter.json"
    path.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}]}))
    user_profile(w, "f", "seccomp: ~/filter.json\n")
    got = sh(w, "mkdir made", "--profile", "f", status=1)
    assert "Permission denied" in got["stderr"] and "seccomp" in got["isolation"]["walls"], got
    sh(w, "mkdir made")  # the control
    path.write_text("{")
    w.snap("run", "--profile", "f", "--", "true").fails(2, "profile 'f'", "filter.json")
    path.unlink()
    w.snap("run", "--profile", "f", "--", "true").fails(125, "profile 'f'", "filter.json")
    assert clones(w) == []


# --- whose it is ------------------------------------------------------------------------------

@live_test
def the_user_s_default_is_for_every_run_and_the_project_s_for_none(w):
    project_profile(w, "default", "pids: 66\nmem: 500M\n")
    assert limits(w)["pids"] == 512
    assert limits(w, "--profile", "default")["pids"] == 66
    user_profile(w, "default", "pids: 77\nenv: {MINE: '1'}\n")
    assert limits(w)["pids"] == 77
    assert sh(w, "echo $MINE")["stdout"] == "1\n"


@live_test
def a_profile_of_the_project_narrows_or_is_refused(w):
    project_profile(w, "less", "pids: 55\nenv: {X: y}\nmounts: [{host: src, guest: /mnt/src}]\n")
    got = sh(w, "echo $X; ls /mnt/src", "--profile", "less")
    assert got["limits"]["pids"] == 55 and got["stdout"] == "y\nmain.c\n", got
    for text in ("mem: 64G", "net: host", "net: a.example:443", "pass_env: [HOME2]",
                 "seccomp: x.json", "mounts: [{host: /etc}]", "pids: 0",
                 "mounts: [{host: src, mode: rw}]"):
        project_profile(w, "more", text + "\n")
        w.snap("run", "--profile", "more", "--", "true").fails(125, ".snap/profiles/more.yaml:1:")
    assert clones(w) == []


@live_test
def what_cannot_be_read_is_told_with_its_place(w):
    user_profile(w, "wrong", "mem: 1G\nmeem: 2G\n")
    w.snap("run", "--profile", "wrong", "--", "true").fails(2, "wrong.yaml:2:1", "did you mean")
    w.snap("run", "--profile", "nope", "--", "true").fails(125, "'nope'", "profile list")
    w.snap("run", "--profile", "../x", "--", "true").fails(2, "name of a profile")
    user_profile(w, "default", "mem: much\n")
    w.snap("run", "--", "true").fails(2, "default.yaml:1:6")
    assert not w.store.exists(), "nothing of this makes a store"


@live_test
def a_run_with_a_profile_leaks_nothing(w):
    good, bad = leak_checks(2, 1)
    (w.home / "filter.json").write_text('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}')
    user_profile(w, "all", "extends: build\nenv: {A: '1'}\npass_env: [B]\nhide: [x]\n"
                           "entrypoint: [env]\nmounts: [{host: src, guest: /mnt/x}]\n"
                           "seccomp: ~/filter.json\nnet: ok.example:443\n")
    w.ok("run", "--profile", "all", *MISSING, "--", "true", env=good)
    user_profile(w, "all", "mounts: [{host: /no/such}]\n")
    w.snap("run", "--profile", "all", "--", "true", env=bad).fails(125)


@live_test
def a_limit_that_a_profile_names_is_held_or_nothing_runs(w):
    user_profile(w, "named", "mem: 700M\n")
    if "memory" in run(w, "--", "true")["isolation"]["walls"]:
        got = run(w, "--profile", "named", "--", "true")
        assert "memory" in got["isolation"]["walls"], got
        return
    error = w.snap("run", "--json", "--profile", "named", "--", "true").fails_json(
        125, "E_SANDBOX")
    assert "memory" in error["message"], error
    run(w, "--profile", "named", *MISSING, "--", "true")
    run(w, "--profile", "offline-python", "--", "true")  # which names none
    assert clones(w) == []


if __name__ == "__main__":
    sys.exit(livetest.main())
