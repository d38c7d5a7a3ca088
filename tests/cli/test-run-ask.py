"""run --ask: a person decides about what no rule allows, and what is refused waits meanwhile.

The internet is that of tests/net (nettest.py). Each question is answered as a person would, by
another process of the same user, or on a terminal.
"""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

import nettest  # first: it says where the next ones are
from livetest import live_test, note
from runtest import run, start, until
from snaptest import LONG, SNAP, Skip

CURL = "curl -sS --max-time 30 "
CODE = CURL + "-o /dev/null -w '%{http_code} ' "
# A process may not read another's memory, not even its own by that call; nothing outside is read.
PEEK = """
import ctypes, os
class V(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("n", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
def peek(pid=0, at=None):
    a, b = ctypes.create_string_buffer(b"read"), ctypes.create_string_buffer(4)
    n = libc.process_vm_readv(pid or os.getpid(), ctypes.byref(V(ctypes.addressof(b), 4)), 1,
                              ctypes.byref(V(at or ctypes.addressof(a), 4)), 1, 0)
    return b.raw.decode() if n == 4 else ctypes.get_errno()
"""


def python(script):
    return ("/usr/bin/python3", "-I", "-c", script)


def asking(w, *args, **more):
    """A run that asks, in a process of its own."""
    return start(w, "--json", "--ask", *args, **more)


def asked(w):
    return w.ok("answer", "--json").json("snap.answer/1")["questions"]


def question(w, n=1):
    """Wait until so many are open; the last."""
    until(lambda: len(asked(w)) >= n)
    return asked(w)[-1]


def answer(w, *words, n=1):
    q = question(w, n)
    got = w.ok("answer", "--json", q["question"], *words).json("snap.answer/1")
    assert got["questions"][0]["what"] == q["what"] and got["answer"] == words[0], got
    return q


def ended(process, status=0):
    out, err = process.communicate(timeout=120)
    assert status is None or process.returncode == status, (process.returncode, out, err)
    return json.loads(out)


def sums(got):
    return [(q["kind"], q["what"], q["answer"], q["by"], q["remember"]) for q in got["questions"]]


def events(w, kind):
    lines = w.ok("events", "--json").out.decode().splitlines()
    return [e for e in map(json.loads, lines) if e["kind"] == kind]


# --- connections ------------------------------------------------------------------------------

@live_test
def an_answer_makes_the_connection(w):
    process = asking(w, "--", "sh", "-c", CURL + "http://ok.example/x")
    until(lambda: asked(w))
    look = json.loads(w.ok("top", "--json", "-n", "1").out)
    assert [r["waits"] for r in look["runs"]] == ["answer"], look
    assert b"(waits for an answer)" in w.ok("top", "-n", "1").out
    q = answer(w, "allow")
    got = ended(process)
    assert "host=ok.example path=/x" in got["stdout"] and got["refusals"] == [], got
    assert sums(got) == [("connection", "ok.example:80", "allow", "person", False)], got
    assert got["net"] == "none" and got["questions_more"] == 0, got
    assert q["run"] == got["run"] and q["kind"] == "connection" and 0 < q["left_ms"] <= 60_000, q
    (put,), (told,) = events(w, "question"), events(w, "answer")
    assert put["run"] == got["run"] and put["data"] == {
        "question": q["question"], "of": "connection", "what": "ok.example:80", "wait_ms": 60_000}, put
    assert told["data"] == {"question": q["question"], "of": "connection", "what": "ok.example:80",
                            "answer": "allow", "by": "person", "remember": False}, told
    assert asked(w) == [] and w.ok("runs", "--json").json("snap.runs/1")["runs"][0]["questions"] == got["questions"]


@live_test
def a_denial_is_a_refusal_as_without_a_question(w):
    process = asking(w, "--", "sh", "-c", CODE + "http://ok.example/")
    answer(w, "deny")
    got = ended(process)
    assert got["stdout"] == "403 " and sums(got)[0][2:] == ("deny", "person", False), got
    assert [(r["what"], r["rule"]) for r in got["refusals"]] == [("ok.example:80", "host")], got
    control = run(w, "--", "sh", "-c", CODE + "http://ok.example/", status=None)
    assert control["questions"] == [], control


@live_test
def without_an_answer_in_time_it_is_refused_and_not_asked_again(w):
    got = run(w, "--ask-time", "1s", "--", "sh", "-c", (CODE + "http://OK.example./; ") * 3)
    assert got["stdout"] == "403 403 403 ", got
    assert sums(got) == [("connection", "ok.example:80", "deny", "nobody", True)], got
    assert 1000 <= got["questions"][0]["waited_ms"] < 10_000, got


@live_test
def an_answer_is_for_once_unless_it_is_to_be_remembered(w):
    twice = (CODE + "http://ok.example/; ") * 2
    process = asking(w, "--", "sh", "-c", twice)
    first = answer(w, "allow")
    until(lambda: asked(w) not in ([], [first]))
    answer(w, "deny")
    got = ended(process)
    assert got["stdout"] == "200 403 " and len(got["questions"]) == 2, got
    process = asking(w, "--", "sh", "-c", twice)
    answer(w, "allow", "--remember")
    got = ended(process)
    assert got["stdout"] == "200 200 " and len(got["questions"]) == 1, got
    assert got["questions"][0]["remember"], got


@live_test
def all_that_want_the_same_wait_for_one_answer(w):
    many = "for i in $(seq 20); do " + CODE + "http://ok.example/ & done; wait"
    process = asking(w, "--", "sh", "-c", many + "; " + CODE + "http://other.example/")
    q = question(w)
    w.ok("answer", q["question"][:6], "allow", "--remember")
    answer(w, "deny")
    got = ended(process)
    assert got["stdout"].split() == ["200"] * 20 + ["403"], got
    assert [q[1:3] for q in sums(got)] == [("ok.example:80", "allow"), ("other.example:80", "deny")], got


@live_test
def a_storm_of_connections_is_bounded(w):
    n = 10_000 if LONG else 400
    act = f"""
import socket
codes = []
held = []
for i in range({n}):
    s = socket.create_connection(("127.0.0.1", 3128), 60)
    s.sendall(b"CONNECT n%d.example:443 HTTP/1.1\\r\\n\\r\\n" % i)
    if len(held) < 8: held.append(s)
    else: codes.append(s.recv(4096)[9:12]); s.close()
print(len(codes), set(codes), flush=True)
for s in held: codes.append(s.recv(4096)[9:12])
print(len(codes), set(codes))
"""
    process = asking(w, "--time", "5m", "--", *python(act))
    question(w, 8)
    # Others of the same user are served as ever.
    w.ok("clone", "-n", "neighbour")
    until(lambda: len(asked(w)) == 8 and process.poll() is None)
    for q in asked(w):
        w.ok("answer", q["question"], "deny")
    for _ in range(200):
        if process.poll() is not None:
            break
        for q in asked(w):
            w.snap("answer", q["question"], "deny")
    got = ended(process)
    assert got["stdout"].endswith(f"{n} {{b'403'}}\n"), got["stdout"]
    assert 8 <= len(got["questions"]) <= 64, len(got["questions"])
    assert got["questions_more"] >= n - 64, got["questions_more"]
    assert len(got["refusals"]) == 64 and asked(w) == [], got["refusals_more"]


@live_test
def addresses_that_need_a_rule_are_never_asked_about(w):
    got = run(w, "--ask", "--", "sh", "-c", "".join(
        CODE + f"--noproxy x http://{host}/; " for host in ("127.1.2.3", "10.0.0.1", "[fd00::1]", "169.254.169.254")))
    assert got["stdout"] == "403 403 403 403 " and got["questions"] == [], got
    process = asking(w, "--", "sh", "-c", CODE + "http://ten.example/")
    answer(w, "allow")
    got = ended(process)
    assert got["stdout"] == "403 " and [r["rule"] for r in got["refusals"]] == ["address"], got


@live_test
def what_an_answer_allows_is_judged_as_ever(w):
    process = asking(w, "--", "sh", "-c", CODE + "-p -H 'Host: other.example' http://ok.example/")
    answer(w, "allow")
    got = ended(process, None)
    assert "200" not in got["stdout"] and [r["rule"] for r in got["refusals"]] == ["http"], got


@live_test
def secrets_are_no_part_of_a_question(w):
    process = asking(w, "--secret", "TOKEN", "--", "sh", "-c",
                     CODE + '"http://$TOKEN.example/" "http://z$TOKEN.example/"',
                     env={**w.env, "TOKEN": "s3cr3t-value"})
    q = question(w)
    assert q["what"] == "***.example:80", q
    w.ok("answer", q["question"], "deny", "--remember")
    answer(w, "deny")  # another host that only looks the same
    got = ended(process, None)
    assert "s3cr3t" not in json.dumps(got) and len(got["questions"]) == 2, got


# --- system calls -----------------------------------------------------------------------------

@live_test
def a_system_call_of_the_list_waits_and_is_let_through(w):
    script = PEEK + "print(peek(), peek())"
    assert run(w, "--", *python(script))["stdout"] == "1 1\n", "the control: EPERM"
    process = asking(w, "--", *python(script))
    q = answer(w, "allow")
    assert (q["kind"], q["what"]) == ("call", "process_vm_readv"), q
    answer(w, "deny", "--remember")
    got = ended(process)
    assert got["stdout"] == "read 1\n", got
    assert [s[:4] for s in sums(got)] == [("call", "process_vm_readv", "allow", "person"),
                                          ("call", "process_vm_readv", "deny", "person")], got
    assert [(r["what"], r["count"]) for r in got["refusals"]] == [("process_vm_readv", 1)], got


@live_test
def a_call_that_is_let_through_reaches_nothing_outside_or_above(w):
    # The init of the run, which has what the run must not have, and a process that is not there.
    script = PEEK + "print([peek(p, 0x10000) for p in (1, 2**22 - 2)])"
    process = asking(w, "--", *python(script))
    answer(w, "allow", "--remember")
    assert ended(process)["stdout"] in ("[1, 3]\n", "[3, 3]\n"), "EPERM or ESRCH"


@live_test
def what_strict_takes_away_can_be_asked_for(w):
    script = "import os; f = os.memfd_create('x'); print('made')"
    process = asking(w, "--profile", "strict", "--allow-missing", "memory", "--allow-missing", "cpu",
                     "--", *python(script))
    assert answer(w, "allow")["what"] == "memfd_create"
    assert ended(process)["stdout"] == "made\n"


@live_test
def other_calls_are_refused_without_a_question(w):
    act = ("import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
           "for f in (lambda: c.unshare(0x10000000), lambda: c.mount(0, b'/', 0, 0, 0),\n"
           "          lambda: c.chroot(b'/'), lambda: c.socket(40, 1, 0)):\n"
           "    print(f(), ctypes.get_errno(), end=' ')")
    got = run(w, "--ask", "--", *python(act))
    assert got["stdout"] == "-1 1 -1 1 -1 1 -1 97 " and got["questions"] == [], got
    assert len(got["refusals"]) == 4, got


@live_test
def threads_that_wait_are_bounded_and_end_with_the_run(w):
    act = PEEK + """
import threading
got = []
ts = [threading.Thread(target=lambda: got.append(peek())) for _ in range(100)]
[t.start() for t in ts]
[t.join() for t in ts]
print(sorted(map(str, got)))
"""
    process = asking(w, "--", *python(act))
    answer(w, "allow", "--remember")
    got = ended(process)
    said = got["stdout"].count("'read'"), got["stdout"].count("'1'")
    assert sum(said) == 100 and said[0] >= 1 and len(got["questions"]) == 1, (said, got)
    process = asking(w, "--time", "2s", "--", *python(PEEK + "print(peek())"))
    question(w)
    got = ended(process, 124)
    assert [q["by"] for q in got["questions"]] == ["end"] and asked(w) == [], got


# --- who answers ------------------------------------------------------------------------------

@live_test
def nobody_inside_can_answer(w):
    """It sees no socket; and who is in another namespace is somebody else."""
    inside = (f"{CODE} http://ok.example/ & for i in 1 2 3; do {SNAP} --store {w.store} answer; "
              f"{SNAP} --store {w.store} answer $(cat id) allow; done; wait")
    (w.project / "id").write_text("0\n")
    process = asking(w, "--ro", str(SNAP), "--", "sh", "-c", inside)
    # A sanitized program asks about calls of its own.
    hosts = lambda: [q for q in asked(w) if q["kind"] == "connection"]  # noqa: E731
    until(hosts)
    q, = hosts()
    for place in (["unshare", "-U", "-r"], ["unshare", "-U", "-r", "-m"]):
        done = subprocess.run([*place, SNAP, "answer", q["question"], "allow"], cwd=w.project,
                              env=w.env, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode != 0 and [h["question"] for h in hosts()] == [q["question"]], done
    w.ok("answer", q["question"], "deny")
    while process.poll() is None:
        for other in asked(w):
            w.snap("answer", other["question"], "deny")
    got = ended(process, None)
    assert "403 " in got["stdout"] and "allowed" not in got["stdout"], got
    assert [s[2:4] for s in sums(got) if s[0] == "connection"] == [("deny", "person")], got


@live_test
def a_question_that_is_not_open_has_no_answer(w):
    w.snap("answer", "0123abcd", "allow").fails(4, "0123abcd")
    w.take()
    w.snap("answer", "0123abcd", "allow").fails(4, "0123abcd")
    w.snap("answer", "0123abcd", "perhaps").fails(2, "'allow' or 'deny'")
    w.snap("answer", "0123abcd").fails(2, "'allow' or 'deny'")
    assert w.ok("answer", "-q").out == b""
    process = asking(w, "--", "sh", "-c", CODE + "http://ok.example/ & " + CODE + "http://other.example/; wait")
    question(w, 2)
    w.snap("answer", "", "allow").fails(4)
    for q in asked(w):
        w.ok("answer", q["question"], "deny")
    ended(process)


@live_test
def a_killed_run_leaves_no_question(w):
    process = asking(w, "--", "sh", "-c", CODE + "http://ok.example/; sleep 600")
    q = question(w)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: asked(w) == [])
    w.snap("answer", q["question"], "allow").fails(4)
    assert w.ok("runs", "--json").json("snap.runs/1")["runs"][0]["state"] == "lost"


@live_test
def without_cowfsd_the_answer_is_no(w):
    process = asking(w, "--", "sh", "-c", CODE + "http://ok.example/")
    question(w)
    os.kill(json.loads(w.ok("start", "--json").out)["pid"], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    got = json.loads(out)
    assert [s[2:4] for s in sums(got)] == [("deny", "end")], (got, err)


# --- where it is asked ------------------------------------------------------------------------

class Terminal:
    """A run in the foreground of a terminal."""

    def __init__(self, w, *words):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(w.project)
            os.execve(SNAP, [SNAP, "run", *words], {**w.env, "TERM": "xterm"})

    def until(self, what, n=1):
        while self.seen.count(what) < n:
            ready, _, _ = select.select([self.fd], [], [], 60)
            assert ready, self.seen
            self.seen += os.read(self.fd, 4096)

    def say(self, words):
        os.write(self.fd, words + b"\n")

    def code(self):
        """Of the question that was shown last."""
        return re.findall(rb"type allow ([0-9a-f]{4}), allow run \1, ", self.seen)[-1]

    def end(self):
        try:
            while more := os.read(self.fd, 4096):
                self.seen += more
        except OSError:
            pass  # a terminal whose last user has gone
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@live_test
def a_line_on_the_terminal_answers(w):
    t = Terminal(w, "--ask", "--", "sh", "-c", CODE + "http://ok.example/; " + CODE +
                 "http://other.example/; read x; echo got $x")
    t.until(b"deny or deny run:")
    t.say(b"yes please")  # decides nothing, and is not for the run
    t.until(b"type allow", 2)
    t.say(b"allow run " + t.code())
    t.until(b"other.example:80'")
    t.until(b"type allow", 3)
    t.say(b"deny")
    t.until(b"403 ")
    t.say(b"input")
    assert t.end() == 0 and b"200 " in t.seen and b"got input" in t.seen, t.seen
    assert b"yes please" in t.seen and asked(w) == [], t.seen
    (record,) = w.ok("runs", "--json").json("snap.runs/1")["runs"]
    assert [s[1:] for s in sums(record)] == [("ok.example:80", "allow", "terminal", True),
                                             ("other.example:80", "deny", "terminal", False)], record


@live_test
def what_is_typed_decides_only_the_question_that_is_shown(w):
    """One question has its answer from elsewhere while somebody types, and another takes its place."""
    t = Terminal(w, "--ask", "--", "sh", "-c", CODE + "http://ok.example/ & " + CODE +
                 "http://other.example/; wait")
    t.until(b"type allow")
    question(w, 2)
    first, second = asked(w)
    if f"'{first['what']}'".encode() not in t.seen:
        first, second = second, first
    os.write(t.fd, b"allow")
    t.until(b"allow", t.seen.count(b"allow") + 1)  # the terminal has it: it repeats what is typed
    w.ok("answer", first["question"], "deny")
    t.until(f"'{second['what']}'".encode())
    t.until(b"type allow", 2)
    t.say(b"")
    t.until(b"type allow", 3)
    t.say(b"deny")
    assert t.end() == 0 and b"200 " not in t.seen, t.seen
    (record,) = w.ok("runs", "--json").json("snap.runs/1")["runs"]
    assert [s[1:4] for s in sums(record)] == [(first["what"], "deny", "person"),
                                              (second["what"], "deny", "terminal")], record


@live_test
def what_a_run_prints_cannot_pass_for_a_question(w):
    """It prints one with a code of its own, and goes on printing while the real one stands there."""
    fake = ("question 0123beef: run wants to connect to '[::1]:80' (1m left)\\n"
            "type allow 0123, allow run 0123, deny or deny run: ")
    t = Terminal(w, "--ask", "--", "sh", "-c", f"printf \"{fake}\"; "
                 "echo FLOOD; while :; do echo FLOOD; done & " + CODE + "http://ok.example/; kill $!; echo ended")
    t.until(b"'ok.example:80'")
    t.until(b"deny or deny run: ", 2)
    real = t.seen.rindex(b"\rquestion ")
    assert t.code() != b"0123" and b"FLOOD" in t.seen[:real], t.seen
    for n, words in enumerate((b"allow", b"allow run", b"allow 0123", b"allow run 0123",
                               b"allow " + t.code()[:3], b"allow" + t.code())):
        t.say(words)  # that decides nothing: the same question again
        t.until(b"deny or deny run: ", 3 + n)
    assert b"FLOOD" not in t.seen[real:], t.seen[real:]
    assert b"\033[0m\rquestion" in t.seen, t.seen
    t.say(b"allow " + t.code())
    t.until(b"FLOOD", t.seen.count(b"FLOOD") + 1)
    assert t.end() == 0 and b"200 " in t.seen[real:] and b"ended" in t.seen[real:], t.seen[real:][-500:]


@live_test
def the_end_of_a_run_is_the_end_of_its_question(w):
    t = Terminal(w, "--ask", "--time", "3s", "--", "sh", "-c",
                 "echo before; " + CODE + "http://ok.example/")
    t.until(b"deny or deny run: ")
    t.end()
    assert b": denied, the run has ended" in t.seen, t.seen


@live_test
def a_terminal_of_the_runs_own_shows_no_question(w):
    """It could change what stands there: the question is to be read elsewhere."""
    t = Terminal(w, "--tty", "--ask", "--", "sh", "-c", CODE + "http://ok.example/")
    t.until(b"has a question for you; read it in another terminal\r\n")
    t.until(b"answer\r\n")
    q = question(w)
    assert q["question"].encode() not in t.seen and b"ok.example" not in t.seen, t.seen
    w.ok("answer", q["question"], "allow")
    assert t.end() == 0 and b"200 " in t.seen, t.seen


@live_test
def a_run_without_a_terminal_says_what_to_type(w):
    process = start(w, "--ask", "--", "sh", "-c", CODE + "http://ok.example/")
    q = question(w)
    w.ok("answer", q["question"], "allow")
    out, err = process.communicate(timeout=60)
    assert out == b"200 " and f"answer {q['question']} allow" in err.decode(), err
    assert b"wants to connect to 'ok.example:80'" in err and b"allowed" in err, err


@live_test
def a_detached_run_asks_too(w):
    run_id = w.ok("-q", "run", "--detach", "--ask", "--", "sh", "-c",
                  CODE + "http://ok.example/").out.decode().strip()
    q = question(w)
    (now,) = w.ok("logs", "--json", run_id).json("snap.logs/1")["questions"]
    assert (now["question"], now["answer"]) == (q["question"], None) and q["run"] == run_id, (now, q)
    answer(w, "allow")
    w.ok("wait", run_id)
    got = w.ok("logs", "--json", run_id).json("snap.logs/1")
    assert [s[2:4] for s in sums(got)] == [("allow", "person")] and got["exit_code"] == 0, got


@live_test
def a_profile_may_ask_but_not_one_of_the_project(w):
    folder = w.home / ".config" / "snapcow" / "profiles"
    folder.mkdir(parents=True)
    (folder / "asks.yaml").write_text("ask: 30s\n")
    process = start(w, "--json", "--profile", "asks", "--", "sh", "-c", CODE + "http://ok.example/")
    answer(w, "allow")
    assert ended(process)["stdout"] == "200 "
    got = run(w, "--profile", "asks", "--ask-time", "0", "--", "sh", "-c", CODE + "http://ok.example/",
              status=None)
    assert got["questions"] == [], got
    own = w.project / ".snap" / "profiles"
    own.mkdir(parents=True)
    for text, status in (("ask: 30s\n", 125), ("extends: asks\nask: 31s\n", 125), ("extends: asks\nask: 0\n", 0)):
        (own / "mine.yaml").write_text(text)
        result = w.snap("run", "--profile", "mine", "--", "true")
        assert result.status == status, str(result)


if __name__ == "__main__":
    sys.exit(nettest.main())
