"""What the judge lets pass, read by real servers: they see requests for the allowed host only.

Requests of many shapes are cut, mixed and damaged from a fixed seed, and all of them are shown to
the judge. What it lets pass goes to a server of Node.js, as strict and as lenient as that can be,
to nginx, and to the server of Python: none may see another host, or more requests than there are.
"""

import http.server
import io
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIFT = os.environ["SNAP_SIFT"]
HOST = b"ok.example"
SAMPLES = 8000
SENT = 400  # connections to a server of its own; the judge and Python see all

NODE = r"""
const http = require("http");
const lenient = process.argv[1] === "lenient";
let n = 0;
const server = http.createServer({ insecureHTTPParser: lenient, requireHostHeader: false },
  (req, res) => {
    const hosts = [];
    for (let i = 0; i < req.rawHeaders.length; i += 2)
      if (req.rawHeaders[i].toLowerCase() === "host") hosts.push(req.rawHeaders[i + 1]);
    req.socket.seen.push({ hosts, url: req.url, method: req.method });
    req.resume();
    req.on("end", () => res.end("x"));
  });
server.on("connection", s => {
  s.seen = [];
  s.on("close", () => console.log(JSON.stringify(s.seen)));
});
server.on("upgrade", (req, s) => { s.seen.push({ hosts: [req.headers.host], url: req.url, method: req.method }); s.end(); });
server.on("connect", (req, s) => { s.seen.push({ hosts: ["CONNECT"], url: req.url, method: "CONNECT" }); s.end(); });
server.on("clientError", (e, s) => s.destroy());
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
"""

# One line for each request; $connection counts them from 1 on.
NGINX = """
daemon off;
master_process off;
pid {top}/pid;
error_log {top}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {top}/body;
  proxy_temp_path {top}/proxy;
  fastcgi_temp_path {top}/fastcgi;
  uwsgi_temp_path {top}/uwsgi;
  scgi_temp_path {top}/scgi;
  log_format seen escape=json '{{"connection": "$connection", "hosts": ["$http_host"], "host": "$host", '
                              '"url": "$request_uri", "method": "$request_method", "status": $status}}';
  server {{
    listen unix:{top}/socket;
    access_log {top}/seen seen;
    underscores_in_headers on;
    location / {{ return 200 x; }}
  }}
}}
"""


# --- what clients say -------------------------------------------------------------------------

METHODS = [b"GET", b"POST", b"PROPFIND", b"QUERY", b"SEARCH", b"PURGE", b"get", b"X", b"OPTIONS",
           b"CONNECT", b"G\x00T", b"", b"HEAD", b"M-SEARCH"]
TARGETS = [b"/", b"/a?b", b"*", b"http://ok.example/", b"http://evil.example/", b"//evil.example/",
           b"evil.example:80", b"/\xc3\xa9", b"", b"HTTP://evil.example", b"http://ok.example@evil.example/",
           b"/a b", b"https://evil.example/"]
VERSIONS = [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"http/1.1", b"HTTP/2.0", b"", b"HTTP/01.1", b"ICE/1.0"]
GAPS = [b" ", b" ", b" ", b" ", b"  ", b"\t", b" \t", b"\x0b", b"\r", b""]
ENDS = [b"\r\n"] * 12 + [b"\n", b"\r", b"\r\r\n", b"\n\r"]
HEADERS = [b"Host: ok.example", b"Host: evil.example", b"host:ok.example", b"Host : evil.example",
           b" Host: evil.example", b"Host: ok.example:80", b"Host: ok.example, evil.example",
           b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: 40", b"Content-Length: +5",
           b"Content-Length: 5, 5", b"Content-Length:", b"Content-Length : 5", b"content-length: 0x5",
           b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked", b"Transfer-Encoding: gzip, chunked",
           b"Transfer-Encoding: identity", b"Transfer-Encoding : chunked", b"Transfer-Encoding:\x0bchunked",
           b"Transfer_Encoding: chunked", b"X: y", b"X: y\r\n Host: evil.example", b"X: \x00",
           b"Upgrade: h2c", b"Upgrade: websocket", b"Connection: upgrade", b"Connection: close",
           b"Expect: 100-continue", b"Connection: Host, Content-Length", b"X-Host: evil.example", b":", b"X"]
BODIES = [b"", b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"0\r\n\r\n", b"5;a=b\r\nhello\r\n0\r\nHost: evil.example\r\n\r\n",
          b"5\nhello\n0\n\n", b"00005\r\nhello\r\n0\r\n\r\n", b"5 \r\nhello\r\n0\r\n\r\n",
          b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"]


def request(rng):
    if rng.random() < 0.5:  # one that is right but for one thing, at most
        lines = [b"%s %s HTTP/1.1" % (rng.choice([b"GET", b"POST", b"PURGE", b"QUERY"]),
                                      rng.choice([b"/", b"/x", b"http://ok.example/y"])), b"Host: ok.example"]
        lines += rng.choice([[], [], [rng.choice(HEADERS)], [rng.choice(HEADERS), rng.choice(HEADERS)]])
        rng.shuffle(lines[1:])
        return b"\r\n".join(lines) + b"\r\n\r\n" + rng.choice(BODIES)
    line = rng.choice(METHODS) + rng.choice(GAPS) + rng.choice(TARGETS) + rng.choice(GAPS) + rng.choice(VERSIONS)
    text = rng.choice([b"", b"", b"", b"\r\n", b"\n", b" "]) + line + rng.choice(ENDS)
    for _ in range(rng.randrange(5)):
        text += rng.choice(HEADERS) + rng.choice(ENDS)
    return text + rng.choice(ENDS) + rng.choice(BODIES)


def sample(rng):
    text = b"".join(request(rng) for _ in range(rng.randrange(1, 4)))
    if rng.random() < 0.3:
        at = rng.randrange(len(text) or 1)
        text = text[:at] + bytes([rng.choice(b"\x00\r\n\t :;,\x0b\x80\xffG")]) + text[at + rng.randrange(2):]
    return text


def sift(samples):
    given = b"".join(struct.pack("<I", len(s)) + s for s in samples)
    done = subprocess.run([SIFT], input=given, stdout=subprocess.PIPE, timeout=120, check=True)
    out, at = [], 0
    while at < len(done.stdout):
        (n,) = struct.unpack_from("<I", done.stdout, at)
        out.append(done.stdout[at + 4:at + 4 + n])
        at += 4 + n
    assert len(out) == len(samples)
    return out


# --- how servers read it ----------------------------------------------------------------------

class Python(http.server.BaseHTTPRequestHandler):
    """The server of the standard library, reading from memory."""

    protocol_version = "HTTP/1.1"

    def __init__(self, text):
        self.rfile, self.wfile, self.seen = io.BytesIO(text), io.BytesIO(), []
        self.client_address, self.close_connection = ("", 0), False
        while not self.close_connection:
            self.handle_one_request()

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.take
        raise AttributeError(name)

    def take(self):
        self.seen.append({"hosts": self.headers.get_all("Host") or [], "url": self.path,
                          "method": self.command})
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
                self.rfile.read(size + 2)
            while self.rfile.readline().strip():
                pass
        else:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def log_message(self, *_):
        pass


def say(server, text):
    """And read until it ends."""
    server.sendall(text)
    server.shutdown(socket.SHUT_WR)
    try:
        while server.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass


def node(texts, how):
    with subprocess.Popen(["node", "-e", NODE, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as server:
        port, seen = int(server.stdout.readline()), []
        for text in texts:
            with socket.create_connection(("127.0.0.1", port), timeout=20) as s:
                say(s, text)
            seen.append(json.loads(server.stdout.readline()))
        server.stdin.close()
    return seen


def nginx_started(top):
    (top / "conf").write_text(NGINX.format(top=top))
    server = subprocess.Popen(["nginx", "-p", str(top), "-c", str(top / "conf"), "-e", str(top / "error.log")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (top / "socket").exists():
        assert server.poll() is None and time.monotonic() < end, server.communicate()[1]
        time.sleep(0.01)
    return server


def nginx(texts):
    """A request that it refuses is one that it has not seen, and the last of its connection."""
    with tempfile.TemporaryDirectory(prefix="snap-differ-") as name:
        top = Path(name)
        server = nginx_started(top)
        try:
            for text in texts:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(20)
                    s.connect(str(top / "socket"))
                    say(s, text)
        finally:
            server.terminate()
            server.communicate(timeout=60)
        seen = [[] for _ in texts]
        for line in (top / "seen").read_text("latin-1").split("\n")[:-1]:
            one = json.loads(line)
            # What it goes by, which the request line may say.
            if one["host"].encode("latin-1") != HOST:
                one["hosts"] = [one["host"]]
            if one["status"] == 200:
                seen[int(one["connection"]) - 1].append(one)
        assert sum(map(len, seen)) >= len(texts) // 2, "it sees hardly any"
        return seen


def wrong(seen):
    """The first request that is not for the allowed host."""
    for one in seen:
        hosts = [h.encode("latin-1").strip().lower().split(b":")[0].rstrip(b".") for h in one["hosts"]]
        url = one["url"].lower()
        if hosts != [HOST] or one["method"].upper() == "CONNECT":
            return one
        if not url.startswith(("/", "http://ok.example", "https://ok.example")) and url != "*":
            return one
    return None


def check(who, texts, seen):
    for text, requests in zip(texts, seen):
        assert not wrong(requests), f"{who} sees {wrong(requests)} in {text!r}"


def main():
    rng = random.Random(1806)
    samples = [sample(rng) for _ in range(SAMPLES)]
    passed = sorted({p for p in sift(samples) if p})
    some = rng.sample(passed, min(SENT, len(passed)))
    tests = [("python", None, lambda: [Python(t).seen for t in passed], passed)]
    tests += [(f"node, {how}", "node", lambda how=how: node(some, how), some) for how in ("strict", "lenient")]
    tests += [("nginx", "nginx", lambda: nginx(some), some)]
    print(f"1..{len(tests) + 1}")
    # The control: what was not let pass does hold requests for others.
    stray = sum(bool(wrong(Python(s).seen)) for s in samples[:500] if b"\x00" not in s and safe(s))
    ok = len(passed) > 300 and stray > 20
    print(f"# {len(passed)} of {SAMPLES} pass in part; of 500 unjudged ones {stray} reach another host")
    print(f"{'ok' if ok else 'not ok'} 1 - enough_passes_and_enough_would_not")
    failed = not ok
    for i, (who, program, read, texts) in enumerate(tests, 2):
        title = f"{who.replace(', ', '_')}_sees_the_allowed_host_only"
        if program and not shutil.which(program):
            failed |= bool(os.environ.get("SNAP_TESTS_NO_SKIP"))
            print(f"ok {i} - {title} # SKIP there is no {program}")
            continue
        try:
            check(who, texts, read())
            print(f"ok {i} - {title}")
        except AssertionError as e:
            failed = True
            print(f"# {e}\nnot ok {i} - {who}")
    return int(failed)


def safe(text):
    """Python itself falls over some lengths."""
    try:
        Python(text)
        return True
    except (ValueError, AttributeError):
        return False


if __name__ == "__main__":
    sys.exit(main())
