"""A small internet in network namespaces of our own: servers, names, and a way to a run.

The namespace of the process that calls build() is the outside: it has a name server on its
loopback and a cable to another namespace in which the servers are. Nothing of it touches a
network of the machine. run() starts a command in a third one, through netbox.
"""

import hashlib
import http.server
import json
import os
import signal
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

NETBOX = os.environ.get("SNAP_NETBOX", "")
NOBODY = 65534
SERVER, OTHER, OWN = "93.184.216.34", "93.184.216.35", "93.184.216.1"
SERVER6, PRIVATE, CGNAT = "2606:2800:220::34", "10.9.9.9", "100.64.9.9"

# Name -> addresses, one list for each time it is asked; the last one stays.
NAMES = {
    "ok.example": [[SERVER]],
    "other.example": [[OTHER]],
    "sub.wild.example": [[SERVER]],
    "wild.example": [[SERVER]],
    "six.example": [[SERVER6]],
    "mixed.example": [["10.0.0.1", SERVER]],
    "loop.example": [["127.0.0.1"]],
    "ten.example": [[PRIVATE]],
    "cgnat.example": [[CGNAT]],
    "meta.example": [["169.254.169.254"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "ula.example": [["fd00::1"]],
    "zero.example": [["0.0.0.0"]],
    "own.example": [[OWN]],
    "rebind.example": [[SERVER], ["127.0.0.1"]],
    "dead.example": [["93.184.216.99", SERVER]],
}
ASKED = []
MUTE = {"mute.example"}


# --- servers, in a namespace of their own ---------------------------------------------------

class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_TRACE(self):
        self.reply(b"traced " + (self.headers["Authorization"] or "nothing").encode())

    def do_GET(self):
        if self.path.startswith("/echo"):
            # In two pieces, so that what is repeated is cut in the middle.
            body = f"auth={self.headers['Authorization']} key={self.headers['X-Key']} ".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repeats", str(self.headers["Authorization"]))
            self.end_headers()
            for piece in (body[:20], body[20:]):
                self.wfile.write(piece)
                self.wfile.flush()
            return
        if self.path.startswith("/login"):
            digest = hashlib.sha256(str(self.headers["Authorization"]).encode()).hexdigest()
            encoding = self.headers["Accept-Encoding"]
            n = len(self.headers.get_all("Authorization") or [])
            self.reply(f"{digest} {n} {encoding}".encode())
            return
        at = self.connection.getsockname()[0]
        self.reply(f"at={at} host={self.headers['Host']} path={self.path}\n".encode())

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(hashlib.sha256(body).hexdigest().encode())

    def log_message(self, *_):
        pass


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256
    address_family = socket.AF_INET6


class Sink(socketserver.BaseRequestHandler):
    """Reads to the end, then tells what it was and says as much again."""

    def handle(self):
        digest, n = hashlib.sha256(), 0
        while piece := self.request.recv(1 << 16):
            digest.update(piece)
            n += len(piece)
        self.request.sendall(digest.digest() + bytes(n))


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"hello\n")
        while piece := self.request.recv(1 << 16):
            self.request.sendall(piece)


class Upgrade(socketserver.BaseRequestHandler):
    """Agrees to another protocol, and then echoes."""

    def handle(self):
        self.request.recv(1 << 16)
        self.request.sendall(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n")
        while piece := self.request.recv(1 << 16):
            self.request.sendall(piece)


class Mute(socketserver.BaseRequestHandler):
    """Hears, and says nothing."""

    def handle(self):
        while self.request.recv(1 << 16):
            pass


class Flood(socketserver.BaseRequestHandler):
    """What looks like a handshake, without end."""

    def handle(self):
        self.request.recv(1 << 16)
        record = b"\x16\x03\x03\x40\x00" + b"\x02\xff\xff\xff" + bytes(16380)
        try:
            while True:
                self.request.sendall(record)
        except OSError:
            pass


class Raw(socketserver.BaseRequestHandler):
    """Says that it has heard, byte for byte: what came in TLS, to its first empty line."""

    def handle(self):
        heard = b""
        while b"\r\n\r\n" not in heard and (piece := self.request.recv(1 << 16)):
            heard += piece
        body = hashlib.sha256(heard).hexdigest().encode() + b" " + heard.hex().encode()
        # The end of the connection ends it, and nobody says that this is the end.
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + body)


def serve_tls(port, cert, handler):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert)

    class Server(Threads):
        # In the thread of the connection: a client that says nothing keeps nobody waiting.
        def finish_request(self, request, client_address):
            try:
                request = tls.wrap_socket(request, server_side=True)
            except OSError:
                return
            handler(request, client_address, self)
            try:
                request.unwrap()
            except (OSError, ValueError):
                pass

    threading.Thread(target=Server(("::", port), handler).serve_forever, daemon=True).start()


# Ports with TLS: what is special of the certificate.
TLS = {443: "good", 8443: "good", 8444: "expired", 8445: "selfsigned", 8446: "client"}
MUTE_PORT, FLOOD_PORT, RAW_PORT, UPGRADE_PORT = 8447, 8448, 8449, 8450


def serve(certs):
    """The servers, until stdin ends."""
    for port, handler in ((80, Web), (8080, Web), (7000, Sink), (7001, Echo), (7002, Upgrade)):
        server = Threads(("::", port), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    for port, kind in TLS.items():
        serve_tls(port, f"{certs}/{kind}.pem", Web)
    serve_tls(RAW_PORT, f"{certs}/good.pem", Raw)
    serve_tls(UPGRADE_PORT, f"{certs}/good.pem", Upgrade)
    for port, handler in ((MUTE_PORT, Mute), (FLOOD_PORT, Flood)):
        server = Threads(("::", port), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


# --- names, on the loopback outside ---------------------------------------------------------

def answer_names(sock):
    while True:
        query, who = sock.recvfrom(512)
        name, at = [], 12
        while query[at]:
            name.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, kind = ".".join(name).lower(), struct.unpack("!H", query[at + 1:at + 3])[0]
        if name in MUTE:
            continue
        lists = NAMES.get(name)
        addresses = lists[0] if lists else []
        records = []
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            if kind == (28 if family == socket.AF_INET6 else 1):
                packed = socket.inet_pton(family, address)
                records.append(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed)
        if kind == 28 and lists and len(lists) > 1:
            lists.pop(0)  # libc asks for A and then AAAA: both are one question
        ASKED.append(name)
        flags = 0x8180 if lists else 0x8183
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
        sock.sendto(head + query[12:at + 5] + b"".join(records), who)


# --- certificates ---------------------------------------------------------------------------

def make_certs(folder):
    """roots.pem, and for each kind of server a file with a key and a certificate."""
    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    sh(f"openssl req -x509 {key} -days 2 -subj '/CN=root of the tests' -keyout roots.key "
       "-out roots.pem 2>/dev/null", cwd=folder)
    for kind, days, usage in (("good", 2, "serverAuth"), ("expired", -1, "serverAuth"),
                              ("client", 2, "clientAuth")):
        (folder / "ext").write_text("subjectAltName=DNS:ok.example,DNS:other.example\n"
                                    f"extendedKeyUsage={usage}\n")
        sh(f"openssl req -new {key} -subj /CN=ok.example -keyout {kind}.pem -out csr 2>/dev/null && "
           f"openssl x509 -req -in csr -CA roots.pem -CAkey roots.key -set_serial {days + 9} "
           f"-days {days} -extfile ext -out {kind}.crt 2>/dev/null && cat {kind}.crt >> {kind}.pem",
           cwd=folder)
    sh(f"openssl req -x509 {key} -days 2 -subj /CN=ok.example -addext "
       "subjectAltName=DNS:ok.example -keyout selfsigned.pem -out c 2>/dev/null && "
       "cat c >> selfsigned.pem", cwd=folder)


# --- the whole ------------------------------------------------------------------------------

def sh(command, **more):
    subprocess.run(command, shell=True, check=True, **more)


class World:
    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="snap-net-"))
        self.resolv = self.dir / "resolv.conf"
        self.resolv.write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
        hosts = self.dir / "hosts"
        hosts.write_text("127.0.0.1 localhost\n")
        nsswitch = self.dir / "nsswitch.conf"
        nsswitch.write_text("hosts: files dns\n")
        sh("mount --make-rprivate /")
        for name in ("resolv.conf", "hosts", "nsswitch.conf"):
            sh(f"mount --bind {self.dir / name} /etc/{name}")
        sh("ip link set lo up")
        self.roots = self.dir / "roots.pem"
        make_certs(self.dir)
        self.servers = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-B", __file__, "--serve", self.dir],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pid = self.servers.pid
        assert self.servers.stdout.readline() == b"ready\n"
        inside = f"nsenter --net=/proc/{pid}/ns/net ip"
        sh(f"ip link add out0 type veth peer name in0 netns {pid} && {inside} link set lo up && "
           f"{inside} link set in0 up && ip link set out0 up && ip addr add {OWN}/24 dev out0 && "
           f"ip addr add 2606:2800:220::1/64 dev out0 nodad && "
           f"{inside} addr add {SERVER6}/64 dev in0 nodad && "
           f"ip route add {PRIVATE}/32 dev out0 && ip route add {CGNAT}/32 dev out0 && "
           f"{inside} route add default dev in0 2>/dev/null || true")
        for address in (f"{SERVER}/24", f"{OTHER}/24", f"{PRIVATE}/32", f"{CGNAT}/32"):
            sh(f"{inside} addr add {address} dev in0")
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.bind(("127.0.0.1", 53))
        threading.Thread(target=answer_names, args=(names,), daemon=True).start()
        # Something on the loopback outside that a run would like to have.
        secret = Threads(("::", 8080), Web)
        threading.Thread(target=secret.serve_forever, daemon=True).start()
        self.count = 0

    def close(self):
        self.servers.stdin.close()
        self.servers.wait(20)
        sh("umount /etc/resolv.conf /etc/hosts /etc/nsswitch.conf")
        sh(f"rm -rf {self.dir}")

    def run(self, net, command, *options, leaks=False, user=False):
        """A command inside: its status, what it printed, and the refusals.

        Looking for leaks takes seconds on some machines, so one test does it for all.
        """
        self.count += 1
        given = os.environ.get("ASAN_OPTIONS")
        asan = [given] if given else []
        asan += ["exitcode=99", f"detect_leaks={int(leaks)}"]
        events = self.dir / f"events-{self.count}"
        events.touch()
        who = []
        if user:
            os.chmod(self.dir, 0o755)
            os.chown(events, NOBODY, NOBODY)
            who = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        done = subprocess.run(
            [*who, NETBOX, "--net", net, "--events", events, "--resolv", self.resolv, *options, "--",
             *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=60, check=False, env={**os.environ, "ASAN_OPTIONS": ":".join(asan)})
        err = done.stderr.decode(errors="replace")
        assert "Sanitizer" not in err and "runtime error" not in err, err
        refusals = [json.loads(line) for line in events.read_text().splitlines()]
        return done.returncode, done.stdout.decode(errors="replace"), err, refusals


if __name__ == "__main__" and sys.argv[1:2] == ["--serve"]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.argv[2])
