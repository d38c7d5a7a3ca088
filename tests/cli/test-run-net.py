"""run --net HOST:PORT: connections to what is listed, from inside a whole sandbox.

The internet is that of tests/net, in a network namespace of this program's own. What the list,
the proxy and the bridge refuse is tested there; here, that a run is joined to them, that there
is no way past them, and that snap reports what was refused. Each denial has a control.
"""

import encodings.idna  # noqa: F401  (sockets ask for it when it may be out of reach)
import hashlib
import json
import os
import shlex
import socket
import sys

import nettest  # first: it says where the next ones are
import livetest
import world as internet
from livetest import live_test
from runtest import below, clone, hint_words, line_of, memory_of, run, sh, start, without_warning
from snaptest import Skip, leak_checks

OK = "ok.example:80"


def connect(host, port):
    """Without a word of proxies; says what the other end says first."""
    return ("/usr/bin/python3", "-I", "-c",
            f"import socket; c = socket.create_connection(('{host}', {port}), 20); "
            "c.sendall(b'GET / HTTP/1.0\\r\\nHost: ok.example\\r\\n\\r\\n'); print(c.recv(4096))")


def curl(*more):
    return ("curl", "-sS", "--max-time", "30", *more)


# --- what is listed ---------------------------------------------------------------------------

@live_test
def a_listed_host_is_reached_and_no_other(w):
    got = run(w, "--net", OK, "--", *curl("http://ok.example/x"))
    assert f"at=::ffff:{internet.SERVER} host=ok.example path=/x" in got["stdout"], got
    assert got["net"] == OK and "net" in got["isolation"]["walls"] and got["refusals"] == [], got
    got = run(w, "--net", OK, "--", *curl("-o", "/dev/null", "-w", "%{http_code}",
                                         "http://other.example/"))
    assert got["stdout"] == "403", got
    got = run(w, "--net", f"{OK},other.example:80", "--", *curl("http://other.example/"))
    assert f"at=::ffff:{internet.OTHER}" in got["stdout"], got  # the control


@live_test
def the_option_adds_up(w):
    got = run(w, "--net", OK, "--net", "other.example:80", "--",
              *curl("http://ok.example/", "http://other.example/"))
    assert got["net"] == "ok.example:80,other.example:80" and got["stdout"].count("at=") == 2, got


@live_test
def programs_that_know_no_proxy_get_there_too(w):
    got = run(w, "--net", OK, "--", *connect("ok.example", 80))
    assert "200 OK" in got["stdout"], got
    got = run(w, "--net", OK, "--", *connect("other.example", 80), status=1)
    assert "gaierror" in got["stderr"], got
    assert [r["what"] for r in got["refusals"]] == ["other.example"], got["refusals"]


@live_test
def tls_passes_with_the_name_it_was_asked_for(w):
    args = ("--net", "ok.example:443", "--", *curl("-k", "https://ok.example/"))
    assert "host=ok.example" in run(w, *args)["stdout"]
    got = run(w, "--net", "ok.example:443", "--",
              *curl("-k", "--connect-to", "other.example:443:ok.example:443",
                    "https://other.example/"), status=None)
    assert got["exit_code"] != 0 and got["refusals"][0]["rule"] == "sni", got


@live_test
def a_connection_lives_as_long_as_its_run_and_no_longer(w):
    act = ("import socket, sys; c = socket.create_connection(('ok.example', 7001), 20); "
           "print(c.recv(6).decode(), end='', flush=True); c.sendall(b'x' * 10); "
           "print(len(c.recv(10)), flush=True); sys.stdin.read()")
    process = start(w, "--net", "ok.example:7001/tcp", "--", "/usr/bin/python3", "-I", "-c", act,
                    stdin=-1)
    assert line_of(process) == b"hello\n" and line_of(process) == b"10\n"
    process.communicate(timeout=60)
    assert process.returncode == 0, process.returncode


# --- no way past it ---------------------------------------------------------------------------

@live_test
def addresses_lead_nowhere(w):
    for host, port in ((internet.SERVER, 80), (internet.OWN, 8080), (internet.PRIVATE, 80)):
        got = run(w, "--net", OK, "--", *connect(host, port), status=1)
        assert "unreachable" in got["stderr"], got
        socket.create_connection((host, port), timeout=5).close()  # the control
    got = run(w, "--net", OK, "--", *connect("127.0.0.1", 8080), status=1)
    assert "ConnectionRefused" in got["stderr"], got
    socket.create_connection(("127.0.0.1", 8080), timeout=5).close()


@live_test
def names_that_lead_home_are_refused(w):
    for name, rule in (("loop.example", "address"), ("ten.example", "address"),
                       ("own.example", "self"), ("meta.example", "address")):
        got = run(w, "--net", f"{name}:8080", "--",
                  *curl("-o", "/dev/null", "-w", "%{http_code}", f"http://{name}:8080/"))
        assert got["stdout"] == "403" and got["refusals"][0]["rule"] == rule, got
    assert got["refusals"][0]["flag"] is None, "nobody is advised to open that"
    got = run(w, "--net", f"ten.example:80,{internet.PRIVATE}:80", "--",
              *curl("http://ten.example/"))
    assert f"at=::ffff:{internet.PRIVATE}" in got["stdout"], got  # the control


@live_test
def the_walls_are_those_of_any_run(w):
    script = ("cat /etc/resolv.conf /etc/hosts; cut -d: -f1 /proc/net/dev | tail -n +3; "
              "grep Cap /proc/self/status; ls -A /proc | grep -c '^[0-9]'; echo x > /etc/hosts")
    got = sh(w, script, "--net", OK, status=2)
    text = got["stdout"].split()
    assert got["stdout"].startswith("nameserver 127.0.0.1\n127.0.0.1 localhost\n"), got
    assert text.count("lo") == 1 and text.count("0000000000000000") == 5, got
    plain = sh(w, "true")
    assert got["isolation"] == plain["isolation"], "one wall less, or more"
    names = {"http_proxy", "HTTPS_PROXY", "all_proxy", "no_proxy"}
    assert names <= set(got["env"]) and not names & set(plain["env"]), got["env"]
    got = sh(w, "echo $http_proxy", "--net", OK, "--env", "http_proxy=mine")
    assert got["stdout"] == "mine\n", "what is asked for comes last"


@live_test
def the_bridge_is_out_of_sight_and_out_of_reach(w):
    fetch = " ".join(curl("http://ok.example/"))
    got = sh(w, f"ls /proc | grep -x 2; kill -9 2; kill -9 -1; echo still here; {fetch}",
             "--net", OK, status=None)
    assert got["stdout"].startswith("still here\n"), got
    # Where Landlock has no scope for signals it can be ended, and the network with it.
    assert ("at=" in got["stdout"]) == (got["exit_code"] == 0), got
    assert "at=" in got["stdout"] or "Failed to connect" in got["stderr"], got
    # What the run may have open is not what the bridge may.
    assert "at=" in sh(w, fetch, "--net", OK, "--nofile", "6")["stdout"]


# --- what snap says ---------------------------------------------------------------------------

@live_test
def what_was_refused_is_in_the_result_and_the_record(w):
    got = sh(w, "for i in 1 2 3; do curl -s http://other.example/; done; curl -s http://1.2.3.4/; "
                "curl -s http://ok.example:81/", "--net", OK, status=None)
    seen = [(r["kind"], r["what"], r["rule"], r["flag"], r["count"]) for r in got["refusals"]]
    assert seen == [
        ("connection", "other.example:80", "host", "--net other.example:80", 3),
        ("connection", "1.2.3.4:80", "literal", "--net 1.2.3.4:80", 1),
        ("connection", "ok.example:81", "port", "--net ok.example:81", 1)], seen
    assert "not in the list" in got["refusals"][0]["message"], got["refusals"]
    kept = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]
    assert kept["refusals"] == got["refusals"] and kept["refusals_more"] == 0, kept


@live_test
def people_are_told_with_a_command_to_copy(w):
    words = ("sh", "-c",
             "curl -s http://other.example/; curl -s http://other.example/ >&2; "
             f"{' '.join(connect('other.example', 80)[:2])} -c '"
             "import socket; socket.getaddrinfo(\"other.example\", 80)' 2>/dev/null; true")
    result = w.snap("run", "--time", "5m", "--net", OK, "--", *words)
    lines = result.ends(0).err.decode().splitlines()[-3:]
    assert lines[0] == ("warning: 'other.example:80' is not in the list of allowed hosts "
                        "(2 times)"), str(result)
    assert lines[1].startswith("warning: 'other.example' is not in the list"), str(result)
    hint = hint_words(lines[2])
    assert hint == ["run", "--net", "ok.example:80,other.example:80", "--time", "5m", "--", *words], str(result)
    result = w.snap(*hint).ends(0)
    assert b"at=" in result.out and b"hint" not in result.err, "and the hint is right"
    result = w.snap("-q", "run", "--net", OK, "--", "curl", "-s", "http://other.example/")
    assert b"hint" not in result.err and b"warning" not in result.err, str(result)


@live_test
def requests_are_told_apart_by_method_and_path(w):
    (w.home / ".config/snapcow/profiles").mkdir(parents=True, exist_ok=True)
    profile = w.home / ".config/snapcow/profiles/reader.yaml"
    profile.write_text("net:\n  - GET http://ok.example/pub/*\n  - other.example:80\n")
    code = ("-o", "/dev/null", "-w", "%{http_code} ")
    act = " ; ".join(" ".join(map(shlex.quote, curl(*code, *more))) for more in (
        ("http://ok.example/pub/a",), ("-d", "x", "http://ok.example/pub/a"),
        ("http://ok.example/b",), ("-d", "x", "http://other.example/b")))
    got = sh(w, act, "--profile", "reader")
    assert got["stdout"] == "200 403 403 200 ", got
    assert got["net"] == "GET http://ok.example/pub/*,other.example:80", got["net"]
    assert [(r["rule"], r["flag"]) for r in got["refusals"]] == [
        ("request", "--net 'POST http://ok.example/pub/a'"),
        ("request", "--net 'GET http://ok.example/b'")], got["refusals"]
    result = w.snap("run", "--profile", "reader", "--", "sh", "-c", act)
    hint = hint_words(result.ends(0).err.decode().splitlines()[-1])
    assert hint[:2] == ["run", "--net"] and " http://ok.example/b" in hint[2], hint
    assert hint[3:] == ["--profile", "reader", "--", "sh", "-c", act], hint
    assert w.ok(*hint).out == b"200 200 200 200 ", "and the hint is right"


@live_test
def no_odd_request_slips_past(w):
    """What some servers read as a request for another host, although it is none by the book."""
    other = "Host: other.example\r\n\r\n"
    odd = [f"GET  / HTTP/1.1\r\n{other}", f"\r\nGET / HTTP/1.1\r\n{other}", f"GET / HTTP/1.1\n{other}",
           f"PROPFIND / HTTP/1.1\r\n{other}", f"QUERY / HTTP/1.1\r\n{other}",
           f"SEARCH / HTTP/1.1\r\n{other}", f"PURGE / HTTP/1.1\r\n{other}", "GET /\r\n\r\n",
           f"GET http://other.example/ HTTP/1.1\r\n{other}",
           f"GET /x HTTP/1.1\r\nHost: ok.example\r\n\r\nPURGE / HTTP/1.1\r\n{other}"]
    act = ("import encodings.idna, socket\n"
           f"for text in {odd!r}:\n"
           "    c, heard = socket.create_connection(('ok.example', 80), 30), b''\n"
           "    try:\n"
           "        c.sendall(text.encode())\n"
           "        while piece := c.recv(65536): heard += piece\n"
           "    except OSError: pass\n"
           "    print(heard.count(b'host=ok.example path=/x'), heard.count(b'HTTP/1.') + heard.count(b'at='))")
    got = run(w, "--net", OK, "--", "/usr/bin/python3", "-I", "-c", act)
    *alone, last = got["stdout"].splitlines()
    assert alone == ["0 0"] * (len(odd) - 1), got["stdout"]  # nothing of a server, nor of any answer
    assert last in ("0 0", "1 2"), "the first of the two is for that host"
    assert sum(r["count"] for r in got["refusals"]) == len(odd), got["refusals"]
    assert {r["rule"] for r in got["refusals"]} == {"http", "protocol"}, got["refusals"]
    got = run(w, "--net", OK, "--", *connect("ok.example", 80))
    assert "200 OK" in got["stdout"], got  # the control


# --- secrets that the run never sees ----------------------------------------------------------

SECRET = "t0ken-that-nobody-sees"
FOR = ("--net", f"{OK},other.example:80", "--secret-for", "http://ok.example=TOKEN")


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def hidden(w, act, *more, **how):
    """The result of a shell's lines, none of which, nor any record, tells the secret."""
    got = sh(w, act, *more, env={"TOKEN": SECRET, **how.pop("env", {})}, **how)
    for path in (w.store / "runs").iterdir():
        assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in json.dumps(got), got
    return got


@live_test
def a_host_gets_a_secret_that_the_run_never_sees(w):
    login = "curl -sS --compressed -H 'Authorization: mine' http://ok.example/login"
    got = hidden(w, login, *FOR)
    assert got["stdout"] == f"{digest('Bearer ' + SECRET)} 1 identity", got
    assert got["secret_for"] == ["http://ok.example"] and "TOKEN" not in got["env"], got
    # Neither its environment nor any process that it sees has it.
    got = hidden(w, f"env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; "
                    f"{login}", *FOR)
    assert digest("Bearer " + SECRET) in got["stdout"], got
    # The controls: without the option, and for another host, what the run says goes there.
    got = hidden(w, login, "--net", OK)
    assert digest("mine") in got["stdout"] and got["secret_for"] == [], got
    got = hidden(w, login.replace("ok.example", "other.example"), *FOR)
    assert digest("mine") in got["stdout"], got


@live_test
def no_process_of_the_run_has_the_secret_in_its_memory(w):
    if os.geteuid() != 0:
        raise Skip("only root may look: neither the init nor the bridge can be traced")
    if livetest.SANITIZED:
        raise Skip("the sanitizer maps terabytes, and keeps what was freed")
    process = start(w, *FOR, "--", "sh", "-c", "curl -sS http://ok.example/login; echo; read x",
                    stdin=-1, env={**w.env, "TOKEN": SECRET})
    assert digest("Bearer " + SECRET).encode() in line_of(process)
    seen = {pid: memory_of(pid) for pid in below(process.pid)}
    assert len(seen) >= 3 and all(seen.values()), "the init, the bridge and the command"
    found = [pid for pid, text in seen.items() if SECRET.encode() in text]
    assert SECRET.encode() in memory_of(process.pid), "the control"
    process.communicate(timeout=60)
    assert not found, [len(seen[pid]) for pid in found]


@live_test
def a_secret_comes_from_a_file_and_in_any_header(w):
    file = w.home / "token"
    file.write_text(SECRET + "\n")
    got = hidden(w, "curl -sS http://ok.example/login", "--net", OK, "--secret-for",
                 f"http://ok.example=Authorization: token {{@{file}}}")
    assert digest("token " + SECRET) in got["stdout"], got
    got = hidden(w, "curl -sS http://ok.example/login/a http://ok.example/login/b", "--net", OK,
                 "--secret-for", "GET http://ok.example/login/a=TOKEN")
    first, second, _ = got["stdout"].split("identity")
    assert digest("Bearer " + SECRET) in first and digest("None") in second, got


@live_test
def a_server_that_repeats_a_secret_tells_the_run_nothing(w):
    stars = "*" * len(SECRET)
    got = hidden(w, "curl -sSi http://ok.example/echo; curl -sS --noproxy '*' http://ok.example/echo",
                 *FOR)
    assert got["stdout"].count(f"auth=Bearer {stars} key=None") == 2, got
    assert f"X-Repeats: Bearer {stars}" in got["stdout"], got
    # TRACE is for nothing else, and refused; as is what only looks like the same host.
    got = hidden(w, "curl -sS -X TRACE http://ok.example/", *FOR)
    assert "not allowed" in got["stdout"] and got["refusals"][0]["rule"] == "request", got
    got = hidden(w, "curl -sS -X TRACE http://ok.example/", "--net", OK)
    assert "traced nothing" in got["stdout"], got  # the control
    got = hidden(w, "curl -sS -p -H 'Host: other.example' http://ok.example/echo", *FOR,
                 status=None)
    assert "Bearer" not in got["stdout"] and got["refusals"][0]["rule"] == "http", got
    got = hidden(w, "curl -sS -H 'Host: ok.example' http://other.example/echo -p", *FOR,
                 status=None)
    assert "Bearer" not in got["stdout"], got


@live_test
def a_secret_that_cannot_stay_one_is_refused(w):
    for more, words in (
            (("--pass-env", "TOKEN"), "the run would see 'TOKEN' in its variable 'TOKEN'"),
            (("--env", f"X=a{SECRET}b"), "in its variable 'X'"),
            (("--secret-for", "http://third.example=TOKEN"), "--net third.example:80"),
            (("--secret-for", "ok.example=TOKEN"), "--secret-for"),
            (("--secret-for", "https://ok.example=TOKEN"), "--net ok.example:443"),
            (("--secret-for", "ftp://ok.example=TOKEN"), "'http://' or 'https://'"),
            (("--secret-for", "http://*.ok.example=TOKEN"), "is not http://HOST"),
            (("--secret-for", "http://ok.example=NONE"), "'NONE' is not in the environment"),
            (("--secret-for", "http://ok.example=Host: {TOKEN}"), "no header"),
            (("--secret-for", "http://ok.example=X-Key: fixed"), "no header"),
            (("--secret-for", "http://ok.example=SHORT"), "less than 4 bytes"),
            (("--secret-for", "http://ok.example=TOKEN") * 8, "more than 8 secrets"),
            (("--secret-for", "http://ok.example=LINES"), "no text of one line"),
            (("--secret-for", "http://ok.example"), "is not http://HOST=NAME")):
        result = w.snap("run", *FOR, *more, "--", "true", env={
            "TOKEN": SECRET, "SHORT": "abc", "LINES": "abcd\r\nX: y"})
        result.fails(2, words)
        assert SECRET.encode() not in result.err, str(result)
    w.snap("run", *FOR, "--secret-for", "http://ok.example=@/no/such", "--", "true",
           env={"TOKEN": SECRET}).fails(125, "/no/such")
    w.snap("run", "--net", "none", "--secret-for", "http://ok.example=TOKEN", "--", "true",
           env={"TOKEN": SECRET}).fails(2, "--net ok.example:80")
    w.snap("run", "--net", "ok.example:80/tcp", "--secret-for", "http://ok.example=TOKEN", "--",
           "true", env={"TOKEN": SECRET}).fails(2, "unread")


@live_test
def what_a_run_sends_is_shown_and_bounded(w):
    post = " ".join(curl("-o", "/dev/null", "-w", "'%{http_code} '", "--data-binary", "@big",
                         "http://ok.example/"))
    act = f"head -c 100000 /dev/zero > big; {post}; {post}"
    got = sh(w, act, "--net", OK)
    assert got["stdout"] == "200 200 " and got["limits"]["net_out"] is None, got
    assert 200_000 < got["net_sent"] < 202_000 and got["limit"] is None, got
    got = sh(w, act, "--net", OK, "--net-out", "150K", status=None)
    assert got["stdout"].startswith("200 "), got  # the server may answer before it has the body
    assert got["limit"] == "net-out" and 100_000 < got["net_sent"] <= 150 << 10, got
    assert [(r["rule"], r["flag"]) for r in got["refusals"]] == [("bytes", "--net-out 300K")], got
    kept = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]
    assert kept["net_sent"] == got["net_sent"] and kept["limits"]["net_out"] == 150 << 10, kept
    result = w.snap("run", "--net", OK, "--net-out", "150K", "--", "sh", "-c", act)
    told = without_warning(result.err).decode()
    assert "no more than 150.0 KiB could be sent out (--net-out)" in told, told
    assert hint_words(told.splitlines()[-1]) == ["run", "--net-out", "300K", "--net", OK, "--", "sh", "-c", act], told
    assert sh(w, "true")["net_sent"] is None, "nothing counts there"


@live_test
def a_limit_that_cannot_be_held_is_refused(w):
    w.snap("run", "--net", "host", "--net-out", "1M", "--", "true").fails(2, "--net-out", "--net host")
    run(w, "--net", "host", "--net-out", "0", "--", "true")


@live_test
def very_many_refusals_are_bounded(w):
    act = ("import socket\nfor i in range(1100):\n"
           "    try: socket.getaddrinfo(f'n{i}.example', 80, socket.AF_INET)\n"
           "    except socket.gaierror: pass")
    got = run(w, "--net", OK, "--", "/usr/bin/python3", "-I", "-c", act)
    assert len(got["refusals"]) == 64 and got["refusals_more"] >= 1100 - 64, got["refusals_more"]
    result = w.snap("run", "--net", OK, "--", "/usr/bin/python3", "-I", "-c", act)
    assert without_warning(result.err).count(b"warning: ") == 6, str(result)
    assert b"more that were refused" in result.err, str(result)
    # Nobody could copy a command of several lines.
    hint = hint_words(result.err.decode().splitlines()[-1])
    assert hint == ["run", "--net", f"{OK}," + ",".join(f"n{i}.example:PORT" for i in range(5)),
                    "--", "COMMAND..."], hint


@live_test
def secrets_are_no_part_of_what_is_told(w):
    secret = "s3cr3t-value"
    got = sh(w, 'curl -s "http://$TOKEN.other.example/"', "--net", OK, "--secret", "TOKEN",
             env={"TOKEN": secret}, status=None)
    assert got["refusals"][0]["what"] == "***.other.example:80", got["refusals"]
    assert secret not in json.dumps(got)
    # A hint repeats the command, but not if a secret is in it.
    words = ("--secret", "TOKEN", "--", "curl", "-s", "-H")
    for header, end in (("X: open", [*words, "X: open", "http://other.example/"]),
                        (f"X: {secret}", ["--", "COMMAND..."])):
        result = w.snap("run", "--net", OK, *words, header, "http://other.example/", env={"TOKEN": secret})
        hint = hint_words(result.err.decode().splitlines()[-1])
        assert hint == ["run", "--net", f"{OK},other.example:80", *end], str(result)
        assert secret.encode() not in result.err, str(result)
    for path in (w.store / "runs").iterdir():
        assert secret.encode() not in path.read_bytes(), path


@live_test
def a_run_with_a_list_leaks_nothing(w):
    *runs, last = leak_checks(3, 1)
    for env in runs:  # one that is refused and one that is not; and the same read again
        got = sh(w, "curl -s http://other.example/; curl -s http://ok.example/; true", "--net", OK,
                 env=env)
        assert len(got["refusals"]) == 1, got
    w.ok("runs", "--json", env=last)


@live_test
def what_is_no_list_is_usage(w):
    for bad, words in (("bogus", "none, loopback, host"), ("ok.example", "none, loopback"),
                       ("ok.example:0", "no port"), ("*.com:80", "top-level"),
                       ("0.0.0.0/0:80", "too wide"), (f"{OK},", "empty rule")):
        w.snap("run", "--net", bad, "--", "true").fails(2, "--net", words)
    w.snap("run", "--net", "host", "--net", OK, "--", "true").fails(2, "--net")
    assert not w.store.exists(), "nothing of this makes a store"


@live_test
def without_its_bridge_no_command_runs(w):
    path = clone(w)
    act = ("try", "--pids", "1", "--", "touch", "ran")
    if "pids" not in run(w, "try", "--", "true")["isolation"]["walls"] or os.geteuid() != 0:
        raise Skip("no cgroup can be had that would leave no room for it")
    error = w.snap("run", "--json", "--net", OK, *act).fails_json(125, "E_SANDBOX")
    assert "the helper of the run" in error["message"] and not (path / "ran").exists(), error


# --- running ----------------------------------------------------------------------------------

if __name__ == "__main__":
    sys.exit(nettest.main())
