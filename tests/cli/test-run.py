"""run, runs, logs, ps: commands in a sandbox on a clone, at the project's own path."""

import contextlib
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import termios
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from runtest import MIB, clone, clones, hint_words, line_of, run, sh, start, without_warning  # noqa: E402
from snaptest import SNAP, Skip, gone  # noqa: E402


# --- what it sees -----------------------------------------------------------------------------

@live_test
def the_clone_is_at_the_projects_own_path_and_the_project_is_untouched(w):
    got = sh(w, "pwd; cat README.md; echo changed > README.md; rm -r src; echo new > new")
    assert got["stdout"] == f"{w.project}\nfirst\n", got
    assert got["changed"]["paths"] == [{"path": "README.md", "status": "M"},
                                       {"path": "new", "status": "A"},
                                       {"path": "src/main.c", "status": "D"}], got["changed"]
    assert (w.project / "README.md").read_text() == "first\n"
    assert (w.project / "src" / "main.c").exists() and not (w.project / "new").exists()
    assert clones(w) == [], "a clone that was made for a run goes with it"


@live_test
def files_of_the_clone_belong_to_who_owns_the_project(w):
    got = sh(w, "stat -c '%u %g' README.md; id -u; echo x > new && stat -c %u new && chmod 600 new")
    uid, gid = os.getuid(), os.getgid()
    assert got["stdout"] == f"{uid} {gid}\n{uid}\n{uid}\n", got
    path = clone(w)
    sh(w, "mkdir d && echo x > d/f", "try")
    assert (path / "d" / "f").stat().st_uid == uid, "and to the same on the clone outside"


@live_test
def it_starts_where_the_command_was_given(w):
    assert run(w, "--", "pwd", cwd=w.project / "src")["stdout"] == f"{w.project}/src\n"
    path = clone(w)
    (path / "only-here").mkdir()
    assert run(w, "try", "--", "pwd", cwd=path / "only-here")["stdout"] \
        == f"{w.project}/only-here\n"
    assert run(w, "try", "--", "pwd", cwd=w.top)["stdout"] == f"{w.project}\n"
    assert run(w, "-w", "src", "--", "pwd")["stdout"] == f"{w.project}/src\n"
    assert run(w, "--workdir", "/tmp", "--", "pwd")["stdout"] == "/tmp\n"
    error = w.snap("run", "--json", "-w", "nope", "--", "pwd").fails_json(125, "E_SANDBOX")
    assert "nope" in error["message"], error


@live_test
def home_and_tmp_are_its_own_and_empty(w):
    (w.home / "secret").write_text("secret")
    (w.top / "beside").write_text("beside")
    got = sh(w, 'ls -A "$HOME"; ls -A /var/tmp; echo x > "$HOME/f"; echo x > /tmp/f; '
                f"echo $HOME; ls {w.top}")
    assert got["stdout"].splitlines()[0] == str(w.home), got
    assert "secret" not in got["stdout"] and "beside" not in got["stdout"], got
    assert not (w.home / "f").exists() and not Path("/tmp/f").exists()


@live_test
def the_store_and_other_clones_are_out_of_sight(w):
    clone(w, "neighbour")
    got = sh(w, f"cat {w.store}/meta.db; ls {w.store} {w.store}/clones; cat /proc/self/mountinfo")
    assert "neighbour" not in got["stdout"] and str(w.store) not in got["stdout"], got
    # Also where a directory around it is shown.
    got = sh(w, f"ls -A {w.top}; ls -A {w.store}; ls -A {w.store}/run; echo x > new",
             "--ro", str(w.top))
    assert "work" in got["stdout"] and "clones" not in got["stdout"], got
    assert "cowfsd" not in got["stdout"] and got["changed"]["added"] == 1, got
    assert not (w.project / "new").exists(), "the clone covers the project there too"
    for path in (w.store, w.store / "clones" / "neighbour"):
        w.snap("run", "--ro", str(path), "--", "true").fails(125, "store")
    w.snap("run", "--rw", str(w.top), "--", "true").fails(125, "store")
    w.snap("run", "--rw", str(w.project.parent), "--", "true").fails(125, "project")


@live_test
def sockets_and_other_stores_below_a_grant_are_covered(w):
    """A folder that is granted read-only does not keep anybody from connecting to what is in it."""
    grant = w.top / "granted"
    (grant / "deep").mkdir(parents=True)
    (grant / "file").write_text("granted")
    other = grant / "other-store"
    w.ok("--store", str(other), "snapshot")
    agent = socket.socket(socket.AF_UNIX)
    agent.bind(str(grant / "deep" / "agent.sock"))
    agent.listen()
    act = ("import socket, sys\n"
           "for path in sys.argv[1:]:\n"
           "    try: socket.socket(socket.AF_UNIX).connect(path); print('connected')\n"
           "    except OSError as e: print(type(e).__name__)")
    paths = [str(grant / "deep" / "agent.sock"), str(other / "run" / "cowfsd.sock")]
    words = ["/usr/bin/python3", "-I", "-c", act, *paths]
    control = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.split()
    assert control == [b"connected"] * 2, control
    for how in ("--ro", "--rw"):
        got = run(w, how, str(grant), "--", *words)
        assert "connected" not in got["stdout"] and len(got["stdout"].split()) == 2, got
        got = sh(w, f"cat {grant}/file; ls {other}; ls {grant}", how, str(grant), status=None)
        assert got["stdout"].startswith("granted") and "meta.db" not in got["stdout"], got
    for path in (other, other / "run"):
        w.snap("run", "--ro", str(path), "--", "true").fails(125, "store")
    # One that is granted by its name is meant.
    got = run(w, "--ro", paths[0], "--", *words[:-1])
    assert got["stdout"] == "connected\n", got
    w.ok("--store", str(other), "stop")
    agent.close()


@live_test
def the_environment_is_what_is_allowed_and_what_is_asked_for(w):
    env = {"MINE": "mine", "OTHER": "other", "LC_TIME": "C", "TERM": "dumb", "TZ": "UTC"}
    text = run(w, "--env", "GIVEN=a b", "-e", "TZ=CET", "--pass-env", "OTHER", "--pass-env",
               "UNSET", "--", "env", env=env)["stdout"]
    got = dict(line.split("=", 1) for line in text.splitlines())
    assert got["GIVEN"] == "a b" and got["OTHER"] == "other" and got["TZ"] == "CET", got
    assert got["LC_TIME"] == "C" and got["TERM"] == "dumb" and got["HOME"] == str(w.home), got
    assert not {"MINE", "UNSET", "SNAPCOW_STORE", "ASAN_OPTIONS"} & set(got), got
    got = w.ok("run", "--pass-env", "UNSET", "--pass-env", "OTHER", "--", "true", env=env)
    assert got.err.count(b"'UNSET' is not set here and is not passed on") == 1, str(got)
    assert b"OTHER" not in got.err, str(got)
    for bad in (("--env", "X"), ("--env", "=x"), ("--pass-env", "A=b"), ("--pass-env", "")):
        w.snap("run", *bad, "--", "true").fails(2, bad[0])


@live_test
def paths_are_granted_and_hidden(w):
    data = w.top / "data"
    data.mkdir()
    (data / "f").write_text("data")
    got = sh(w, f"cat {data}/f; echo x > {data}/new", "--ro", str(data), status=2)
    assert got["stdout"] == "data" and not (data / "new").exists(), got
    sh(w, f"echo x > {data}/new", "--rw", str(data))
    assert (data / "new").stat().st_uid == os.getuid()
    got = sh(w, "cat README.md; ls src; echo x > README.md", "--hide", "src", "--ro", "README.md",
             status=2)
    assert got["stdout"] == "first\n", got
    w.snap("run", "--ro", "/no/such", "--", "true").fails(125, "/no/such")


@live_test
def a_path_in_the_mount_of_the_clone_means_what_the_run_sees(w):
    path = clone(w)
    (path / "build").mkdir()
    (path / "secret").write_text("secret\n")
    (w.top / "back").symlink_to(path / "build")
    for build in "build", path / "build":
        got = w.ok("run", "--json", "try", "--rw", str(build), "--ro", "README.md", "--hide", "secret", "--",
                   "sh", "-c", "echo x > build/new; cat secret; echo x > README.md; pwd", cwd=path).json("snap.run/1")
        assert got["stdout"] == f"{w.project}\n" and got["stderr"].count("Read-only") == 1, got
        assert (path / "build" / "new").read_text() == "x\n"
        (path / "build" / "new").unlink()
    (w.top / "linked").symlink_to(w.store)
    got = w.ok("run", "--json", "try", "--hide", str(w.top / "linked/clones/try/secret"), "--", "sh", "-c", "cat secret; true",
               env={"SNAPCOW_STORE": str(w.top / "linked")}).json("snap.run/1")
    assert got["stdout"] == "", got
    for given in "clones", ".":
        w.snap("run", "try", "--rw", str(w.store / given), "--", "true", cwd=path).fails(125, "store")
    w.snap("run", "try", "--rw", str(w.top / "back"), "--", "true", cwd=path).fails(125, "back")


@live_test
def nothing_set_id_is_left_behind(w):
    """Root's run with a folder of the host to write to would leave a program that makes anybody root."""
    data = w.top / "data"
    data.mkdir()
    (data / "tool").write_text("#!/bin/sh\n")
    (data / "tool").chmod(0o755)
    act = (f"chmod 4755 {data}/tool; chmod g+s {data}; chmod u+s README.md; chmod 1777 src; "
           f"install -m 755 {data}/tool {data}/plain")
    got = sh(w, act, "--rw", str(data))
    assert got["stderr"].count("not permitted") == 3, got
    assert not any(p.stat().st_mode & 0o6000 for p in (data, *data.iterdir())), got
    assert (data / "plain").stat().st_mode & 0o777 == 0o755, got
    (data / "tool").chmod(0o4755)  # the control
    assert (data / "tool").stat().st_mode & 0o4000


@live_test
def no_program_outside_waits_for_a_run(w):
    """A lease on a granted file would stop whoever opens it to write, for 45 s, again and again."""
    data = w.top / "data"
    data.mkdir()
    (data / "file").write_text("of the host")
    act = ("import fcntl, os\n"
           f"for path in ('{data}/file', 'README.md', '{data}'):\n"
           "    fd = os.open(path, os.O_RDONLY)\n"
           "    for command in (fcntl.F_SETLEASE, 1040):\n"
           "        try: fcntl.fcntl(fd, command, fcntl.F_RDLCK); print('leased')\n"
           "        except OSError as e: print(e.errno)\n")
    words = ("/usr/bin/python3", "-I", "-c", act)
    control = subprocess.run(words, cwd=w.project, stdout=subprocess.PIPE, check=True).stdout.split()
    assert control.count(b"leased") >= 2, control
    for how in ("--ro", "--rw"):
        got = run(w, how, str(data), "--", *words)
        assert got["stdout"].split() == ["1"] * 6, got
        assert [(r["what"], r["count"]) for r in got["refusals"]] == [("fcntl", 6)], got["refusals"]


@live_test
def every_refusal_is_counted(w):
    act = ("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
           "for i in range(1500):\n    libc.mount(0, 0, 0, 0, 0)\n    assert ctypes.get_errno() == 1\n"
           "libc.sethostname(0, 0)")
    got = run(w, "--", "/usr/bin/python3", "-I", "-c", act)
    assert {r["what"]: r["count"] for r in got["refusals"]} == {"mount": 1500, "sethostname": 1}, got


@live_test
def programs_in_the_home_are_those_of_the_shell(w):
    for folder in (".nvm/versions/node/v1/bin", ".cargo/bin"):
        (w.home / folder).mkdir(parents=True)
    tool = w.home / ".nvm/versions/node/v1/bin/tool"
    tool.write_text("#!/bin/sh\necho of the shell\n")
    tool.chmod(0o755)
    (w.home / ".cargo/credentials.toml").write_text("secret")
    (w.home / ".ssh").mkdir()
    path = f"{tool.parent}:{w.home}/.cargo/bin:{os.environ['PATH']}"
    got = run(w, "--", "tool", env={"PATH": path})
    assert got["stdout"] == "of the shell\n", got
    got = sh(w, "ls -A ~ ~/.cargo; touch ~/.nvm/x; touch ~/.cargo/x && echo own",
             env={"PATH": path})
    assert "own" in got["stdout"] and "credentials" not in got["stdout"], got
    assert ".ssh" not in got["stdout"] and "Read-only" in got["stderr"], got
    assert not (w.home / ".cargo/x").exists() and not (w.home / ".nvm/x").exists()
    got = sh(w, "ls -A ~")
    assert got["stdout"] == "", "where the shell does not look, a run need not either"


@live_test
def who_commits_in_a_run_is_the_caller(w):
    if not shutil.which("git"):
        raise Skip("there is no git")
    act = ("git init -q . && git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'")
    sh(w, act, status=None)  # without any it fails or not, as git likes
    (w.home / ".gitconfig").write_text('[core]\n\tpager = cat\n[user]\n\tname = "Ada Love" # me\n'
                                       "\temail = ada@example.org\n[alias]\n\tname = no\n")
    assert sh(w, act)["stdout"] == "Ada Love <ada@example.org>\n"
    got = sh(w, "git init -q . && git config user.name Other && git config --global user.email o@x.org && "
                "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'")
    assert got["stdout"] == "Other <o@x.org>\n", got
    got = sh(w, "git config --get core.pager; git config --get alias.name", status=None)
    assert got["stdout"] == "", "and nothing else of it is passed on"


@live_test
def a_run_that_fails_without_network_tells_what_it_was_after(w):
    npm = "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org"
    for said, flag in ((npm, "registry.npmjs.org:443"),
                       ("curl: (6) Could not resolve host: files.example.org", "files.example.org:443"),
                       ("GET http://deb.example.org/a: Temporary failure resolving it", "deb.example.org:80")):
        words = ["--", "sh", "-c", f"echo '{said}' >&2; exit 3"]
        result = w.snap("run", *words).ends(3)
        last = result.err.decode().splitlines()[-2:]
        assert "the run has no network" in last[0], str(result)
        assert hint_words(last[1]) == ["run", "--net", flag, *words], str(result)
        result = w.snap("run", "--", "sh", "-c", f"echo '{said}' >&2").ends(0)
        assert b"hint" not in result.err, str(result)
    got = sh(w, f"echo '{npm}'; exit 1", status=1)
    assert [(r["what"], r["rule"], r["flag"]) for r in got["refusals"]] == [
        ("registry.npmjs.org:443", "none", "--net registry.npmjs.org:443")], got["refusals"]
    # Nobody is advised to open this machine, whatever the run says.
    result = w.snap("run", "--", "sh", "-c", "echo ENOTFOUND metadata.google.internal 169.254.169.254; exit 1")
    assert b"hint" not in result.ends(1).err, str(result)


@live_test
def what_exists_here_and_not_inside_is_told(w):
    script = w.top / "script"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    other = w.top / "other"
    other.write_text("")
    for words, status in (([str(script)], 127), (["sh", str(script)], 2)):
        result = w.snap("run", "--", *words)
        assert result.status in (status, 127), str(result)
        told, hint = result.err.decode().splitlines()[-2:]
        assert told == f"warning: '{script}' exists here but is not visible in the run", str(result)
        hint = hint_words(hint)
        assert hint == ["run", "--ro", str(script), "--", *words], str(result)
        assert w.snap(*hint).ends(0).out == b"ran\n"
        more = w.snap("run", "--ro", str(other), *words).err.decode().splitlines()[-1]
        assert hint_words(more) == ["run", "--ro", str(script), "--ro", str(other), "--", *words], more
    result = w.snap("run", "--", "/no/such").ends(127)
    assert b"hint" not in result.err, str(result)
    # What was given by a name from here is visible.
    script.write_text("#!/bin/sh\nexit 5\n")
    result = w.snap("run", "--ro", os.path.relpath(script, w.project), "--", str(script)).ends(5)
    assert b"visible" not in result.err, str(result)


@live_test
def there_is_no_network_unless_it_is_asked_for(w):
    show = "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '"
    assert sh(w, show)["stdout"] == "lo\n"
    assert sh(w, show, "--net", "loopback")["stdout"] == "lo\n"
    got = sh(w, show, "--net", "host")
    assert "net" not in got["isolation"]["walls"] and got["net"] == "host", got
    assert "net" in sh(w, "true")["isolation"]["walls"]
    w.snap("run", "--net", "bogus", "--", "true").fails(2, "bogus")


@live_test
def calls_that_were_refused_are_told(w):
    act = ("import ctypes, socket, sys\nlibc = ctypes.CDLL(None)\n"
           "[libc.mount(0, 0, 0, 0, 0) for i in range(3)]\n"
           "libc.unshare(0x10000000)\n"
           "try: socket.socket(17, 3)\nexcept OSError as e: print(e.errno)\n"
           "sys.exit(int(sys.argv[1]))")
    python = ("/usr/bin/python3", "-I", "-c", act)
    got = run(w, "--", *python, "0")
    seen = [(r["kind"], r["what"], r["rule"], r["flag"], r["count"]) for r in got["refusals"]]
    assert seen == [("call", "mount", "filter", None, 3), ("call", "unshare", "filter", None, 1),
                    ("call", "socket 17", "filter", None, 1)], seen
    assert got["stdout"] == "97\n", "and are refused as ever"
    assert w.ok("runs", "--json").json("snap.runs/1")["runs"][0]["refusals"] == got["refusals"]
    result = w.snap("run", "--", *python, "0").ends(0)
    assert without_warning(result.err) == b"", "of what went well no word"
    result = w.snap("run", "--", *python, "3").ends(3)
    assert b"warning: the system call 'mount'" in result.err, str(result)
    assert b"(3 times)" in result.err and b"family 17" in result.err, str(result)
    assert sh(w, "true")["refusals"] == []


# --- how it ends ------------------------------------------------------------------------------

@live_test
def it_ends_as_the_command_does(w):
    for script, status in (("true", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137),
                           ("kill -15 $$", 143)):
        assert w.snap("run", "--", "sh", "-c", script).status == status, script
    got = sh(w, "kill -9 $$", status=137)
    assert got["signal"] == 9 and not got["oom_killed"] and got["limit"] is None, got


@live_test
def what_cannot_be_executed_is_told_as_shells_do(w):
    w.snap("run", "--", "/no/such/program").fails(127, "/no/such/program")
    w.snap("run", "--", "no-such-program").fails(127, "no-such-program")
    w.snap("run", "--", "./README.md").fails(126, "README.md")
    got = run(w, "--", "no-such-program", status=127)
    assert got["exit_code"] == 127 and "no-such-program" in got["problem"], got
    assert clones(w) == []


@live_test
def a_word_that_is_missing_is_usage(w):
    w.snap("run").fails(2, "--")
    w.snap("run", "--memm", "1G", "true").fails(2, "--memm")
    w.snap("run", "--rm", "--", "true").fails(2, "--rm")
    w.snap("run", "try", "--keep", "--", "true").fails(2, "--keep")
    w.snap("run", "--ttl", "1h", "--", "true").fails(2, "--keep")
    w.snap("run", "--cpus", "x", "--", "true").fails(2, "--cpus")
    w.snap("run", "--allow-missing", "user", "--", "true").fails(2, "user")
    w.snap("run", "--json", "--tty", "--", "true").fails_json(2, "E_USAGE")
    w.snap("run", "nope", "--", "true").fails(125)
    assert not w.store.exists(), "nothing of this makes a store"
    w.take()
    w.snap("run", "nope", "--", "true").fails(125, "'nope'", "hint: snapcow list --all")


@live_test
def a_command_needs_no_dashes_unless_a_clone_has_its_name(w):
    echo = ["echo", "a", "--json", "-q", "--", "--mem", "x"]
    assert w.ok("run", *echo).out == b"a --json -q -- --mem x\n", "nothing behind echo is ours"
    assert run(w, "--time", "9s", *echo)["command"] == echo, "and what stands before it is"
    assert w.ok("try", "--discard", *echo).out == b"a --json -q -- --mem x\n"
    assert w.ok("run", "echo", "--json").out == b"--json\n"
    assert w.ok("run", "pwd").out == f"{w.project}\n".encode()
    w.snap("run", "sh", "-c", "exit 3").ends(3)
    assert clones(w) == []

    clone(w, "echo")
    w.snap("run", *echo).fails(2, "'echo' is a clone")
    w.snap("run", "echo", "--time", "9s", "echo", "-n", "a b").fails(
        2, "hint: snapcow run echo --time 9s -- echo -n 'a b'\n",
        "hint: snapcow run -- echo --time 9s echo -n 'a b'\n")
    assert w.ok("run", "echo", "--time", "9s", "--", "echo", "-n", "a b").out == b"a b"
    assert w.ok("run", "--", "echo", "a").out == b"a\n", "the program of that name"
    w.snap("try", "--discard", "echo", "a").fails(
        2, "'echo' is a clone", "hint: snapcow try --discard -- echo a\n")
    w.snap("run", "echo").fails(2, "needs a command", "hint: snapcow help run")
    w.snap("run", "echo", "--memm", "1G", "--", "true").fails(2, "--memm")
    error = w.snap("run", "echo", "--json", "true").fails_json(2, "E_USAGE")
    assert error["hints"][0] == "snapcow run echo --json -- true", error


@live_test
def failures_of_our_own_are_never_codes_of_the_command(w):
    (w.top / "file").write_text("no directory")
    for words, code in ((["-C", w.top / "nowhere", "run"], "E_NOT_FOUND"),
                        (["--store", w.top / "file" / "store", "run"], "E_NOT_FOUND"),
                        (["run", "--profile", "nope"], "E_NOT_FOUND"),
                        (["run", "--rw", w.project.parent], "E_REFUSED"),
                        (["run", "--secret", "X=/no/such"], "E_NOT_FOUND"),
                        (["try", "--discard", "--profile", "nope"], "E_NOT_FOUND")):
        words = [str(word) for word in words]
        error = w.snap(*words, "--json", "--", "true").fails_json(125, code)
        assert error["message"], error
        w.snap(*words, "--", "true").fails(125, "error: ")
    with open("/dev/full", "wb") as full:
        for words in (["--json", "true"], ["--detach", "true"], ["echo", "out"]):
            w.snap("run", *words, stdout=full).ends(125)


# --- limits -----------------------------------------------------------------------------------

@live_test
def time_is_limited(w):
    got = sh(w, "sleep 600", "--time", "300ms", status=124)
    assert got["timed_out"] and got["limit"] == "time", got
    result = w.snap("run", "--time", "300ms", "--", "sleep", "600").ends(124)
    assert b"--time" in result.err, str(result)
    # A command that ignores the signal is ended all the same, with all of its children.
    sh(w, "trap '' TERM; (trap '' TERM; sleep 600) & sleep 600", "--time", "300ms", status=124)


@live_test
def a_reader_who_does_not_read_keeps_nothing_alive(w):
    process = start(w, "--time", "500ms", "--", "sh", "-c", "while :; do echo yyyyyyyyyyyyyyyy; done")
    assert gone(process.pid, 60), "it waits for a reader"
    process.communicate()
    assert process.returncode == 124, process.returncode
    assert clones(w) == []


@live_test
def memory_is_limited(w):
    hog = ("import sys\nx = []\n"
           "while True: x.append(bytearray(1 << 20)); x[-1][::4096] = b'x' * 256")
    got = run(w, "--mem", "64M", "--allow-missing", "memory", "--", "/usr/bin/python3", "-c", hog,
              status=None)
    assert got["exit_code"] != 0, got
    if "memory" not in got["isolation"]["walls"]:
        raise Skip("no cgroup can be had: memory is bounded for each process only")
    assert got["oom_killed"] and got["limit"] == "memory" and got["exit_code"] == 137, got
    w.snap("run", "--mem", "5B", "--", "true").fails(125, "memory ran out",
                                                     "hint: snapcow run --mem 64M -- true\n")


@live_test
def processes_are_limited(w):
    got = sh(w, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 5 & done; wait",
             "--pids", "8", status=None)
    assert "ork" in got["stderr"], got


@live_test
def growth_of_the_clone_is_limited(w):
    big = "head -c 8388608 /dev/zero > big"
    got = sh(w, big, "--disk", "4M", status=1)
    assert got["limit"] == "disk", got
    sh(w, big, "--disk", "16M")
    path = clone(w)
    sh(w, big, "try", "--disk", "16M")
    assert (path / "big").stat().st_size == 8 * MIB
    # It is growth that counts, and only as long as the run lasts.
    got = sh(w, "head -c 8388608 /dev/zero > more", "try", "--disk", "4M", status=1)
    assert got["limit"] == "disk", got
    (path / "outside").write_bytes(b"x" * 8 * MIB)
    sh(w, "head -c 2097152 /dev/zero > little", "try", "--disk", "4M")
    result = w.snap("run", "--disk", "1M", "--", "sh", "-c", big)
    assert b"--disk" in result.err, str(result)


@live_test
def files_and_descriptors_are_limited(w):
    got = sh(w, "head -c 8388608 /dev/zero > big; ulimit -n", "--fsize", "1M", "--nofile", "77")
    assert got["stdout"] == "77\n" and got["changed"]["added"] == 1, got
    got = run(w, "--fsize", "1M", "--", "head", "-c", "8388608", "/dev/zero")
    assert got["limit"] is None, "a pipe is no file"


@live_test
def output_is_bounded(w):
    got = sh(w, "head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(got["stdout"]) == MIB and got["truncated"], len(got["stdout"])
    assert got["logged"]["stdout"] == 3000000 and not got["logged"]["truncated"], got["logged"]
    got = sh(w, "head -c 3000000 /dev/zero | tr '\\0' x", "--output", "1000B")
    assert len(got["stdout"]) == 1000 and got["limit"] == "output" and got["truncated"], got["limit"]
    got = sh(w, "head -c 20000000 /dev/zero | tr '\\0' x")
    assert got["logged"] == {"stdout": 16 * MIB, "stderr": 0, "truncated": True}, got["logged"]
    text = w.ok("run", "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x").out
    assert len(text) == 3000000, "what is passed on is not what a result holds"


# --- streams ----------------------------------------------------------------------------------

@live_test
def streams_are_passed_on_apart(w):
    result = w.ok("run", "--", "sh", "-c", "cat; echo bad >&2", stdin=None, input=b"in\xff\n")
    assert result.out == b"in\xff\n" and without_warning(result.err) == b"bad\n", str(result)
    assert w.ok("run", "--", "cat").out == b"", "without input there is an end of it"
    got = run(w, "--", "cat", stdin=None, input=b"a\xffb")
    assert got["stdout"] == "a\\xffb", got["stdout"]


@live_test
def a_reader_who_leaves_early_ends_it(w):
    process = start(w, "--", "sh", "-c", "while :; do echo y; done")
    line_of(process)
    process.stdout.close()
    assert gone(process.pid, 60)
    assert process.wait() == 141 and process.stderr.read() == b"", process.returncode
    process.stderr.close()
    assert clones(w) == []


@live_test
def a_terminal_of_its_own_is_given(w):
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(w.project)
        os.execve(SNAP, [SNAP, "run", "--tty", "--", "sh", "-c",
                         "test -t 0 && test -t 1 && test -t 2 && stty size && tty && read x && "
                         "echo got $x"], w.env)
    text = b""
    with contextlib.suppress(OSError):
        while b"/dev/pts" not in text:
            text += os.read(master, 4096)
        os.write(master, b"hello\n")
        while True:
            text += os.read(master, 4096)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    assert status == 0 and b"got hello" in text, (status, text)
    result = w.snap("run", "--", "sh", "-c", "test -t 1")
    assert result.status == 1, "and only if it was asked for"


# --- named clones -----------------------------------------------------------------------------

@live_test
def a_snapshot_is_taken_before_and_going_back_to_it_undoes_the_run(w):
    path = clone(w)
    (path / "mine").write_text("mine")
    got = sh(w, "rm -rf * .[a-z]*; echo ruin > ruin", "try")
    assert got["before"] and not (path / "mine").exists() and (path / "ruin").exists(), got
    w.ok("rollback", "try", got["before"])
    assert (path / "mine").read_text() == "mine" and not (path / "ruin").exists()
    assert (path / "src" / "main.c").exists()


@live_test
def a_snapshot_that_would_be_the_same_is_not_taken_again(w):
    clone(w)
    first = sh(w, "true", "try")["before"]
    assert sh(w, "true", "try")["before"] == first, "nothing changed"
    base = w.ok("status", "--json", "try").json("snap.status/1")["base"]
    assert first == base
    sh(w, "echo x > x", "try")
    second = sh(w, "true", "try")["before"]
    assert second != first
    log = w.ok("log", "--all", "--json", "try").json("snap.log/1")["snapshots"]
    assert [s["snapshot"] for s in log] == [second] and "before run" in log[0]["message"], log


@live_test
def without_a_snapshot_the_changes_are_told_all_the_same(w):
    path = clone(w)
    (path / "before").write_text("x")
    got = sh(w, "echo x > x", "try", "--no-snapshot")
    assert got["before"] is None and got["changed"]["paths"] == [{"path": "x", "status": "A"}], got
    assert w.ok("log", "--all", "--json", "try").json("snap.log/1")["snapshots"] == []


@live_test
def clones_are_kept_and_removed_as_asked(w):
    got = sh(w, "echo x > x", "--keep")
    assert clones(w) == [got["clone"]] and got["kept"], got
    assert (w.store / "clones" / got["clone"] / "x").exists()
    assert not got["clone"].startswith("run-"), "a clone that stays has a name that can be said"
    got = sh(w, "cat x", got["clone"], "--rm")
    assert got["stdout"] == "x\n" and not got["kept"] and clones(w) == [], got
    result = w.ok("run", "--keep", "--ttl", "1h", "--", "true")
    listed = w.ok("list", "--json").json("snap.list/1")["clones"][0]
    assert listed["clone"].encode() in result.err and listed["expires"], (listed, str(result))


@live_test
def two_runs_on_one_clone_see_each_others_files(w):
    clone(w)
    first = start(w, "try", "--", "sh", "-c", "echo ready; until [ -e stop ]; do sleep 0.05; done")
    assert line_of(first) == b"ready\n"
    sh(w, "echo x > stop", "try")
    assert gone(first.pid, 60) and first.wait() == 0
    first.communicate()


@live_test
def a_clone_in_use_is_neither_removed_nor_unmounted(w):
    clone(w)
    first = start(w, "try", "--", "sh", "-c", "echo ready; until [ -e stop ]; do sleep 0.05; done")
    assert line_of(first) == b"ready\n"
    w.snap("rm", "try").fails(11, "in use")
    w.snap("umount", "try").fails(11, "in use")
    w.snap("stop").fails(11, "in use")
    result = w.ok("run", "--rm", "try", "--", "sh", "-c", "echo x > stop")
    assert gone(first.pid, 60) and first.wait() == 0
    first.communicate()
    assert b"in use" in result.err or clones(w) == [], str(result)


# --- records ----------------------------------------------------------------------------------

def on_terminal(w, *args):
    """The lines of a command on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    w.ok(*args, stdout=theirs, env={**w.env, "TERM": "dumb"})
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # EIO: all is read, and nobody has the other end any more
        while piece := os.read(ours, 65536):
            said += piece
    os.close(ours)
    return said.decode().splitlines()


@live_test
def a_terminal_shows_each_run_in_one_line(w):
    clone(w)
    sh(w, "true # " + "long " * 30)
    assert len(w.ok("runs").out.splitlines()[1]) > 100, "no terminal"
    _, row = on_terminal(w, "runs")
    assert len(row) == 80 and row.endswith("..."), row
    first = start(w, "--", "sh", "-c", "echo begun; sleep 60 # long, long, long")
    assert line_of(first) == b"begun\n"
    head, row = on_terminal(w, "ps")
    assert len(head) < 80 and re.match(r"[0-9a-f]{12}  -  ", row) and len(row) == 80, (head, row)
    assert any("  -  sh -c echo begun" in line for line in on_terminal(w, "top", "-n", "1"))
    w.ok("cancel", row[:12])
    first.communicate(timeout=60)


@live_test
def every_run_is_recorded(w):
    clone(w)
    first = sh(w, "echo out; echo err >&2; exit 3", "try", status=3)
    second = sh(w, "echo other")
    runs = w.ok("runs", "--json").json("snap.runs/1", "runs")["runs"]
    assert [r["run"] for r in runs] == [second["run"], first["run"]], runs
    assert runs[1]["exit_code"] == 3 and runs[1]["command"][0] == "sh", runs[1]
    assert runs[1]["before"] == first["before"] and runs[1]["clone"] == "try"
    assert runs[1]["isolation"] == first["isolation"] and "PATH" in runs[1]["env"]
    assert [r["run"] for r in w.ok("runs", "--json", "try").json("snap.runs/1")["runs"]] \
        == [first["run"]]
    assert w.ok("-q", "runs", "-n", "1").out.decode().split() == [second["run"]]
    when = r"(?:just now|\d+ \w+ ago) +"
    table = w.ok("runs").out.decode()
    assert re.fullmatch(rf"""RUN +ENDED WITH +CLONE +TOOK +WHEN +COMMAND
{second["run"]}  0 +-  +[\d.]+m?s  {when}sh -c echo other
{first["run"]}  3 +try  +[\d.]+m?s  {when}sh -c echo out; echo err >&2; exit 3
""", table), table
    assert sorted(w.ok("logs", first["run"]).out.split()) == [b"err", b"out"], "both streams"
    assert w.ok("logs", first["run"], "--stdout").out == b"out\n"
    assert w.ok("logs", first["run"][:6], "--stderr").out == b"err\n"
    assert w.ok("logs").out == b"other\n", "the newest, if none is named"
    got = w.ok("logs", "--json", first["run"]).json("snap.logs/1", "stdout", "stderr")
    assert (got["stdout"], got["stderr"]) == ("out\n", "err\n"), got
    w.snap("logs", "zzz").fails(4, "'zzz'")
    w.snap("logs", "").fails(2)
    for path in (w.store / "runs").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert (w.store / "runs").stat().st_mode & 0o777 == 0o700


@live_test
def lists_and_states_know_of_runs(w):
    clone(w)
    listed = w.ok("list", "--json").json("snap.list/1")["clones"][0]
    assert listed["runs"] == 0
    assert w.ok("status", "--json", "try").json("snap.status/1")["last_run"] is None
    sh(w, "true", "try")
    got = sh(w, "exit 4", "try", status=4)
    assert w.ok("list", "--json").json("snap.list/1")["clones"][0]["runs"] == 2
    last = w.ok("status", "--json", "try").json("snap.status/1")["last_run"]
    assert last["run"] == got["run"] and last["exit_code"] == 4, last
    assert b"last run" in w.ok("status", "try").out


@live_test
def what_runs_now_is_shown_and_can_be_followed(w):
    clone(w)
    assert w.ok("ps", "--json").json("snap.ps/1", "runs")["runs"] == []
    first = start(w, "try", "--time", "1h", "--", "sh", "-c",
                  "echo ready; until [ -e stop ]; do sleep 0.05; done; echo done")
    assert line_of(first) == b"ready\n"
    runs = w.ok("ps", "--json").json("snap.ps/1", "runs")["runs"]
    assert len(runs) == 1 and runs[0]["state"] == "running" and runs[0]["pid"] == first.pid, runs
    assert runs[0]["use"]["processes"] >= 1 and runs[0]["use"]["memory"] > 0, runs
    assert 0 < runs[0]["left_ms"] <= 3600000 and runs[0]["exit_code"] is None, runs
    assert runs[0]["run"].encode() in w.ok("ps").out
    follow = subprocess.Popen([SNAP, "logs", "--follow", runs[0]["run"]], cwd=w.project, env=w.env,
                              stdout=subprocess.PIPE)
    assert line_of(follow) == b"ready\n"
    sh(w, "echo x > stop", "try")
    assert follow.communicate(timeout=60)[0] == b"done\n" and follow.returncode == 0
    first.communicate(timeout=60)
    assert w.ok("ps", "--json").json("snap.ps/1", "runs")["runs"] == []


@live_test
def records_are_kept_by_rule(w):
    sh(w, "echo first")
    ids = []
    record = next((w.store / "runs").glob("*.json"))
    known = json.loads(record.read_text().splitlines()[-1])
    for i in range(120):
        ids.append(f"{i:012x}")
        known["started"] -= 1000  # still after the project was registered, so that they are its own
        (w.store / "runs" / f"{ids[-1]}.json").write_text(json.dumps(known))
        (w.store / "runs" / f"{ids[-1]}.out").write_text("")
    known["started"] -= 15 * 86400 * 10 ** 9
    old = w.store / "runs" / f"{'f' * 12}.json"
    got = w.ok("gc", "--json", "--dry-run").json("snap.gc/1", "runs")
    assert got["runs"] == 21 and len(list((w.store / "runs").glob("*.json"))) == 121, got
    assert w.ok("gc", "--json").json("snap.gc/1", "runs")["runs"] == 21
    left = w.ok("runs", "--json").json("snap.runs/1")["runs"]
    assert len(left) == 100 and left[0]["run"] == record.stem, len(left)
    assert not (w.store / "runs" / f"{ids[-1]}.out").exists()
    old.write_text(json.dumps(known))
    for extra in (w.store / "runs").glob("0000000000[1-9a-f]*"):
        extra.unlink()
    assert w.ok("gc", "--json").json("snap.gc/1", "runs")["runs"] == 1
    assert not old.exists()


@live_test
def a_record_is_its_last_whole_line(w):
    got = sh(w, "echo out; exit 3", status=3)
    record = w.store / "runs" / f"{got['run']}.json"
    lines = record.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["state"] for line in lines] == ["running", "ended"], lines
    assert w.ok("logs", got["run"], "--stderr").out == b""
    silent = sh(w, "true")["run"]
    assert not (w.store / "runs" / f"{silent}.log").exists(), "of one that says nothing"
    (w.store / "runs" / f"{silent}.json").unlink()
    # Cut off by a full disk, or by a death in the middle of it.
    for cut, state in ((lines[0] + lines[1][:40], "lost"), (lines[0], "lost"), (b"", None)):
        record.write_bytes(cut)
        result = w.ok("runs", "--json")
        runs = result.json("snap.runs/1")["runs"]
        assert [r["state"] for r in runs] == ([state] if state else []), runs
        assert result.err == b"", str(result)


@live_test
def a_damaged_record_does_not_hide_the_others(w):
    got = sh(w, "true")
    (w.store / "runs" / "0123456789ab.json").write_text('{"version":1,"state":"ended"')
    result = w.ok("runs", "--json")
    assert [r["run"] for r in result.json("snap.runs/1")["runs"]] == [got["run"]]
    assert b"0123456789ab" in result.err, str(result)


# --- secrets ----------------------------------------------------------------------------------

@live_test
def secrets_are_in_the_run_and_nowhere_else(w):
    secret = "s3cr3t-value-of-token"
    token = w.top / "token"
    token.write_text("from-a-file\n")
    script = (f'test "$TOKEN" = {secret} && test "$FILED" = from-a-file && echo "<$TOKEN>" && '
              'echo "$FILED" >&2 && printf s3cr3t- && sleep 0.2 && printf value-of-token && '
              'sleep 0.2 && printf "\\ns3cr3t-no\\ns3cr3t-val"')
    got = sh(w, script, "--secret", "TOKEN", "--secret", f"FILED={token}", env={"TOKEN": secret})
    assert got["stdout"] == "<***>\n***\ns3cr3t-no\ns3cr3t-val", got["stdout"]
    assert got["stderr"] == "***\n", got["stderr"]
    assert secret not in json.dumps(got) and "***" in got["command"][2], got["command"]
    for path in (w.store / "runs").iterdir():
        assert secret.encode() not in path.read_bytes(), path
    result = w.ok("run", "--secret", "TOKEN", "--", "sh", "-c", "echo $TOKEN",
                  env={"TOKEN": secret})
    assert result.out == b"***\n", str(result)
    error = w.snap("run", "--json", "--secret", "TOKEN", "--", secret, env={"TOKEN": secret})
    assert error.status == 127 and secret.encode() not in error.out + error.err, str(error)
    w.snap("run", "--secret", "UNSET", "--", "true").fails(2, "'UNSET'")
    w.snap("run", "--secret", "X=/no/such", "--", "true").fails(125, "/no/such")
    w.snap("run", "--secret", "SHORT", "--", "true", env={"SHORT": "abc"}).fails(2, "'SHORT'")


@live_test
def a_secret_of_many_lines_is_masked_line_by_line(w):
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC", "-----END KEY-----"]
    key = w.top / "key"
    key.write_text("\n".join(lines) + "\n")
    script = 'echo "$KEY"; echo "$KEY" | sed "s/^/> /"; echo "$KEY" | tail -n 3 | head -n 1 >&2'
    got = sh(w, script, "--secret", f"KEY={key}")
    assert got["stdout"] == "***\n" + "> ***\n" * 4 and got["stderr"] == "***\n", got
    kept = w.ok("logs", got["run"]).out.decode()
    assert not any(line in kept + json.dumps(got) for line in lines), kept


def commits(w):
    lines = w.ok("metrics").out.decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("snapcow_commits_total "))


@live_test
def fsync_costs_nothing_in_a_clone_that_goes_with_its_run(w):
    """A clone that may be looked at later commits each time; so does one whose artifacts are read after the run."""
    script = 'i=0; while [ $i -lt 30 ]; do echo $i > f$i && sync f$i && mv f$i f || exit 1; i=$((i + 1)); done; cat f'

    def grown(*words):
        before = commits(w)
        assert run(w, *words, "--", "sh", "-c", script)["stdout"] == "29\n"
        return commits(w) - before

    clone(w)  # cowfsd is there
    assert grown() < 10
    for words in (["--keep"], ["--durability", "full"], ["--artifact", "f"], ["try"]):
        assert grown(*words) >= 30, words
    before = commits(w)
    w.ok("try", "--json", "--keep", "--", "sh", "-c", script)
    assert commits(w) - before >= 30
    # What the run leaves is told all the same.
    got = run(w, "--", "sh", "-c", script)
    assert [c["path"] for c in got["changed"]["paths"]] == ["f"] and not got["kept"], got


@live_test
def durability_is_that_of_the_clone_that_is_made(w):
    def durability(*args):
        name = run(w, "--keep", *args, "--", "true")["clone"]
        return next(c["durability"] for c in w.ok("list", "--json").json("snap.list/1")["clones"]
                    if c["clone"] == name)

    assert durability() == "full" and durability("--durability", "fast") == "fast"
    run(w, "--durability", "full", "--", "sync")
    w.snap("run", "--durability", "slow", "--", "true").fails(2, "neither full nor fast")
    clone(w)
    w.snap("run", "--durability", "fast", "try", "--", "true").fails(2, "keeps its own")


if __name__ == "__main__":
    sys.exit(livetest.main())
