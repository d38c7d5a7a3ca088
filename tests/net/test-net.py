"""The network of a run: what is listed works, everything else is refused and told.

Each denial has a control: the same act on something that is listed, or outside. The acts are
the functions named act_*: they run inside, as processes of their own, and print JSON.
"""

import hashlib
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import time
import traceback

from world import ASKED, FLOOD_PORT, MUTE_PORT, OTHER, OWN, PRIVATE, SERVER, World

PROXY = ("127.0.0.1", 3128)
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


class Skip(Exception):
    """Why a test cannot be run here."""


# --- inside ---------------------------------------------------------------------------------

class Conn:
    """A socket that can be read by the head and by the byte."""

    def __init__(self):
        self.s, self.held = socket.create_connection(PROXY, timeout=30), b""

    def say(self, text):
        self.s.sendall(text if isinstance(text, bytes) else
                       text.encode().decode("unicode_escape").encode("latin-1"))

    def more(self):
        try:
            piece = self.s.recv(1 << 16)
        except ConnectionResetError:
            piece = b""
        self.held += piece
        return bool(piece)

    def take(self, n):
        while len(self.held) < n and self.more():
            pass
        got, self.held = self.held[:n], self.held[n:]
        return got

    def head(self):
        while b"\r\n\r\n" not in self.held and self.more():
            pass
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        return head.decode(errors="replace")

    def answer(self):
        """The first line of an HTTP answer, its body read and dropped; "" if there is none."""
        head = self.head()
        for line in head.lower().split("\r\n"):
            if line.startswith("content-length:"):
                self.take(int(line.split(":")[1]))
        return head.split("\r\n")[0]

    def rest(self):
        pieces = [self.held]
        while True:
            try:
                piece = self.s.recv(1 << 16)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


def tunnel(target):
    c = Conn()
    c.say(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    return c, c.head().split("\r\n")[0]


def opened(target):
    c, head = tunnel(target)
    assert " 200 " in head, head
    return c


def socks(address, port):
    """`address`: bytes of the request from the address type on; gives the code of the reply."""
    c = Conn()
    c.say(b"\5\1\0")
    assert c.take(2) == b"\5\0"
    c.say(b"\5\1\0" + address + int(port).to_bytes(2, "big"))
    return c.take(10)[1]


def act_connect(target):
    return tunnel(target)[1]


def act_raw(text):
    """Says it, and gives all that comes back."""
    c = Conn()
    c.say(text)
    c.s.shutdown(socket.SHUT_WR)
    return c.rest().decode(errors="replace")


def act_socks(host, port):
    return socks(b"\3" + bytes([len(host)]) + host.encode(), port)


def act_socks_v4(host, port):
    return socks(b"\1" + socket.inet_aton(host), port)


def act_socks_v6(host, port):
    return socks(b"\4" + socket.inet_pton(socket.AF_INET6, host), port)


def act_twice(*urls):
    """Requests on one connection, each when the one before is answered."""
    c, got = Conn(), []
    for url in urls:
        c.say(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        got.append(c.answer())
    return got


def act_pipelined(*urls):
    c = Conn()
    c.say("".join(f"GET {u} HTTP/1.1\r\nHost: x\r\n\r\n" for u in urls).encode())
    c.s.shutdown(socket.SHUT_WR)
    return c.rest().decode()


def act_raw_in(target, text):
    """Says it through CONNECT at once, and gives all that comes back."""
    c, head = tunnel(target)
    if " 200 " not in head:
        return head
    c.say(text)
    c.s.shutdown(socket.SHUT_WR)
    return c.rest().decode(errors="replace")


def act_in_tunnel(target, *requests):
    """Plain HTTP through CONNECT, one request after the other."""
    c, got = opened(target), []
    for request in requests:
        c.say(request)
        got.append(c.answer())
    return got


def act_tls(target, sni, *how):
    """A TLS connection through CONNECT that may name another host, or come in pieces."""
    c = opened(target)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "pieces" in how:
        out = ssl.MemoryBIO()
        try:
            context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=sni).do_handshake()
        except ssl.SSLWantReadError:
            pass
        record = out.read()
        body = record[5:]
        # One byte of hello in the first record, the rest in another, sent in crumbs.
        cut = (record[:3] + b"\0\1" + body[:1] + record[:3] +
               (len(body) - 1).to_bytes(2, "big") + body[1:])
        for i in range(0, len(cut), 50):
            c.say(cut[i:i + 50])
        return "answered" if c.take(1) == b"\x16" else "closed"
    try:
        t = context.wrap_socket(c.s, server_hostname=sni or None)
        t.sendall(b"GET / HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n")
        return "answered" if b"200 OK" in t.recv(4096) else "odd"
    except (OSError, ssl.SSLError):
        return "closed"


def act_large(target, size):
    """As many bytes both ways, the end said by closing one half."""
    c, size, digest = opened(target), int(size), hashlib.sha256()
    block = os.urandom(1 << 16)
    for _ in range(size >> 16):
        c.say(block)
        digest.update(block)
    c.s.shutdown(socket.SHUT_WR)
    got = c.rest()
    return [got[:32] == digest.digest(), len(got) - 32]


def act_many(target, n):
    """All connections at once, then a word through each of them."""
    conns = [opened(target) for _ in range(int(n))]
    for i, c in enumerate(conns):
        c.say(b"%d\n" % i)
    return sum(c.take(len(b"hello\n%d\n" % i)) == b"hello\n%d\n" % i
               for i, c in enumerate(conns))


def act_hold(target, n):
    """What each of so many connections gets while the others are there."""
    held = [tunnel(target) for _ in range(int(n))]
    return [head for _, head in held]


def act_each(*targets):
    """What the proxy says to each, one after the other."""
    return [tunnel(target)[1] for target in targets]


def act_slow(target, text):
    """Begins to say something and never ends; who is right closes it."""
    c = opened(target) if target else Conn()
    c.say(text)
    return c.rest().decode(errors="replace")


def act_inspected(target, text, pad="0"):
    """TLS with whoever it is, and what is heard of it; "" if there is none."""
    c = opened(target)
    tls = ssl._create_unverified_context()
    # A hello of any size: as many protocols as it takes.
    if int(pad):
        tls.set_alpn_protocols(["%0250d" % i for i in range(int(pad) // 250)] + ["http/1.1"])
    heard = b""
    try:
        t = tls.wrap_socket(c.s, server_hostname=target.split(":")[0])
        t.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
        while piece := t.recv(1 << 16):
            heard += piece
    except OSError:
        pass
    return heard.decode(errors="replace")


def act_hello(target):
    """The first words of TLS and no more; the bytes that are heard until the other side ends it."""
    c, out = opened(target), ssl.MemoryBIO()
    t = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), out,
                                                  server_hostname=target.split(":")[0])
    try:
        t.do_handshake()
    except ssl.SSLWantReadError:
        c.say(out.read())
    return len(c.rest())


def act_upgrade(target, honest):
    c = opened(target)
    c.say(b"GET / HTTP/1.1\r\nHost: ok.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
          + (b"" if honest == "yes" else b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"))
    first = c.answer()
    if honest != "yes":
        return [first, c.rest().decode(errors="replace")]
    c.say(b"\x00\x01 any bytes")
    return [first, c.take(12).decode()]


def act_resolve(name):
    try:
        return sorted({a[4][0] for a in socket.getaddrinfo(name, 80)})
    except socket.gaierror as e:
        return e.args[0] == socket.EAI_NONAME


def act_dns_tcp(name):
    query = b"\x12\x34\1\0\0\1\0\0\0\0\0\0"
    query += b"".join(bytes([len(x)]) + x.encode() for x in name.split(".")) + b"\0\0\1\0\1"
    s = socket.create_connection(("127.0.0.1", 53), timeout=10)
    s.sendall(len(query).to_bytes(2, "big") + query)
    n = int.from_bytes(s.recv(2), "big")
    got = s.recv(n)
    return [got[3] & 15, socket.inet_ntoa(got[-4:])]


def act_direct(host, port):
    """A program that knows of no proxy."""
    with socket.create_connection((host, int(port)), timeout=10) as s:
        s.sendall(f"GET /direct HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return s.makefile().read().splitlines()[-1]


def act_outside(host, port):
    """Straight to an address, past the bridge."""
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
        return "connected"
    except OSError as e:
        return type(e).__name__


def act_nonsense(*messages):
    """Speaks to the proxy itself, as a bridge that somebody took over would."""
    s = socket.socket(fileno=3)
    got = []
    for message in messages:
        try:
            s.send(bytes.fromhex(message))
            select.select([s], [], [], 5)
            got.append(s.recv(600)[1])
        except (OSError, IndexError):
            got.append(-1)
    return got


# --- tests ----------------------------------------------------------------------------------

def act(w, net, name, *args, options=()):
    """What an act gave, and the rules by which it was refused."""
    status, out, err, refusals = w.run(
        net, [sys.executable, "-B", __file__, "--act", name, *map(str, args)], *options)
    assert status == 0, f"{name} {args}: {status}\n{out}\n{err}"
    return json.loads(out), refusals


def rules(refusals):
    return [r["rule"] for r in refusals]


@test
def a_listed_name_works_through_connect_socks_and_plain_http(w):
    for command in (["curl", "-sS", "http://ok.example/a"],
                    ["curl", "-sS", "-p", "http://ok.example/a"],
                    ["curl", "-sS", "--proxy", "socks5h://127.0.0.1:3128", "http://ok.example/a"]):
        status, out, err, refusals = w.run("ok.example:80", command, leaks="-p" in command)
        assert (status, out) == (0, f"at=::ffff:{SERVER} host=ok.example path=/a\n"), (out, err)
        assert refusals == []
    status, out, err, refusals = w.run("ok.example:443",
                                       ["curl", "-sS", "-k", "https://ok.example/s"])
    assert "path=/s" in out and refusals == [], (out, err)


@test
def an_ordinary_user_has_the_same_network(w):
    status, out, err, refusals = w.run("ok.example:80", [
        "sh", "-c", "curl -sS http://ok.example/u && curl -sS http://other.example/"], user=True)
    if status == 125 and "unshare" in err:
        raise Skip("this machine gives an ordinary user no namespaces")
    assert f"at=::ffff:{SERVER} host=ok.example path=/u" in out, (status, out, err)
    assert rules(refusals) == ["host"], refusals


@test
def programs_that_know_no_proxy_work_by_name(w):
    got, refusals = act(w, "ok.example:80", "direct", "ok.example", 80)
    assert got == f"at=::ffff:{SERVER} host=ok.example path=/direct" and not refusals, got
    status, out, err, _ = w.run("ok.example:443", [
        "env", "-u", "https_proxy", "curl", "-sS", "-k", "https://ok.example/s"])
    assert "path=/s" in out, err


@test
def an_ipv6_server_is_reached_by_its_name(w):
    got, refusals = act(w, "six.example:80", "connect", "six.example:80")
    assert " 200 " in got and not refusals


@test
def what_is_sent_is_counted_over_all_connections_and_bounded(w):
    post = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} ", "--data-binary",
            "x" * 3000, "http://ok.example/"]
    both = ["sh", "-c", '"$@"; "$@"', "sh", *post]
    status, out, err, refusals = w.run("ok.example:80", both, "--net-out", "5000")
    assert out == "200 403 " and rules(refusals) == ["bytes"], (status, out, err, refusals)
    assert refusals[0]["flag"] == "--net-out 10000", refusals
    assert "may send no more than 4.9 KiB" in refusals[0]["sentence"], refusals
    status, out, err, refusals = w.run("ok.example:80", both, "--net-out", "10000")
    assert out == "200 200 " and not refusals, (out, err, refusals)  # the control


@test
def no_byte_goes_beyond_the_limit(w):
    # A protocol that is not read: what was sent before arrives, and the connection ends.
    for size, n in ((1 << 20, 1 << 20), ((1 << 20) - 1, None)):
        status, out, err, refusals = w.run(
            "ok.example:7000/tcp", [sys.executable, "-B", __file__, "--act", "large",
                                    "ok.example:7000", str(1 << 20)],
            "--net-out", str(size + len("ok.example")))
        if n:
            assert json.loads(out) == [True, n] and not refusals, (out, err, refusals)
        else:
            assert rules(refusals) == ["bytes"] and "[true" not in out, (out, err, refusals)


@test
def names_that_are_looked_up_count(w):
    # Each leaves the machine, and would carry what its labels say to whoever has the domain.
    names = [f"{'x' * 50}{i}.wild.example" for i in range(5)]
    got, refusals = act(w, "*.wild.example:80", "each", *[f"{n}:80" for n in names],
                        options=("--net-out", "200B"))
    assert [" 502 " in head for head in got] == [True] * 3 + [False] * 2, got
    assert rules(refusals) == ["bytes"] * 2, refusals
    got, refusals = act(w, "*.wild.example:80", "each", *[f"{n}:80" for n in names])
    assert all(" 502 " in head for head in got) and not refusals, got  # the control


@test
def a_limit_that_is_reached_leaves_room_for_nothing(w):
    got, refusals = act(w, "ok.example:80,other.example:80", "each", "ok.example:80",
                        "other.example:80", options=("--net-out", "10B"))
    assert " 200 " in got[0] and " 403 " in got[1] and rules(refusals) == ["bytes"], got


@test
def a_rule_tells_requests_apart(w):
    net = "GET http://ok.example/pub/*"
    for way in ([], ["-p"], ["--proxy", "socks5h://127.0.0.1:3128"], ["--noproxy", "*"]):
        curl = ["curl", "-sS", "-w", "%{http_code}", *way]
        status, out, err, refusals = w.run(net, [*curl, "http://ok.example/pub/x?y=1"])
        assert out.endswith("path=/pub/x?y=1\n200") and not refusals, (way, out, err, refusals)
        status, out, err, refusals = w.run(net, [*curl, "-d", "data", "http://ok.example/pub/x"])
        assert out == "snap: 'ok.example:80': the request 'POST /pub/x' is not allowed\n403", (way, out)
        assert rules(refusals) == ["request"], refusals
        assert refusals[0]["flag"] == "--net 'POST http://ok.example/pub/x'", refusals
    status, out, err, refusals = w.run(net, ["curl", "-sS", "http://ok.example/private"])
    assert "is not allowed" in out and rules(refusals) == ["request"], (out, refusals)
    # The control: what the refusal offers allows it.
    status, out, err, refusals = w.run(f"{net},GET http://ok.example/private",
                                       ["curl", "-sS", "http://ok.example/private"])
    assert "path=/private" in out and not refusals, (out, refusals)


@test
def every_request_of_a_connection_is_judged_by_the_rule(w):
    net = "GET http://ok.example/pub/*"
    good, bad = ("GET /pub/%s HTTP/1.1\\r\\nHost: ok.example\\r\\n\\r\\n",
                 "GET /private HTTP/1.1\\r\\nHost: ok.example\\r\\n\\r\\n")
    got, refusals = act(w, net, "in_tunnel", "ok.example:80", good % 1, good % 2, bad, good % 3)
    assert [head.split()[1:2] for head in got] == [["200"], ["200"], ["403"], []], got
    assert rules(refusals) == ["request"], refusals
    # At once: the answers to those before come first, and what follows is not heard.
    got, refusals = act(w, net, "raw_in", "ok.example:80", good % 1 + good % 2 + bad + good % 3)
    codes = [line.split()[1] for line in got.splitlines() if line.startswith("HTTP/1.1")]
    assert codes == ["200", "200", "403"] and "path=/pub/2" in got and "path=/pub/3" not in got, got
    # A body that is as large as it likes is not waited for.
    got, refusals = act(w, net, "raw_in", "ok.example:80",
                        "PUT /pub/x HTTP/1.1\\r\\nHost: ok.example\\r\\nContent-Length: 9999999"
                        "\\r\\n\\r\\n" + "x" * 9000)
    assert got.startswith("HTTP/1.1 403") and rules(refusals) == ["request"], got


@test
def a_rule_for_requests_lets_nothing_else_pass(w):
    net = "GET http://ok.example:443/*"
    got, refusals = act(w, net, "tls", "ok.example:443", "ok.example")
    assert got == "closed" and rules(refusals) == ["request"], (got, refusals)
    assert "TLS" in refusals[0]["sentence"] and refusals[0]["flag"] == "", refusals
    got, refusals = act(w, "ok.example:443", "tls", "ok.example:443", "ok.example")
    assert got == "answered" and not refusals  # the control
    got, refusals = act(w, "GET http://ok.example:7002/*", "upgrade", "ok.example:7002", "yes")
    assert "403" in got[0] and rules(refusals) == ["request"], got
    got, refusals = act(w, "GET http://ok.example:7001/*", "raw_in", "ok.example:7001", "x\\r\\n")
    assert "x" not in got and rules(refusals) == ["protocol"], (got, refusals)


@test
def a_rule_for_requests_holds_for_an_address(w):
    net = f"GET http://{PRIVATE}/pub/*"
    fetch = f"curl -sS -o /dev/null -w '%{{http_code}} ' http://{PRIVATE}/"
    status, out, err, refusals = w.run(net, ["sh", "-c", f"{fetch}pub/x; {fetch}other"])
    assert out == "200 403 " and rules(refusals) == ["request"], (out, err, refusals)


@test
def names_are_compared_without_case_and_last_dot(w):
    for target in ("OK.Example:80", "ok.example.:80"):
        got, _ = act(w, "ok.example:80", "connect", target)
        assert " 200 " in got, (target, got)


@test
def a_wildcard_covers_what_is_below_and_not_itself(w):
    got, _ = act(w, "*.wild.example:80", "connect", "sub.wild.example:80")
    assert " 200 " in got
    for target in ("wild.example:80", "notwild.example:80"):
        got, refusals = act(w, "*.wild.example:80", "connect", target)
        assert " 403 " in got and rules(refusals) == ["host"]


@test
def an_unlisted_name_is_refused_by_every_way(w):
    status, out, _, refusals = w.run("ok.example:80", ["curl", "-sS", "http://other.example/"])
    assert "not in the list" in out and rules(refusals) == ["host"]
    assert refusals[0]["host"] == "other.example" and refusals[0]["port"] == 80
    assert refusals[0]["flag"] == "--net other.example:80"
    got, refusals = act(w, "ok.example:80", "connect", "other.example:80")
    assert " 403 " in got and rules(refusals) == ["host"]
    got, refusals = act(w, "ok.example:80", "socks", "other.example", 80)
    assert got == 2 and rules(refusals) == ["host"]
    # The control: the flag that the event names allows it.
    got, refusals = act(w, "ok.example:80,other.example:80", "connect", "other.example:80")
    assert " 200 " in got and not refusals


@test
def another_port_of_a_listed_host_is_refused(w):
    got, refusals = act(w, "ok.example:80", "connect", "ok.example:8080")
    assert " 403 " in got and rules(refusals) == ["port"]
    assert refusals[0]["flag"] == "--net ok.example:8080"
    got, _ = act(w, "ok.example:80-8080", "connect", "ok.example:8080")
    assert " 200 " in got


@test
def a_literal_address_is_refused_unless_listed(w):
    got, refusals = act(w, "ok.example:80", "connect", f"{SERVER}:80")
    assert " 403 " in got and rules(refusals) == ["literal"]
    assert refusals[0]["flag"] == f"--net {SERVER}:80"
    got, refusals = act(w, "ok.example:80", "socks_v4", SERVER, 80)
    assert got == 2 and rules(refusals) == ["literal"]
    got, refusals = act(w, "ok.example:80", "socks_v6", f"::ffff:{SERVER}", 80)
    assert got == 2 and rules(refusals) == ["literal"]
    got, refusals = act(w, f"{SERVER}:80", "socks_v4", SERVER, 80)
    assert got == 0 and not refusals
    for odd in ("0x5db8d822:80", "1572395042:80", "93.12113954:80", "0135.0270.0330.042:80"):
        got, refusals = act(w, f"ok.example:80,{SERVER}:80", "connect", odd)
        assert " 403 " in got and rules(refusals) == ["name"], (odd, got, refusals)


@test
def a_name_that_leads_to_a_closed_address_is_refused(w):
    for name in ("loop", "ten", "cgnat", "meta", "mapped", "ula", "zero"):
        got, refusals = act(w, f"{name}.example:8080", "connect", f"{name}.example:8080")
        assert " 403 " in got and rules(refusals) == ["address"], (name, got, refusals)
    # The control: listed with its address it is reached, so it was there.
    got, refusals = act(w, f"ten.example:8080,{PRIVATE}:8080", "connect", "ten.example:8080")
    assert " 200 " in got and not refusals
    got, refusals = act(w, "loop.example:8080,127.0.0.1:8080", "connect", "loop.example:8080")
    assert " 200 " in got and not refusals


@test
def a_name_that_leads_to_this_machine_is_refused(w):
    got, refusals = act(w, "own.example:8080", "connect", "own.example:8080")
    assert " 403 " in got and rules(refusals) == ["self"], (got, refusals)
    assert refusals[0]["flag"] == "", "nobody is advised to open this machine"
    got, _ = act(w, f"own.example:8080,{OWN}:8080", "connect", "own.example:8080")
    assert " 200 " in got


@test
def of_several_addresses_only_the_open_ones_are_tried(w):
    got, refusals = act(w, "mixed.example:80", "connect", "mixed.example:80")
    assert " 200 " in got and not refusals
    got, refusals = act(w, "dead.example:80", "connect", "dead.example:80")
    assert " 200 " in got and not refusals


@test
def a_name_keeps_the_addresses_it_had_first(w):
    before = ASKED.count("rebind.example")
    got, refusals = act(w, "rebind.example:80", "hold", "rebind.example:80", 3)
    assert all(" 200 " in head for head in got) and not refusals, (got, refusals)
    got, refusals = act(w, "rebind.example:80", "connect", "rebind.example:80")
    # A new run asks anew, and now the answer is the loopback of the host.
    assert " 403 " in got and rules(refusals) == ["address"], (got, refusals)
    assert ASKED.count("rebind.example") - before == 4, "A and AAAA, once for each run"


@test
def a_name_that_leads_nowhere_is_no_refusal(w):
    got, refusals = act(w, "gone.example:80", "connect", "gone.example:80")
    assert " 502 " in got and not refusals, (got, refusals)
    got, refusals = act(w, "ok.example:81", "connect", "ok.example:81")
    assert " 502 " in got and not refusals, got


@test
def a_lookup_that_takes_for_ever_is_given_up(w):
    got, refusals = act(w, "mute.example:80", "connect", "mute.example:80",
                        options=("--lookup", "200ms"))
    assert " 502 " in got and not refusals


@test
def a_second_host_on_one_connection_is_asked_for_anew(w):
    got, refusals = act(w, "ok.example:80", "twice", "http://ok.example/", "http://other.example/")
    assert got == ["HTTP/1.1 200 OK", "HTTP/1.1 403 Forbidden"], got
    assert rules(refusals) == ["host"]
    got, refusals = act(w, "ok.example:80,other.example:80", "twice", "http://ok.example/",
                        "http://other.example/")
    assert got == ["HTTP/1.1 200 OK"] * 2 and not refusals, got
    got, refusals = act(w, "ok.example:80", "twice", "http://ok.example/",
                        "http://ok.example:8080/")
    assert got[1] == "HTTP/1.1 403 Forbidden" and rules(refusals) == ["port"]


@test
def pipelined_requests_each_reach_their_own_host(w):
    got, _ = act(w, "ok.example:80,other.example:80", "pipelined", "http://ok.example/1",
                 "http://other.example/2")
    assert got.index(f"at=::ffff:{SERVER} host=ok.example path=/1") < \
        got.index(f"at=::ffff:{OTHER} host=other.example path=/2"), got
    got, refusals = act(w, "ok.example:80", "pipelined", "http://ok.example/1",
                        "http://evil.example/2")
    assert "path=/1" in got and "403 Forbidden" in got and rules(refusals) == ["host"], got


@test
def the_host_header_follows_the_address_of_the_request(w):
    got, _ = act(w, "ok.example:80", "raw",
                 r"GET http://ok.example/x HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert "host=ok.example path=/x" in got, got


@test
def bodies_of_both_kinds_arrive_whole(w):
    data = w.dir / "data"
    data.write_bytes(os.urandom(3 << 20))
    want = hashlib.sha256(data.read_bytes()).hexdigest()
    for more in ([], ["-H", "Transfer-Encoding: chunked"]):
        _, out, err, _ = w.run("ok.example:80", [
            "curl", "-sS", *more, "--data-binary", f"@{data}", "http://ok.example/"])
        assert out == want, (out, err)


@test
def a_request_inside_a_tunnel_must_be_for_its_host(w):
    ok = r"GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n"
    for bad in (r"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                r"GET http://evil.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n",
                r"CONNECT evil.example:443 HTTP/1.1\r\nHost: ok.example\r\n\r\n",
                r"GET / HTTP/1.1\r\nHost: ok.example\r\nHost: evil.example\r\n\r\n",
                r"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        for requests in ([bad], [ok, ok, bad]):
            got, refusals = act(w, "ok.example:80", "in_tunnel", "ok.example:80", *requests)
            assert got[-1] == "" and rules(refusals) == ["http"], (bad, got, refusals)
            assert all("200 OK" in g for g in got[:-1]), got


@test
def what_a_server_may_read_as_a_request_is_judged_as_one(w):
    """The server of this test reads all of them but the last; each is for a host that is not listed."""
    evil = r"Host: evil.example\r\n\r\n"
    for bad in (r"GET  / HTTP/1.1\r\n" + evil, r"\r\nGET / HTTP/1.1\r\n" + evil,
                r"GET /\tHTTP/1.1\r\n" + evil, r"GET / HTTP/1.1\n" + evil,
                r"PROPFIND / HTTP/1.1\r\n" + evil, r"QUERY / HTTP/1.1\r\n" + evil,
                r"SEARCH / HTTP/1.1\r\n" + evil, r"PURGE / HTTP/1.1\r\n" + evil,
                r"GET / HTTP/1.1\r\n\r\n", r"CONNECT ok.example:80 HTTP/1.1\r\nHost: ok.example\r\n\r\n"):
        got, refusals = act(w, "ok.example:80", "in_tunnel", "ok.example:80", bad)
        assert got[-1] == "" and rules(refusals) == ["http"], (bad, got, refusals)
        assert refusals[0]["flag"] == "", refusals
    got, refusals = act(w, "ok.example:80", "in_tunnel", "ok.example:80",
                        r"GET  / HTTP/1.1\r\nHost: ok.example\r\n\r\n")
    assert got == [""] and rules(refusals) == ["http"], "nor when it is for a listed one"
    # The control: a server does read them, where nobody judges.
    got, refusals = act(w, "ok.example:80/tcp", "in_tunnel", "ok.example:80",
                        r"GET  / HTTP/1.1\r\n" + evil)
    assert "200 OK" in got[0] and not refusals, got


@test
def what_is_neither_tls_nor_http_needs_a_rule_that_says_so(w):
    for port, text in ((7001, r"\x00\x00\x00\x08\x04\xd2\x16\x2f"), (7001, "PING\\r\\n"),
                       (7001, r"\x80\x2e\x01\x03\x01")):
        target = f"ok.example:{port}"
        got, refusals = act(w, target, "slow", target, text)
        assert rules(refusals) == ["protocol"], (text, got, refusals)
        assert got in ("", "hello\n"), "its own words may be faster, or not; ours never come back"
        assert refusals[0]["flag"] == f"--net {target}/tcp", refusals
        assert "neither TLS nor HTTP" in refusals[0]["sentence"], refusals


@test
def tls_must_ask_for_the_host_of_its_tunnel(w):
    for how in ([], ["pieces"]):
        got, refusals = act(w, "ok.example:443", "tls", "ok.example:443", "ok.example", *how)
        assert got == "answered" and not refusals, (how, got, refusals)
        got, refusals = act(w, "ok.example:443", "tls", "ok.example:443", "evil.example", *how)
        assert got == "closed" and rules(refusals) == ["sni"], (how, got, refusals)
        assert "evil.example" in refusals[0]["sentence"]
    got, refusals = act(w, "ok.example:443", "tls", "ok.example:443", "")
    assert got == "answered" and not refusals


@test
def another_protocol_after_an_upgrade_passes_if_the_server_agreed(w):
    got, refusals = act(w, "ok.example:7002", "upgrade", "ok.example:7002", "yes")
    assert got == ["HTTP/1.1 101 Switching", "\x00\x01 any bytes"] and not refusals, got
    # A server that does not agree reads the next request, and so do we.
    got, refusals = act(w, "ok.example:80", "upgrade", "ok.example:80", "no")
    assert got[0] == "HTTP/1.1 200 OK" and rules(refusals) == ["http"], (got, refusals)
    assert "evil.example" not in got[1]


@test
def tricks_with_the_address_are_refused(w):
    net = "ok.example:80"
    for target in ("ok.example@other.example:80", "ok.example/..other.example:80", "ok.example%00.other.example:80",
                   "[::ffff:127.0.0.1]:80", "ok_.example\\x00:80", "-ok.example:80"):
        got, refusals = act(w, net, "connect", target)
        assert " 403 " in got or " 400 " in got, (target, got)
        assert rules(refusals) in (["name"], ["host"], ["literal"]), (target, refusals)
    for target in ("ok.example", "ok.example:", "ok.example:99999", ":80", "ok.example:80x",
                   "other.example#ok.example:80"):
        got, _ = act(w, net, "connect", target)
        assert " 400 " in got, (target, got)
    got, refusals = act(w, net, "raw", r"GET http://ok.example@other.example/ HTTP/1.1\r\n\r\n")
    assert "403" in got and rules(refusals) == ["name"]


@test
def malformed_requests_are_refused(w):
    for text in (r"GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n",
                 r"GET https://ok.example/ HTTP/1.1\r\n\r\n",
                 r"GET http://ok.example/ HTTP/1.1\nHost: ok.example\n\n",
                 r"GET http://ok.example/ HTTP/1.1\r\nA : b\r\n\r\n",
                 r"GET http://ok.example/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
                 r"POST http://ok.example/ HTTP/1.1\r\nContent-Length: 1\r\n"
                 r"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 r"POST http://ok.example/ HTTP/1.1\r\nContent-Length: 1\r\n"
                 r"Content-Length: 2\r\n\r\nxx",
                 r"POST http://ok.example/ HTTP/1.1\r\nTransfer-Encoding: chunked, x\r\n\r\n",
                 r"GET http://ok.example/ HTTP/1.1\r\nX: " + "y" * 20000 + r"\r\n\r\n",
                 r"\x16\x03\x01 is no request"):
        got, refusals = act(w, "ok.example:80", "raw", text)
        assert got.startswith("HTTP/1.1 400 "), (text[:80], got)
        assert refusals == []


@test
def socks_with_other_commands_or_a_password_only_is_refused(w):
    got, _ = act(w, "ok.example:80", "raw", r"\x05\x01\x02")
    assert got == "\x05\ufffd", got
    got, _ = act(w, "ok.example:80", "raw", r"\x05\x01\x00\x05\x02\x00\x01\x01\x02\x03\x04\x00\x50")
    assert got.startswith("\x05\x00\x05\x07"), got


@test
def who_says_nothing_whole_is_closed(w):
    for text in (r"GET http://ok.example/ HTTP/1.1\r\nX: y", r"\x05", r"G"):
        got, _ = act(w, "ok.example:80", "slow", "", text, options=("--head", "300ms"))
        assert got == "", got
    got, _ = act(w, "ok.example:7001", "slow", "ok.example:7001", r"\x16\x03\x01\x02\x00\x01",
                 options=("--hello", "300ms"))
    assert got == "hello\n", got


def inspected(w, port, *args, name="inspected", time="30s"):
    place = f"ok.example:{port}"
    return act(w, place, name, place, *args, options=(
        "--tls-inspect", place, "--roots", w.roots, "--hello", time))


@test
def handshakes_of_inspected_hosts_are_bounded(w):
    get = r"GET /x HTTP/1.1\r\nHost: ok.example\r\nConnection: close\r\n\r\n"
    got, refusals = inspected(w, 443, get)
    assert "path=/x" in got and refusals == [], (got, refusals)  # the control
    # A program that says half a hello, a whole one and no more, or a very long one.
    got, _ = inspected(w, 443, r"\x16\x03\x01\x02\x00\x01", name="slow", time="300ms")
    assert got == "", got
    got, refusals = inspected(w, 443, name="hello", time="300ms")
    assert got > 100 and rules(refusals) == ["tls"], (got, refusals)
    assert "took too long" in refusals[0]["sentence"], refusals
    got, refusals = inspected(w, 443, get, 14000)
    assert "path=/x" in got and refusals == [], (got, refusals)
    got, refusals = inspected(w, 443, get, 20000)
    assert got == "" and rules(refusals) == ["sni"], (got, refusals)
    # A server that says nothing, and one that does not end.
    got, refusals = inspected(w, MUTE_PORT, get, time="300ms")
    assert " 403 " in got and "took too long" in got and rules(refusals) == ["certificate"], got
    got, refusals = inspected(w, FLOOD_PORT, get)
    assert " 403 " in got and rules(refusals) == ["certificate"], (got, refusals)


@test
def a_server_that_speaks_first_is_heard(w):
    got, _ = act(w, "ok.example:7001/tcp", "many", "ok.example:7001", 1)
    assert got == 1


@test
def large_transfers_and_a_half_closed_connection_arrive_whole(w):
    got, refusals = act(w, "ok.example:7000/tcp", "large", "ok.example:7000", 64 << 20)
    assert got == [True, 64 << 20] and not refusals, got


@test
def a_hundred_connections_at_once_are_served(w):
    got, refusals = act(w, "ok.example:7001/tcp", "many", "ok.example:7001", 100)
    assert got == 100 and not refusals


@test
def one_connection_too_many_is_refused(w):
    got, refusals = act(w, "ok.example:7001", "hold", "ok.example:7001", 3,
                        options=("--connections", "3"))
    assert " 200 " in got[-1] and not refusals
    got, refusals = act(w, "ok.example:7001", "hold", "ok.example:7001", 4,
                        options=("--connections", "3"))
    assert " 403 " in got[-1] and rules(refusals) == ["limit"], (got, refusals)


@test
def names_that_are_not_listed_do_not_exist_inside(w):
    got, refusals = act(w, "ok.example:80", "resolve", "ok.example")
    assert got == ["127.64.0.1"] and not refusals, got
    got, refusals = act(w, "ok.example:80", "resolve", "other.example")
    assert got is True and set(rules(refusals)) == {"host"}, (got, refusals)
    assert refusals[0]["port"] == 0 and refusals[0]["flag"] == "--net other.example:PORT"
    got, _ = act(w, "ok.example:80", "dns_tcp", "ok.example")
    assert got == [0, "127.64.0.1"], got
    got, refusals = act(w, "ok.example:80", "dns_tcp", "exfil.data.other.example")
    assert got[0] == 3 and rules(refusals) == ["host"]


@test
def there_is_no_way_past_the_bridge(w):
    for host, port in ((SERVER, 80), (OWN, 8080), (PRIVATE, 80)):
        got, _ = act(w, "ok.example:80", "outside", host, port)
        assert got == "OSError", got
        socket.create_connection((host, port), timeout=5).close()  # the control
    got, _ = act(w, "ok.example:80", "outside", "127.0.0.1", 8080)
    assert got == "ConnectionRefusedError"
    socket.create_connection(("127.0.0.1", 8080), timeout=5).close()


@test
def a_bridge_that_lies_gets_no_further(w):
    def ask(host, port=80, kind=1, version=1):
        return (bytes([version, kind]) + port.to_bytes(2, "little") + b"\1\0\0\0" + host).hex()

    got, refusals = act(w, "ok.example:80", "nonsense", ask(b"other.example"), ask(b"127.0.0.1"),
                        ask(b"ok.example", 81), ask(b"a\0b"), options=("--raw",))
    assert got == [1] * 4 and rules(refusals) == ["host", "literal", "port", "name"], refusals
    got, _ = act(w, "ok.example:80", "nonsense", ask(b"ok.example"), options=("--raw",))
    assert got == [0]
    for bad in (ask(b"x", version=2), ask(b"x", kind=9), ask(b""), ask(b"x" * 256), "00",
                ask(b"x", 5, 2)):
        got, _ = act(w, "ok.example:80", "nonsense", bad, ask(b"ok.example"), options=("--raw",))
        assert got[1] == -1, "after nonsense there is nothing more"


# --- running --------------------------------------------------------------------------------

def lacking():
    if os.geteuid() != 0:
        return "making network namespaces with a cable between them takes root"
    for tool in ("ip", "unshare", "nsenter", "openssl", "curl"):
        if subprocess.run(["which", tool], stdout=subprocess.DEVNULL, check=False).returncode:
            return f"'{tool}' is not installed"
    return None


def main():
    if sys.argv[1:2] == ["--act"]:
        print(json.dumps(globals()[f"act_{sys.argv[2]}"](*sys.argv[3:])))
        return 0
    if why := lacking():
        if os.environ.get("SNAP_TESTS_NO_SKIP"):
            print(f"1..1\nnot ok 1 - net # {why}")
            return 1
        print(f"1..0 # SKIP {why}")
        return 0
    if sys.argv[1:2] != ["--outside"]:
        return subprocess.run(["unshare", "--net", "--mount", sys.executable, "-B", __file__,
                               "--outside", *sys.argv[1:]], check=False).returncode
    wanted = [t for t in TESTS if not sys.argv[2:] or t.__name__ in sys.argv[2:]]
    print(f"1..{len(wanted)}")
    world, failed = World(), 0
    for i, fn in enumerate(wanted, 1):
        started = time.monotonic()
        try:
            fn(world)
            print(f"ok {i} - {fn.__name__}")
        except Skip as skip:
            failed += bool(os.environ.get("SNAP_TESTS_NO_SKIP"))
            print(f"ok {i} - {fn.__name__} # SKIP {skip}")
        except Exception:  # every way to fail is a failed test, and the next one is run
            failed += 1
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "))
            print(f"not ok {i} - {fn.__name__}")
        print(f"# {time.monotonic() - started:.1f} s", flush=True)
    world.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
