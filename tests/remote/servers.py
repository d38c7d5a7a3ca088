"""Servers on loopback for tests of remotes: docker's registry, a token server, and a proxy that fails on order."""

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

CONFIG = """\
version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: {root}}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:{port}"}}
{auth}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Daemon:
    """A server of its own process in a directory of the test's; a subclass has name, words(), where, address and port."""

    name, address, process = None, "127.0.0.1", None

    def start(self):
        with open(self.where / "log", "ab") as log:
            self.process = subprocess.Popen(self.words(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        for _ in range(2400):
            try:
                socket.create_connection((self.address, self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not start: " + (self.where / "log").read_text()[-500:])

    def stop(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


class Registry(Daemon):
    """docker-registry in a directory of the test's; auth is a piece of its configuration."""

    name = "docker-registry"

    def __init__(self, where, auth=""):
        self.where, self.port = Path(where), free_port()
        self.where.mkdir(exist_ok=True)
        self.file = self.where / "config.yml"
        self.file.write_text(CONFIG.format(root=self.where / "data", port=self.port, auth=auth))
        self.start()

    def words(self):
        return ["docker-registry", "serve", str(self.file)]


class Server:
    """An HTTP server in a thread; `self.seen` lists (method, path, headers) of the requests."""

    def __init__(self, tls=None):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def serve(self):
                outer.seen.append((self.command, self.path, dict(self.headers)))
                try:
                    outer.answer(self)
                except (ConnectionError, BrokenPipeError, ssl.SSLError, http.client.HTTPException):
                    self.close_connection = True

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = serve

            def log_message(self, *_):
                pass

            def body(self):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def say(self, status, body=b"", **headers):
                if isinstance(body, (dict, list)):
                    body = json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    for one in value if isinstance(value, list) else [value]:
                        self.send_header(name.replace("_", "-"), one)
                if "Content_Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        self.seen, self.tls = [], tls
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # clients leave as they like
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, request):
        raise NotImplementedError

    def asked(self, method, pattern="."):
        return [s for s in self.seen if s[0] == method and re.search(pattern, s[1])]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class Fake(Server):
    """Answers what a function of the test says."""

    def __init__(self, fn, tls=None):
        self.fn = fn
        super().__init__(tls)

    def answer(self, request):
        body = request.body()
        self.fn(request, body)


class Fault:
    """What the proxy does wrong with requests of a method and a path, so many times."""

    def __init__(self, method, path, kind, at=0, times=1, **more):
        self.method, self.path, self.kind, self.at, self.times, self.more = method, path, kind, at, times, more


class Proxy(Server):
    """Hands requests on to a registry. `self.faults` are used up in their order."""

    def __init__(self, port, *faults, tls=None):
        self.backend, self.faults, self.lock = port, list(faults), threading.Lock()
        super().__init__(tls)

    def take_fault(self, request):
        with self.lock:
            for f in self.faults:
                if f.times > 0 and f.method == request.command and re.search(f.path, request.path):
                    f.times -= 1
                    return f
        return Fault("", "", "none")

    def answer(self, request):
        fault = self.take_fault(request)
        if fault.kind == "status":
            request.body()
            request.say(fault.at, b"{}", **fault.more)
            return
        if fault.kind == "call":
            fault.more["fn"]()
        if fault.kind == "close":
            request.close_connection = True
            return
        back = http.client.HTTPConnection("127.0.0.1", self.backend, timeout=30)
        try:
            self.hand_on(request, fault, back)
        finally:
            back.close()

    def hand_on(self, request, fault, back):
        length = int(request.headers.get("Content-Length") or 0)
        back.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            if name.lower() != "range" or fault.kind != "no-range":
                back.putheader(name, value)
        if self.tls:
            back.putheader("X-Forwarded-Proto", "https")
        back.endheaders()
        sent = 0
        while sent < length:
            if fault.kind == "cut-request" and sent >= fault.at:
                request.close_connection = True
                return
            piece = request.rfile.read(min(65536, length - sent))
            if not piece:
                break
            back.send(piece)
            sent += len(piece)
        self.hand_back(request, fault, back.getresponse())

    def hand_back(self, request, fault, answer):
        if fault.kind == "lose-answer":
            answer.read()
            request.close_connection = True
            return
        size = int(answer.headers.get("Content-Length") or 0)
        request.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() == "content-length" and fault.kind == "lie":
                value = str(fault.at)
            if name.lower() not in ("transfer-encoding", "connection"):
                request.send_header(name, value)
        request.end_headers()
        if request.command == "HEAD":
            return
        sent = 0
        while sent < size:
            if fault.kind in ("cut-answer", "stall", "lie") and sent >= fault.at:
                break
            most = fault.at - sent if fault.kind in ("cut-answer", "stall", "lie") else size
            piece = bytearray(answer.read(min(65536, size - sent, most)))
            if fault.kind == "wrong" and sent <= fault.at < sent + len(piece):
                piece[fault.at - sent] ^= 1
            request.wfile.write(piece)
            sent += len(piece)
        if fault.kind == "stall":
            request.wfile.flush()
            request.connection.recv(1)  # until the client has had enough
        if fault.kind in ("cut-answer", "stall"):
            request.close_connection = True


class Tunnel:
    """A proxy for CONNECT: every name leads to one port."""

    def __init__(self, port):
        self.to, self.names = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(4096)
            if not more:
                return
            head += more
        self.names.append(head.split()[1].decode())
        back = socket.create_connection(("127.0.0.1", self.to))
        client.sendall(b"HTTP/1.1 200 yes\r\n\r\n")
        for a, b in ((client, back), (back, client)):
            threading.Thread(target=self.copy, args=(a, b), daemon=True).start()

    @staticmethod
    def copy(a, b):
        try:
            while True:
                piece = a.recv(65536)
                if not piece:
                    break
                b.sendall(piece)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def make_certificate(where, name):
    """A certificate of its own for a name: (certificate, key)."""
    cert, key = Path(where) / f"{name}.crt", Path(where) / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(cert)],
                   check=True, capture_output=True)
    return str(cert), str(key)


class Tokens(Server):
    """A token server as docker's specification has it. `users` are names and passwords; `self.given` counts."""

    def __init__(self, where, users, refresh=None):
        self.cert, self.key = make_certificate(where, "tokens")
        self.users, self.refresh, self.given, self.lifetime = users, refresh, [], 300
        super().__init__()
        self.auth = ("auth: {token: {realm: \"http://127.0.0.1:%d/token\", service: snaps, issuer: tests, "
                     "rootcertbundle: \"%s\"}}" % (self.port, self.cert))

    def answer(self, request):
        body = request.body().decode()
        query = parse_qs(body if request.command == "POST" else urlsplit(request.path).query)
        login = request.headers.get("Authorization")
        user = None
        if request.command == "POST":
            user = "refresh" if query.get("refresh_token") == [self.refresh] else None
            if not user:
                return request.say(401, {"details": "no"})
        elif login:
            user, _, secret = base64.b64decode(login.split()[1]).decode().partition(":")
            if self.users.get(user) != secret:
                return request.say(401, {"details": "incorrect username or password"})
        token = self.sign(user, [s for one in query.get("scope", []) for s in one.split()])
        self.given.append((user, query.get("scope", [])))
        request.say(200, {"token": token, "expires_in": self.lifetime})

    def sign(self, user, scopes):
        access = []
        for scope in scopes:
            kind, name, actions = scope.split(":")
            allowed = [a for a in actions.split(",") if user or a == "pull"]
            access.append({"type": kind, "name": name, "actions": allowed})
        now = int(time.time())
        der = base64.b64encode(ssl.PEM_cert_to_DER_cert(Path(self.cert).read_text())).decode()
        head = {"typ": "JWT", "alg": "RS256", "x5c": [der]}
        claims = {"iss": "tests", "sub": user or "", "aud": "snaps", "exp": now + self.lifetime, "nbf": now - 60,
                  "iat": now, "jti": os.urandom(8).hex(), "access": access}
        text = ".".join(self.encode(json.dumps(part).encode()) for part in (head, claims))
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(),
                                check=True, capture_output=True).stdout
        return text + "." + self.encode(signed)

    @staticmethod
    def encode(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def missing(*tools):
    """Which of them this machine lacks, as a reason to skip; None: none."""
    lacking = [t for t in tools if not shutil.which(t)]
    return f"'{lacking[0]}' is not installed" if lacking else None
