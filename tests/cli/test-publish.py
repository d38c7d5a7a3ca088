"""run --publish: a server in a run, reached from this machine's loopback, and no way back."""

import encodings.idna  # noqa: F401  (sockets ask for it when it may be out of reach)
import hashlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from runtest import MIB, clone, run, start, until  # noqa: E402
from snaptest import SNAP, Skip  # noqa: E402

# Says on which port it listens by making a file, then serves as its argument says.
SERVER = r"""
import socket, sys, threading
what, address = sys.argv[1], sys.argv[2]
threading.stack_size(1 << 17)   # many of them, where memory is limited for each process
s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((address, int(sys.argv[3])))
s.listen(512)
print('listening', flush=True)

def echo(c):
    while (data := c.recv(65536)):
        c.sendall(data)
    c.sendall(b'the end')       # the client has shut its half alone
    c.close()

def once(c):
    c.sendall(b'x' * (8 << 20))
    c.close()

if what == 'once':
    once(s.accept()[0])
    sys.exit()
while True:
    threading.Thread(target=echo, args=(s.accept()[0],), daemon=True).start()
"""
PUBLISHED = re.compile(rb"^port (\d+) of the run is 127\.0\.0\.1:(\d+)$", re.M)


def server(what="echo", address="127.0.0.1", port=7777):
    return ("/usr/bin/python3", "-I", "-c", SERVER, what, address, str(port))


class Job:
    """A detached run with a server, ended with the block."""

    def __init__(self, w, *args, command=server()):
        self.w, self.args, self.command = w, args, command

    def __enter__(self):
        got = self.w.ok("run", "--json", "--detach", *self.args, "--", *self.command)
        self.run = got.json("snap.run/1", "run", "published")
        self.id, self.published = self.run["run"], self.run["published"]
        self.port = self.published[0]["host_port"]
        until(lambda: b"listening" in self.w.ok("logs", self.id).out)
        return self

    def __exit__(self, *_):
        self.w.snap("cancel", self.id)


def talk(port, data, host="127.0.0.1"):
    """What comes back of what is sent, and then only half of the connection is shut."""
    with socket.create_connection((host, port), 60) as c:
        sender = threading.Thread(target=lambda: (c.sendall(data), c.shutdown(socket.SHUT_WR)))
        sender.start()
        got = bytearray()
        while (more := c.recv(65536)):
            got += more
        sender.join()
    return bytes(got)


def refused(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 10).close()
    except (ConnectionRefusedError, ConnectionResetError):  # the second while it is being closed
        return True
    return False


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# --- what is reached ----------------------------------------------------------------------------

@live_test
def a_server_is_reached_while_it_runs_and_no_longer(w):
    with Job(w, "--publish", "7777:0") as job:
        assert job.published == [{"port": 7777, "host_port": job.port,
                                  "address": f"127.0.0.1:{job.port}"}], job.published
        assert talk(job.port, b"hello") == b"hellothe end"
        runs = w.ok("ps", "--json").json("snap.ps/1")["runs"]
        assert [r["published"] for r in runs if r["run"] == job.id] == [job.published], runs
    assert refused(job.port)


@live_test
def the_port_is_the_same_unless_another_is_named(w):
    port, other = free_port(), free_port()
    with Job(w, "--publish", f"{port},7777:{other}", command=server(port=port)) as job:
        assert [(p["port"], p["host_port"]) for p in job.published] == [(port, port),
                                                                        (7777, other)]
        assert talk(port, b"x") == b"xthe end"
        # Nobody listens on the second: the client hears that, at once.
        try:
            with socket.create_connection(("127.0.0.1", other), 60) as c:
                assert c.recv(1) == b"", "somebody answered"
                raise AssertionError("an end instead of a reset")
        except ConnectionResetError:
            pass


@live_test
def servers_of_either_address_are_reached_by_either(w):
    if not Path("/proc/net/if_inet6").exists():
        raise Skip("this machine has no IPv6")
    for inside in ("::1", "0.0.0.0"):
        with Job(w, "-p", "7777:0", command=server(address=inside)) as job:
            assert talk(job.port, b"4") == b"4the end", inside
            assert talk(job.port, b"6", "::1") == b"6the end", inside


@live_test
def only_loopback_is_listened_on(w):
    with Job(w, "--publish", "7777:0") as job:
        at = {line.split()[1].rpartition(":")[0]
              for name in ("tcp", "tcp6")
              for line in Path(f"/proc/net/{name}").read_text().splitlines()
              if f":{job.port:04X} " in line and " 0A " in line}
        assert at <= {"0100007F", "0" * 24 + "01000000"} and "0100007F" in at, at


@live_test
def a_large_transfer_arrives_whole_in_both_directions(w):
    data = os.urandom(1 << 20) * 48
    with Job(w, "--publish", "7777:0") as job:
        got = talk(job.port, data)
    assert hashlib.sha256(got).digest() == hashlib.sha256(data + b"the end").digest(), len(got)


@live_test
def many_clients_at_once_each_get_their_own(w):
    """More than are served at once: the others wait."""
    wrong = []

    def one(n):
        data = b"%d " % n * 2000
        if talk(job.port, data) != data + b"the end":
            wrong.append(n)

    with Job(w, "--publish", "7777:0") as job:
        held = [socket.create_connection(("127.0.0.1", job.port), 60) for _ in range(300)]
        threads = [threading.Thread(target=one, args=(n,)) for n in range(40)]
        for t in threads:
            t.start()
        for c in held:
            c.close()
        for t in threads:
            t.join()
    assert not wrong, wrong


@live_test
def what_a_server_says_before_its_run_ends_still_arrives(w):
    process = start(w, "--publish", "7777:0", "--", *server("once"))
    said = process.stderr.readline()
    port = int(PUBLISHED.match(said)[2])
    assert process.stdout.readline() == b"listening\n"
    assert len(talk(port, b"")) == 8 * MIB
    assert process.wait() == 0 and refused(port)


@live_test
def the_servers_people_use(w):
    (w.project / "page.txt").write_text("a page\n")
    command = ("/usr/bin/python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "8000")
    process = start(w, "--publish", "8000:0", "--", *command)
    port = int(PUBLISHED.match(process.stderr.readline())[2])
    process.stdout.readline()
    try:
        for _ in range(20):
            h = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            h.request("GET", "/page.txt")
            assert h.getresponse().read() == b"a page\n"
            h.close()
    finally:
        process.terminate()
        process.wait()
    if not shutil.which("node"):
        return
    script = ("require('http').createServer((q, a) => a.end('node ' + q.url))"
              ".listen(5173, 'localhost', () => console.log('listening'))")
    with Job(w, "--publish", "5173:0", command=("node", "-e", script)) as job:
        h = http.client.HTTPConnection("localhost", job.port, timeout=60)
        for n in range(20):  # on one connection
            h.request("GET", f"/{n}")
            assert h.getresponse().read() == b"node /%d" % n


@live_test
def beside_a_list_of_hosts(w):
    with Job(w, "--publish", "7777:0", "--net", "example.org:443") as job:
        assert talk(job.port, b"both") == b"boththe end"
        assert job.run["net"] == "example.org:443", job.run


@live_test
def a_port_below_1024_of_the_run_needs_no_privilege(w):
    with Job(w, "--publish", "80:0", command=server(port=80)) as job:
        assert talk(job.port, b"low") == b"lowthe end"


# --- what snap says -----------------------------------------------------------------------------

@live_test
def the_address_is_printed_first_and_quiet_prints_none(w):
    got = w.ok("run", "-p", "7777:0", "--", "sh", "-c", "echo out; echo err >&2")
    lines = [line for line in got.err.splitlines() if not line.startswith(b"warning: memory")]
    assert got.out == b"out\n" and PUBLISHED.match(lines[0]) and lines[1] == b"err", got.err
    got = w.ok("-q", "run", "-p", "7777:0", "--", "true")
    assert not PUBLISHED.search(got.err), got.err
    got = w.ok("run", "--detach", "-p", "7777:0", "--", "true")
    assert PUBLISHED.search(got.err), got.err
    w.ok("wait", got.out.decode().strip())


@live_test
def a_port_that_is_taken_is_told_with_what_to_type(w):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        got = w.snap("run", "--mem", "100M", "--publish", f"{port}", "--", "touch", "ran")
        assert got.status == 125, got
        assert f"port {port} of this machine is taken" in got.err.decode(), got.err
        line = f"hint: {Path(SNAP).name} run --publish {port}:0 --mem 100M -- touch ran"
        assert line in got.err.decode(), got.err
        got = w.snap("run", "--json", "--detach", "-p", f"80:{port}", "--", "true").json(
            "snap.error/1", status=125)
        assert got["error"]["hints"][0].endswith("run --publish 80:0 --json --detach -- true"), got
    w.ok("run", "--publish", f"{port}", "--", "true")  # the control


@live_test
def nonsense_is_refused_before_anything_is_done(w):
    for text in ("", "0", "x", "1:", ":1", "65536", "1:65536", "1:2:3", "-1", "1,", ",1", " 1",
                 "1 ", "+1", "000001", "1:1,2:1"):
        got = w.snap("run", f"--publish={text}", "--", "true")
        assert got.status == 2 and b"option '--publish'" in got.err, (text, got.err)
    got = w.snap("run", "--net", "host", "--publish", "80:0", "--", "true")
    assert got.status == 2 and b"'--net host'" in got.err, got
    assert b"no runs yet" in w.ok("runs").out


# --- walls --------------------------------------------------------------------------------------

@live_test
def nothing_in_the_run_reaches_this_machine_through_it(w):
    """The control is that the test itself gets there."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        got = run(w, "--publish", f"{port + 1 if port < 65535 else 1024}:0", "--",
                  "/usr/bin/python3", "-I", "-c",
                  "import socket\n"
                  f"for a in ('127.0.0.1', '::1'):\n"
                  f"    try: socket.create_connection((a, {port}), 5); print('reached')\n"
                  "    except OSError as e: print(e.errno)")
        assert got["stdout"].split() == ["111", "111"], got
        socket.create_connection(("127.0.0.1", port), 5).close()
        s.settimeout(5)
        s.accept()


def children(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@live_test
def without_its_door_a_run_goes_on_and_its_clients_are_refused(w):
    """A run cannot end its door where Landlock guards signals; from outside it can be ended."""
    clone(w)
    process = start(w, "-p", "7777:0", "try", "--", "bash", "-c",
                    "read x; kill -9 -1; echo still here; read x", stdin=subprocess.PIPE)
    port = int(PUBLISHED.match(process.stderr.readline())[2])
    process.stdin.write(b"\n")
    assert process.stdout.readline() == b"still here\n"
    init, = children(process.pid)
    if len(children(init)) == 2:
        os.kill(children(init)[0], signal.SIGKILL)
    until(lambda: refused(port))
    process.stdin.write(b"\n")
    assert process.wait() == 0


@live_test
def killing_who_runs_it_ends_it(w):
    process = start(w, "-p", "7777:0", "--", *server())
    port = int(PUBLISHED.match(process.stderr.readline())[2])
    process.stdout.readline()
    with socket.create_connection(("127.0.0.1", port), 60) as c:
        c.sendall(b"x")
        assert c.recv(1) == b"x"
        process.kill()
        process.wait()
        try:
            assert c.recv(1) == b""
        except ConnectionResetError:
            pass
    assert refused(port)


if __name__ == "__main__":
    sys.exit(livetest.main())
