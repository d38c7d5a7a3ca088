#!/usr/bin/env python3
"""doctor --remote: what it finds of registries and directories, and that it leaves nothing there."""

import base64
import json
import os
import subprocess
import sys
import time
from email.utils import formatdate

from remotetest import needs
from servers import Fake, Fault, Proxy, Registry, Tunnel, make_certificate
from snaptest import Skip, main, test


def doctor(w, remote, status=0, **env):
    done = w.snap("doctor", "--json", "--remote", remote, env=env)
    got = done.json("snap.doctor/1", "ok", "checks", status=status)
    return {c["name"]: c for c in got["checks"]}


@test
def a_registry_that_works_is_well_and_keeps_nothing_of_the_trial(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        w.ok("remote", "add", "team", f"oci://127.0.0.1:{p.port}/team/app")
        found = doctor(w, "team")
        assert list(found) == ["address", "reach", "tls", "clock", "login", "push", "latency", "pull"], found
        assert all(c["ok"] for c in found.values()), found
        assert found["pull"]["fix"] == "snapcow push team" and "asks for none" in found["login"]["detail"], found
        assert len(p.asked("POST", "/uploads/")) == len(p.asked("DELETE", "/uploads/.")) == 1, p.seen
        assert not p.asked("PUT"), p.seen
        w.ok("init")
        w.ok("push", "team:main")
        assert "'main'" in doctor(w, "team")["pull"]["detail"]
        # Written as docker writes it, it does not look like an address.
        w.ok("remote", "add", "bare", f"127.0.0.1:{p.port}/team/app")
        assert "'main'" in doctor(w, "bare")["pull"]["detail"]
        text = w.ok("doctor", "--remote", "team").out.decode()
        assert "latency" in text and "fix:" not in text, text
        assert w.ok("-q", "doctor", "--remote", "team").out == b""


@test
def what_cannot_be_reached_is_told_with_what_to_type(w):
    with Fake(lambda q, _: q.say(404, b"no")) as f:
        port = f.port
        found = doctor(w, f"oci://127.0.0.1:{port}/team/app", 13)
        assert "no registry" in found["reach"]["detail"] and len(found) == 2, found
    started = time.monotonic()
    found = doctor(w, f"oci://127.0.0.1:{port}/team/app", 13)
    assert found["reach"]["level"] == "error" and f"curl -i http://127.0.0.1:{port}/v2/" in found["reach"]["fix"], found
    assert time.monotonic() - started < 60, "it tried again and again"
    assert "no remote 'nobody'" in doctor(w, "nobody", 13)["address"]["detail"]
    assert "remote add" in doctor(w, "nobody", 13)["address"]["fix"]


@test
def certificates_are_told_and_a_registry_without_one_is_weak(w):
    needs("openssl")
    cert = make_certificate(w.top, "registry.example")
    with Registry(w.top / "registry") as r, Proxy(r.port, tls=cert) as p, Tunnel(p.port) as t:
        through = {"https_proxy": f"http://127.0.0.1:{t.port}"}
        found = doctor(w, "oci://registry.example/team/app", 13, **through)
        assert found["tls"]["level"] == "error" and "SSL_CERT_FILE" in found["tls"]["fix"], found
        assert "--insecure" in found["tls"]["fix"] and "reach" not in found, found
        found = doctor(w, "oci://registry.example/team/app", SSL_CERT_FILE=cert[0], **through)
        assert found["tls"]["detail"] == "its certificate is good", found
    with Registry(w.top / "plain") as r, Proxy(r.port) as p:
        through = {"http_proxy": f"http://127.0.0.1:{p.port}"}
        w.ok("remote", "add", "--insecure", "team", "oci://registry.example/team/app")
        assert b"oci+http://registry.example/team/app" in w.ok("remote", "list").out
        found = doctor(w, "team", **through)
        assert found["tls"]["level"] == "warning" and found["push"]["ok"], found
        # It is what pushes and fetches use, too.
        w.ok("init")
        w.ok("push", "team:main", env=through)
        assert b"main" in w.ok("log", "team", env=through).out
        w.snap("remote", "add", "--insecure", "there", f"dir:{w.top}/depot").fails(2, "only a registry")


@test
def the_login_and_the_leave_to_write_are_two_things(w):
    needs("htpasswd")
    file = w.top / "htpasswd"
    subprocess.run(["htpasswd", "-Bbc", "-C", "4", str(file), "ann", "hush-hush"], check=True, capture_output=True)
    with Registry(w.top / "registry", f'auth: {{htpasswd: {{realm: x, path: "{file}"}}}}') as r, Proxy(r.port) as p:
        url, config = f"oci://127.0.0.1:{p.port}/team/app", w.home / ".docker" / "config.json"
        found = doctor(w, url, 13)
        assert found["login"]["fix"] == f"docker login 127.0.0.1:{p.port}" and "push" not in found, found
        config.parent.mkdir()
        for secret, status in (("wrong", 13), ("hush-hush", 0)):
            config.write_text(json.dumps({"auths": {f"127.0.0.1:{p.port}": {
                "auth": base64.b64encode(f"ann:{secret}".encode()).decode()}}}))
            found = doctor(w, url, status)
            assert found["login"]["ok"] == (status == 0) and "ann" in found["login"]["detail"], found
            assert "hush" not in json.dumps(found)
        p.faults.append(Fault("POST", "/uploads/", "status", 403))
        found = doctor(w, url)
        assert found["push"]["level"] == "warning" and "docker login" in found["push"]["fix"], found
        assert found["pull"]["ok"], found


@test
def a_clock_that_is_wrong_is_told(w):
    def answer(q, _):
        q.send_response_only(200 if q.path == "/v2/" else 404)
        q.send_header("Date", formatdate(time.time() - 7530, usegmt=True))
        q.send_header("Content-Length", "0")
        q.end_headers()

    with Fake(answer) as f:
        found = doctor(w, f"oci://127.0.0.1:{f.port}/team/app")
    assert found["clock"]["level"] == "warning" and "2h 5m behind ours" in found["clock"]["detail"], found
    assert found["push"]["level"] == "warning" and "no such repository" in found["push"]["detail"], found


@test
def a_directory_is_tried_without_a_trace(w):
    top = w.top / "depot"
    found = doctor(w, f"dir:{top}")
    assert "first push makes it" in found["reach"]["detail"] and found["push"]["ok"], found
    assert not top.exists()
    w.ok("init")
    w.ok("push", f"dir:{top}:main")
    before = sorted(os.listdir(top / "blobs" / "sha256"))
    found = doctor(w, f"dir:{top}")
    assert list(found) == ["address", "reach", "space", "push", "clock", "latency", "pull"], found
    assert sorted(os.listdir(top / "blobs" / "sha256")) == before
    (w.top / "busy").mkdir()
    (w.top / "busy" / "file").touch()
    found = doctor(w, f"dir:{w.top}/busy", 13)
    assert "holds other things" in found["reach"]["detail"] and len(found) == 2, found
    if os.geteuid() == 0:
        return  # root may write everywhere
    (top / "blobs" / "sha256").chmod(0o555)
    found = doctor(w, f"dir:{top}")
    assert found["push"]["level"] == "warning" and "ls -ld" in found["push"]["fix"] and found["pull"]["ok"], found
    (top / "blobs" / "sha256").chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
