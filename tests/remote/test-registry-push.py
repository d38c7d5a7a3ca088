#!/usr/bin/env python3
"""push, fetch and pull through docker's registry: two stores, credentials, and a network that fails."""

import base64
import json
import subprocess
import sys

from remotetest import needs
from servers import Fault, Proxy, Registry
from snaptest import main, test


def fill(project, n=30):
    for i in range(n):
        (project / "src" / f"f{i}").write_text(f"{i}\n" * 2000)


def content(project):
    return {str(p.relative_to(project)): p.read_bytes() for p in project.rglob("*") if p.is_file()}


def push(w, *options):
    w.snap("snapshot", "-m", "a state").ends(0)
    return w.snap("push", "team", *options)


def other(w):
    """The same user at another machine: another store, an empty project."""
    place = w.top / "work" / "elsewhere"
    place.mkdir(exist_ok=True)
    env = {"SNAPCOW_STORE": str(w.top / "store2")}
    w.snap("init", cwd=place, env=env).ends(0)
    return place, env


def end_other(w, env):
    w.snap("stop", env=env)


@test
def a_project_travels_through_a_registry_and_only_changes_do_the_second_time(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        fill(w.project)
        w.snap("remote", "add", "team", f"127.0.0.1:{p.port}/team/app").ends(0)
        push(w).ends(0)
        first = sum(int(q[2].get("Content-Length") or 0) for q in p.seen)
        p.seen.clear()
        (w.project / "src" / "f3").write_text("changed\n")
        push(w).ends(0)
        second = sum(int(q[2].get("Content-Length") or 0) for q in p.seen)
        assert 0 < second < first, (first, second)
        place, env = other(w)
        try:
            w.snap("pull", "team", cwd=place, env=env).ends(0)
            assert content(place) == content(w.project)
        finally:
            end_other(w, env)


@test
def a_push_and_a_pull_survive_a_network_that_fails(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        fill(w.project)
        w.snap("remote", "add", "team", f"oci://127.0.0.1:{p.port}/team/app").ends(0)
        p.faults += [Fault("POST", "/uploads/", "status", 503), Fault("PUT", "/uploads/", "cut-request", 0),
                     Fault("PUT", "/manifests/", "lose-answer")]
        push(w).ends(0)
        p.faults += [Fault("GET", "/blobs/", "cut-answer", 100), Fault("GET", "/manifests/", "status", 429)]
        place, env = other(w)
        try:
            w.snap("pull", "team", cwd=place, env=env).ends(0)
            assert content(place) == content(w.project)
            assert all(f.times == 0 for f in p.faults), [f.kind for f in p.faults if f.times]
        finally:
            end_other(w, env)


@test
def a_push_that_fails_leaves_no_name_behind(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        fill(w.project)
        w.snap("remote", "add", "team", f"oci://127.0.0.1:{p.port}/team/app").ends(0)
        p.faults.append(Fault("PUT", "/uploads/", "status", 403, times=99))
        done = push(w)
        assert done.status != 0 and b"not allowed" in done.err, done
        assert not p.asked("PUT", "/manifests/")


@test
def wrong_bytes_reach_no_store(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        fill(w.project)
        w.snap("remote", "add", "team", f"oci://127.0.0.1:{p.port}/team/app").ends(0)
        push(w).ends(0)
        p.faults.append(Fault("GET", "/blobs/", "wrong", 50, times=99))
        place, env = other(w)
        try:
            done = w.snap("pull", "team", cwd=place, env=env)
            assert done.status != 0 and b"wrong bytes" in done.err, done
            assert content(place) == {}
        finally:
            end_other(w, env)


@test
def a_registry_with_a_password_is_named_to_log_in_to(w):
    needs("htpasswd")
    file = w.top / "htpasswd"
    subprocess.run(["htpasswd", "-Bbc", "-C", "4", str(file), "ann", "hush-hush"], check=True, capture_output=True)
    with Registry(w.top / "registry", f'auth: {{htpasswd: {{realm: x, path: "{file}"}}}}') as r:
        w.snap("remote", "add", "team", f"oci://127.0.0.1:{r.port}/team/app").ends(0)
        done = push(w)
        assert done.status != 0 and b"docker login" in done.err, done
        (w.home / ".docker").mkdir()
        (w.home / ".docker" / "config.json").write_text(json.dumps({"auths": {f"127.0.0.1:{r.port}": {
            "auth": base64.b64encode(b"ann:hush-hush").decode()}}}))
        done = push(w, "-v")
        assert done.status == 0 and b"hush" not in done.out + done.err, done


if __name__ == "__main__":
    sys.exit(main())
