"""run --tls-inspect HOST: TLS that the proxy ends, for secrets and rules by request.

The internet is that of tests/net, in a network namespace of this program's own, with servers whose
certificates are good, expired, for another name, by nobody, or not for servers. Each denial has a
control.
"""

import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nettest  # first: it says where the next ones are
import livetest
import world as internet
from livetest import live_test
from runtest import below, line_of, memory_of, run, sh, start
from snaptest import Skip, leak_checks

SECRET = "t0ken-that-nobody-sees"
OK = "ok.example:443"
INSPECT = ("--net", OK, "--tls-inspect", "ok.example")
FOR = (*INSPECT, "--secret-for", "https://ok.example=TOKEN")
ROOTS = None  # the file of this world's own, once there is one
PYTHON = ("/usr/bin/python3", "-I", "-c")


def given(**more):
    """What the caller's environment has: the roots by which servers are judged."""
    return {"SSL_CERT_FILE": str(ROOTS), "TOKEN": SECRET, **more}


def curl(*more):
    return " ".join(map(shlex.quote, ("curl", "-sS", "--max-time", "30", *more)))


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def hidden(w, act, *more, env=None, **how):
    """The result of a shell's lines, none of which, nor any record, tells the secret."""
    got = sh(w, act, *more, env=given(**(env or {})), **how)
    for path in (w.store / "runs").iterdir():
        assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in json.dumps(got), got
    return got


def talk(port, *pieces, ends=True):
    """A program that speaks TLS to ok.example in these pieces and prints what it hears."""
    wait = "" if ends else "import sys; sys.stdin.read()\n"
    return (*PYTHON, f"""
import encodings.idna, socket, ssl
t = ssl.create_default_context().wrap_socket(
    socket.create_connection(('ok.example', {port}), 30), server_hostname='ok.example')
print(t.version(), t.selected_alpn_protocol(), flush=True)
for piece in {pieces!r}: t.sendall(piece)
try:
    while piece := t.recv(65536): print(piece.decode('latin-1'), end='', flush=True)
except (ssl.SSLError, OSError) as e: print(type(e).__name__)
{wait}""")


# --- secrets ----------------------------------------------------------------------------------

@live_test
def a_host_with_tls_gets_a_secret_that_the_run_never_sees(w):
    login = curl("--compressed", "-H", "Authorization: mine", "https://ok.example/login")
    got = hidden(w, login, *FOR)
    assert got["stdout"] == f"{digest('Bearer ' + SECRET)} 1 identity", got
    assert got["secret_for"] == ["https://ok.example"], got
    assert got["tls_inspect"] == ["ok.example:443"] and "TOKEN" not in got["env"], got
    kept = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]
    assert kept["tls_inspect"] == ["ok.example:443"] and kept["secret_for"] == got["secret_for"], kept
    # The controls: without the secret, and without being inspected at all.
    got = hidden(w, login, *INSPECT)
    assert digest("mine") in got["stdout"], got
    got = hidden(w, f"{login} --cacert {ROOTS}", "--net", OK, "--ro", str(ROOTS))
    assert digest("mine") in got["stdout"] and got["tls_inspect"] == [], got


@live_test
def nothing_that_the_run_can_read_has_the_secret_or_a_key(w):
    look = ("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; "
            "grep -rlE 'PRIVATE KEY' /tmp /run $HOME /dev/shm 2>/dev/null; "
            "grep -c 'PRIVATE KEY' $SSL_CERT_FILE; grep -c 'BEGIN CERT' $SSL_CERT_FILE; "
            "echo x >> $SSL_CERT_FILE || echo closed")
    got = hidden(w, look, *FOR)
    assert got["stdout"].endswith("\n0\n2\nclosed\n"), got


def soft_core(pid):
    """How large a core file of it may be."""
    return re.search(r"Max core file size +(\S+)", Path(f"/proc/{pid}/limits").read_text())[1]


# How a key on P-256 is handed over: version 1, a number of some 32 bytes, the name of the curve.
KEY = re.compile(rb"\x02\x01\x01\x04([\x1f-\x21])(.{31,33})\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
                 re.DOTALL)


def keys_in(memory):
    return {found[2][-31:] for found in KEY.finditer(memory)}


@live_test
def no_process_of_the_run_has_secret_or_keys_in_its_memory(w):
    if os.geteuid() != 0:
        raise Skip("only root may look: neither the init nor the bridge can be traced")
    if livetest.SANITIZED:
        raise Skip("the sanitizer maps terabytes, and keeps what was freed")
    core = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (core[1], core[1]))
    process = start(w, *FOR, "--", "sh", "-c", f"{curl('https://ok.example/login')}; echo; read x",
                    stdin=-1, env={**w.env, **given()})
    resource.setrlimit(resource.RLIMIT_CORE, core)
    assert digest("Bearer " + SECRET).encode() in line_of(process)
    seen = {pid: memory_of(pid) for pid in below(process.pid)}
    outside = memory_of(process.pid)
    cores = [soft_core(pid) for pid in (process.pid, *below(process.pid)[1:])]  # [0] is the init
    process.communicate(timeout=60)
    # 1 byte: the kernel writes no file and, unlike at 0, starts no program that core_pattern names.
    assert set(cores) == {"1"}, cores
    assert len(seen) >= 3 and all(seen.values()), "the init, the bridge and the command"
    keys = keys_in(outside)
    assert SECRET.encode() in outside and len(keys) == 1, "the controls: one key, of the host"
    for what in (SECRET.encode(), *keys):
        assert not [pid for pid, text in seen.items() if what in text], what


@live_test
def a_server_that_repeats_a_secret_in_tls_tells_the_run_nothing(w):
    stars = "*" * len(SECRET)
    got = hidden(w, curl("-i", "https://ok.example/echo"), *FOR)
    assert f"auth=Bearer {stars} key=None" in got["stdout"], got
    assert f"X-Repeats: Bearer {stars}" in got["stdout"], got
    got = hidden(w, curl("-X", "TRACE", "https://ok.example/"), *FOR)
    assert "not allowed" in got["stdout"] and got["refusals"][0]["rule"] == "request", got


@live_test
def no_variable_makes_the_proxy_write_the_keys_of_its_connections(w):
    log = w.home / "keys"
    got = hidden(w, curl("https://ok.example/login"), *FOR, env={"SSLKEYLOGFILE": str(log)})
    assert digest("Bearer " + SECRET) in got["stdout"] and not log.exists(), got
    bad = w.home / "priority"
    bad.write_text("[overrides]\ndisabled-version = tls1.3\ndisabled-version = tls1.2\n")
    got = hidden(w, curl("https://ok.example/login"), *FOR, env={"GNUTLS_SYSTEM_PRIORITY_FILE": str(bad)})
    assert digest("Bearer " + SECRET) in got["stdout"], got


@live_test
def a_secret_for_tls_needs_the_word(w):
    def refused(*more):
        return w.snap("run", *more, "--", "true", env=given())

    secret = ("--secret-for", "https://ok.example=TOKEN")
    refused("--net", OK, *secret).fails(2, "--secret-for", "add '--tls-inspect ok.example'")
    refused("--net", "ok.example:80", *secret).fails(2, "--net ok.example:443")
    refused("--net", "GET https://ok.example/").fails(2, "--net", "--tls-inspect ok.example'")
    refused("--net", "https://ok.example:8443/").fails(2, "--tls-inspect ok.example:8443'")
    refused("--tls-inspect", "ok.example").fails(2, "--tls-inspect", "add '--net ok.example:443'")
    refused("--net", "host", "--tls-inspect", "ok.example").fails(2, "--tls-inspect")
    refused("--net", f"{OK}/tcp", "--tls-inspect", "ok.example").fails(2, "unread")
    refused(*INSPECT, "--secret-for", "http://ok.example:443=TOKEN").fails(2, "say 'https://")
    refused("--net", "*.ok.example:443", "--tls-inspect", "*.ok.example").fails(2, "--tls-inspect")
    for bad in ("93.184.216.34", "[::1]:443", "ok.example:1-9", "https://ok.example", "", ",",
                "ok.example/tcp", "ok.example:443/tcp"):
        refused("--net", OK, "--tls-inspect", bad).fails(2, "--tls-inspect")
    many = ",".join(f"h{i}.example" for i in range(17))
    refused("--net", OK, "--tls-inspect", many).fails(2, "more than 16")
    assert not w.store.exists(), "nothing of this makes a store"


@live_test
def without_roots_or_a_library_nothing_runs(w):
    bad = w.home / "roots"
    bad.write_bytes(b"nothing\0")
    for file, status, words in (("/no/such", 125, "/no/such"), (bad, 2, "no file of certificates")):
        w.snap("run", *INSPECT, "--", "true", env=given(SSL_CERT_FILE=str(file))).fails(
            status, "--tls-inspect", words)


# --- servers that are not to be believed ------------------------------------------------------

@live_test
def a_server_without_a_good_certificate_gets_nothing(w):
    for host, port, why in (("ok.example", 8444, "it has expired"),
                            ("ok.example", 8445, "its issuer is not known here"),
                            ("ok.example", 8446, "it is not for servers"),
                            ("wild.example", 443, "it is for another name"),
                            ("ok.example", 80, "")):
        place = f"{host}:{port}"
        got = hidden(w, curl("-w", "%{http_code}", f"https://{place}/login"), "--net", place,
                     "--tls-inspect", place, "--secret-for", f"https://{place}=TOKEN")
        assert got["stdout"].endswith("403") and why in got["stdout"], got
        one = got["refusals"][0]
        assert (one["what"], one["rule"], one["flag"]) == (place, "certificate", None), one
        assert f"--tls-inspect {host}" in one["message"] and why in one["message"], one
        assert got["net_sent"] == len(host), "a name was looked up, and nothing said there"
    told = w.snap("run", "--net", "ok.example:8444", "--tls-inspect", "ok.example:8444", "--", "curl",
                  "-s", "https://ok.example:8444/", env=given()).ends(0).err.decode()
    assert ("warning: 'ok.example:8444': TLS with the server failed (--tls-inspect ok.example): its "
            "certificate is refused: it has expired") in told.splitlines(), told
    # By the machine's own roots the world's are nobody's.
    got = sh(w, curl("https://ok.example/"), *INSPECT, env={"SSL_CERT_FILE": ""})
    assert "not known here" in got["stdout"], got
    got = hidden(w, curl("https://ok.example:8443/login"), "--net", "ok.example:8443",
                 "--tls-inspect", "ok.example:8443", "--secret-for", "https://ok.example:8443=TOKEN")
    assert digest("Bearer " + SECRET) in got["stdout"], got  # the control


@live_test
def an_answer_that_was_cut_off_looks_so(w):
    got = hidden(w, curl(f"https://ok.example:{internet.RAW_PORT}/x"), "--net",
                 f"ok.example:{internet.RAW_PORT}", "--tls-inspect",
                 f"ok.example:{internet.RAW_PORT}", status=None)
    assert got["exit_code"] in (18, 56), got


# --- programs ---------------------------------------------------------------------------------

@live_test
def other_hosts_are_not_inspected(w):
    show = (*PYTHON, "import encodings.idna, hashlib, ssl, socket\n"
            "for name in ('ok.example', 'other.example'):\n"
            "    c = ssl._create_unverified_context()\n"
            "    t = c.wrap_socket(socket.create_connection((name, 443), 30), server_hostname=name)\n"
            "    print(hashlib.sha256(t.getpeercert(True)).hexdigest())")
    real = subprocess.run(["openssl", "x509", "-in", f"{ROOTS.parent}/good.crt", "-outform", "DER"],
                          check=True, capture_output=True).stdout
    pin = hashlib.sha256(real).hexdigest()
    args = ("--net", f"{OK},other.example:443", "--tls-inspect", "ok.example", "--", *show)
    first, second = run(w, *args, env=given())["stdout"].split()
    assert first != pin and second == pin, (first, second, pin)
    again = run(w, *args, env=given())["stdout"].split()
    assert again[0] != first and again[1] == pin, "each run has its own"
    # What is made for one host is believed for no other.
    act = ("openssl s_client -connect ok.example:443 -servername ok.example -showcerts </dev/null "
           "2>/dev/null | openssl x509 -noout -ext subjectAltName,basicConstraints; "
           "tac $SSL_CERT_FILE | sed '/BEGIN/q' | tac > ca.pem; "
           "openssl x509 -in ca.pem -noout -ext nameConstraints,basicConstraints")
    got = sh(w, act, *INSPECT, env=given())
    assert "DNS:ok.example" in got["stdout"] and "other" not in got["stdout"], got
    assert "Permitted" in got["stdout"] and "CA:TRUE, pathlen:0" in got["stdout"], got


@live_test
def programs_believe_the_proxy_by_their_usual_variables(w):
    node = shutil.which("node")
    acts = [curl("https://ok.example/x"), curl("--noproxy", "*", "https://ok.example/x"),
            " ".join(map(shlex.quote, (*PYTHON, "import encodings.idna, urllib.request as u; "
                                       "print(u.urlopen('https://ok.example/x').read())")))]
    if node and not node.startswith("/root"):
        acts.append(f"{node} -e \"require('https').get('https://ok.example/x', r => "
                    "r.on('data', d => process.stdout.write(d)))\"")
    got = sh(w, " && ".join(acts), *INSPECT, env=given())
    assert got["stdout"].count("host=ok.example path=/x") == len(acts), got
    # The file of the machine is the same one, for whoever heeds no variable.
    got = sh(w, f"env -i /usr/bin/{curl('--cacert', '/etc/ssl/certs/ca-certificates.crt')} "
                "https://ok.example/x --noproxy '*'", *INSPECT, env=given())
    assert "path=/x" in got["stdout"], got
    got = sh(w, "echo $SSL_CERT_FILE", *INSPECT, "--env", "SSL_CERT_FILE=mine", env=given())
    assert got["stdout"] == "mine\n", "what is asked for comes last"
    names = {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
             "GIT_SSL_CAINFO"}
    assert names <= set(got["env"]), got["env"]
    plain = sh(w, "cat /etc/ssl/certs/ca-certificates.crt | sha256sum", "--net", OK, env=given())
    assert not names & set(plain["env"]), plain["env"]
    with open("/etc/ssl/certs/ca-certificates.crt", "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() in plain["stdout"], "and else it is untouched"


@live_test
def a_program_that_does_not_believe_is_told_of(w):
    got = sh(w, f"env -u SSL_CERT_FILE -u CURL_CA_BUNDLE {curl('--cacert', str(ROOTS))} "
                "https://ok.example/", *INSPECT, "--ro", str(ROOTS), env=given(), status=60)
    one = got["refusals"][0]
    assert one["rule"] == "tls" and "--tls-inspect ok.example" in one["message"], one
    assert "SSL_CERT_FILE" in one["message"], one


@live_test
def another_name_in_tls_is_refused(w):
    got = sh(w, curl("-k", "--connect-to", "other.example:443:ok.example:443",
                     "https://other.example/"), *INSPECT, env=given(), status=None)
    assert got["exit_code"] != 0 and got["refusals"][0]["rule"] == "sni", got
    got = hidden(w, curl("-H", "Host: other.example", "https://ok.example/echo"), *FOR, status=None)
    assert "Bearer" not in got["stdout"] and got["refusals"][0]["rule"] == "http", got


@live_test
def what_is_no_tls_is_refused_where_it_is_inspected(w):
    got = hidden(w, curl("http://ok.example:443/login"), *FOR, status=None)
    assert got["exit_code"] != 0 and got["refusals"][0]["rule"] == "tls", got
    assert "does not begin with TLS" in got["refusals"][0]["message"], got


# --- requests ---------------------------------------------------------------------------------

@live_test
def requests_in_tls_are_told_apart_by_method_and_path(w):
    code = ("-o", "/dev/null", "-w", "%{http_code} ")
    act = " ; ".join(curl(*code, *more) for more in (
        ("https://ok.example/pub/a",), ("-d", "x", "https://ok.example/pub/a"),
        ("https://ok.example/b",), ("--path-as-is", "https://ok.example/pub/../b"),
        ("-H", "X-HTTP-Method-Override: DELETE", "https://ok.example/pub/a"),
        ("-d", "x", "https://other.example/b", "-k")))
    rules = ("--net", "GET https://ok.example/pub/*,other.example:443", "--tls-inspect", "ok.example")
    got = sh(w, act, *rules, env=given())
    assert got["stdout"] == "200 403 403 403 403 200 ", got
    assert [(r["rule"], r["flag"]) for r in got["refusals"][:2]] == [
        ("request", "--net 'POST https://ok.example/pub/a'"),
        ("request", "--net 'GET https://ok.example/b'")], got["refusals"]
    got = sh(w, act, *rules, "--net", "POST https://ok.example/pub/a", env=given())
    assert got["stdout"] == "200 200 403 403 403 200 ", "and the hint is right"


@live_test
def each_request_of_a_connection_is_judged(w):
    def get(path):
        return f"GET {path} HTTP/1.1\r\nHost: ok.example\r\n\r\n".encode()

    rules = ("--net", "GET https://ok.example/pub/*", "--tls-inspect", "ok.example")
    # All in one piece, and in pieces that are cut anywhere.
    whole = get("/pub/1") + get("/pub/2") + get("/b") + get("/pub/3")
    for pieces in ((whole,), tuple(whole[i:i + 7] for i in range(0, len(whole), 7))):
        got = run(w, *rules, "--", *talk(443, *pieces), env=given())
        text = got["stdout"]
        assert text.startswith("TLSv1.3 ") and "path=/pub/1" in text and "path=/pub/2" in text, got
        assert "403 Forbidden" in text and text.index("/pub/2") < text.index("403"), got
        assert "path=/b" not in text and "path=/pub/3" not in text, got
        assert [r["rule"] for r in got["refusals"]] == ["request"], got
    two = curl("-w", "%{num_connects} ", "https://ok.example/pub/1", "https://ok.example/pub/2")
    got = sh(w, two, *rules, env=given())
    assert got["stdout"].endswith("path=/pub/2\n0 "), "the connection was kept"


@live_test
def another_protocol_in_tls_is_refused(w):
    for words in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"EHLO me\r\n", b"\x16\x03\x01\x00\x05hello",
                  b"GET / HTTP/1.1\nHost: ok.example\n\n", b"\0" * 100):
        got = run(w, *INSPECT, "--", *talk(443, words), env=given())
        assert "at=" not in got["stdout"] and [r["rule"] for r in got["refusals"]] == ["http"], got
        assert got["refusals"][0]["flag"] is None, got
    # One that insists on HTTP/2 hears it in the handshake.
    ask = "openssl s_client -connect ok.example:443 -alpn %s </dev/null 2>&1"
    got = sh(w, ask % "h2", *INSPECT, env=given(), status=None)
    assert "SSL alert number 120" in got["stdout"] and got["refusals"][0]["rule"] == "tls", got
    got = sh(w, ask % "h2,http/1.1", *INSPECT, env=given())
    assert "ALPN protocol: http/1.1" in got["stdout"] and got["refusals"] == [], got  # the control


@live_test
def an_upgrade_to_websocket_passes_if_the_server_agrees(w):
    place = f"ok.example:{internet.UPGRADE_PORT}"
    ask = (b"GET /chat HTTP/1.1\r\nHost: ok.example\r\nConnection: Upgrade\r\n"
           b"Upgrade: websocket\r\n\r\n")
    act = talk(internet.UPGRADE_PORT, ask)[-1].replace(
        "try:", "print(t.recv(999)); t.sendall(b'ping' * 5000); n = 0\n"
        "while n < 20000: n += len(t.recv(999999))\nprint(n); t.close(); raise SystemExit\ntry:")
    got = run(w, "--net", place, "--tls-inspect", place, "--", *PYTHON, act, env=given())
    assert "101 Switching" in got["stdout"] and got["stdout"].endswith("20000\n"), got


@live_test
def much_goes_both_ways(w):
    act = ("head -c 3000000 /dev/urandom > big; sha256sum < big | cut -d' ' -f1; "
           + curl("--data-binary", "@big", "https://ok.example/") + "; echo; "
           + curl("-H", "Transfer-Encoding: chunked", "--data-binary", "@big", "https://ok.example/"))
    got = sh(w, act, *INSPECT, env=given())
    lines = got["stdout"].split()
    assert len(lines) == 3 and len(set(lines)) == 1, got
    assert got["net_sent"] > 6_000_000, got


@live_test
def what_is_sent_in_tls_is_bounded(w):
    post = curl("-o", "/dev/null", "-w", "%{http_code} ", "--data-binary", "@big",
                "https://ok.example/")
    act = f"head -c 100000 /dev/zero > big; {post}; {post}"
    got = sh(w, act, *INSPECT, env=given())
    assert got["stdout"] == "200 200 " and 200_000 < got["net_sent"] < 202_000, got
    got = sh(w, act, *INSPECT, "--net-out", "150K", env=given(), status=None)
    assert got["stdout"].startswith("200 "), got
    assert got["limit"] == "net-out" and 100_000 < got["net_sent"] <= 150 << 10, got
    assert [(r["rule"], r["flag"]) for r in got["refusals"]] == [("bytes", "--net-out 300K")], got


# --- profiles, replay, leaks ------------------------------------------------------------------

@live_test
def a_profile_of_the_user_may_name_hosts_and_one_of_the_project_may_not(w):
    mine = w.home / ".config/snapcow/profiles"
    mine.mkdir(parents=True, exist_ok=True)
    (mine / "hub.yaml").write_text("net: [GET https://ok.example/login]\ntls_inspect: [ok.example]\n"
                                   "secret_for: ['https://ok.example=TOKEN']\n")
    got = hidden(w, curl("https://ok.example/login", "https://ok.example/b"), "--profile", "hub")
    assert digest("Bearer " + SECRET) in got["stdout"] and "not allowed" in got["stdout"], got
    shown = w.ok("profile", "show", "hub", "--json").json("snap.profile/1")["profile"]
    assert shown["tls_inspect"] == ["ok.example"], shown
    theirs = w.project / ".snap/profiles"
    theirs.mkdir(parents=True, exist_ok=True)
    (theirs / "more.yaml").write_text("extends: hub\ntls_inspect: [other.example]\n")
    w.snap("run", "--profile", "more", "--", "true", env=given()).fails(125, "inspects a host more")
    # Told twice it is one, and what ran can run again.
    got = hidden(w, curl("https://ok.example/login"), "--profile", "hub", "--tls-inspect", OK)
    assert got["tls_inspect"] == ["ok.example:443"], got
    again = w.snap("replay", "--json", got["run"], env=given())
    assert again.status in (0, 3), str(again)


@live_test
def a_run_that_inspects_leaks_nothing(w):
    *runs, last = leak_checks(3, 1)
    for env in runs:  # good, refused for the request, and a server that is not to be believed
        got = sh(w, "; ".join(curl(u) for u in (
            "https://ok.example/a", "https://ok.example/b", "https://ok.example:8444/")) + "; true",
            "--net", "https://ok.example/a,https://ok.example:8444", "--tls-inspect",
            "ok.example,ok.example:8444", env={**given(), **env})
        assert [r["rule"] for r in got["refusals"]] == ["request", "certificate"], got
    w.ok("runs", "--json", env=last)


# --- running ----------------------------------------------------------------------------------

def begin(net):
    global ROOTS
    ROOTS = net.roots


if __name__ == "__main__":
    sys.exit(nettest.main(begin))
