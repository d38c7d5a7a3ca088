#!/usr/bin/env python3
"""push, fetch and pull through docker's registry: two stores, credentials, and a network that fails."""

import base64
import http.client
import json
import os
import subprocess
import sys
import threading

from remotetest import MANIFEST_TYPE, digest, needs, noise
from servers import Fault, Proxy, Registry
from snaptest import SNAP, main, test
from trees import differences, furnish, walk


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
def all_that_a_tree_can_hold_travels(w):
    needs()
    with Registry(w.top / "registry") as r:
        furnish(w.project)
        w.snap("remote", "add", "team", f"127.0.0.1:{r.port}/team/app").ends(0)
        push(w).ends(0)
        place, env = other(w)
        try:
            w.snap("pull", "--allow", "fifo", "team", cwd=place, env=env).ends(0)
            assert not differences(walk(w.project), walk(place))
        finally:
            end_other(w, env)


def sent(proxy):
    """Bytes of blobs; manifests always travel."""
    return sum(int(q[2].get("Content-Length") or 0) for q in proxy.seen if q[0] in ("PUT", "PATCH") and "/uploads/" in q[1])


@test
def what_another_repository_has_is_taken_over_if_that_is_asked_for(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        for i in range(60):
            (w.project / "src" / f"f{i}").write_bytes(noise(20000, i))
        for name in ("team", "review", "third", "fourth"):
            w.snap("remote", "add", name, f"oci://127.0.0.1:{p.port}/{name}/app").ends(0)
        push(w).ends(0)
        all_of_it = sent(p)
        p.seen.clear()
        (w.project / "src" / "f3").write_text("changed\n")
        w.snap("push", "--mount", "review").ends(0)
        assert 0 < sent(p) < all_of_it / 20, (sent(p), all_of_it)
        assert len(p.asked("POST", r"mount=.*from=team/app")) == 4, p.asked("POST")
        # A registry that takes nothing over gets all of it.
        p.seen.clear()
        p.faults.append(Fault("POST", "mount=", "status", 405, times=9))
        w.snap("push", "--mount", "third").ends(0)
        assert sent(p) > all_of_it / 2, (sent(p), all_of_it)
        p.faults.clear()
        # Its readers may be others: unless asked for, they get nothing but this snapshot.
        p.seen.clear()
        w.snap("push", "fourth").ends(0)
        assert sent(p) > all_of_it / 2 and not p.asked("POST", "mount="), (sent(p), all_of_it)
        # So does another project that has nothing in common, without a question.
        p.seen.clear()
        stranger = w.top / "work" / "stranger"
        stranger.mkdir()
        (stranger / "file").write_text("mine\n")
        w.ok("init", cwd=stranger)
        w.snap("push", "--mount", f"oci://127.0.0.1:{p.port}/stranger/app", cwd=stranger).ends(0)
        assert not p.asked("POST", "mount="), p.asked("POST")
        place, env = other(w)
        try:
            w.snap("pull", "review", cwd=place, env=env).ends(0)
            assert content(place) == content(w.project)
            roots = {w.ok("--json", "fetch", name, cwd=place, env=env).json("snap.fetch/1")["root"] for name in ("review", "third")}
            assert len(roots) == 1, roots
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
def what_was_seen_of_a_registry_is_not_asked_for_again(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        fill(w.project)
        w.snap("remote", "add", "team", f"127.0.0.1:{p.port}/team/app").ends(0)
        push(w).ends(0)
        place, env = other(w)
        try:
            w.snap("fetch", "team", cwd=place, env=env).ends(0)
            for i in range(4):
                if i == 2:  # a cache with wrong bytes is none
                    for store in (w.store, w.top / "store2"):
                        for file in (store / "remote" / "cache").iterdir():
                            file.write_bytes(b"x" * file.stat().st_size)
                (w.project / "src" / "f3").write_text(f"changed {i}\n")
                p.seen.clear()
                push(w).ends(0)
                # Neither an index nor the snapshot before; but each pack is looked for.
                asked = len(p.asked("GET", "/blobs/"))
                assert asked == (0 if i != 2 else 7), (i, p.seen)
                assert len(p.asked("HEAD", "/blobs/")) >= 4 + 4 * i, (i, p.seen)
                p.seen.clear()
                w.snap("fetch", "team", cwd=place, env=env).ends(0)
                # The new snapshot, two packs and their indexes; only the name is looked up.
                asked = len(p.asked("GET", "/blobs/")), len(p.asked("GET", "/manifests/"))
                assert asked == ((5, 1) if i != 2 else (5, 2)), (i, asked)
            w.snap("pull", "team", cwd=place, env=env).ends(0)
            assert content(place) == content(w.project)
        finally:
            end_other(w, env)


@test
def gc_removes_what_rules_say_and_no_manifest_that_a_name_got_meanwhile(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        url = f"oci://127.0.0.1:{p.port}/team/app"

        def ask(method, reference, body=None):
            c = http.client.HTTPConnection("127.0.0.1", r.port, timeout=30)
            kind = {"Content-Type": MANIFEST_TYPE} if body else {"Accept": MANIFEST_TYPE}
            c.request(method, f"/v2/team/app/manifests/{reference}", body, kind)
            answer = c.getresponse()
            return answer.status, answer.read()

        def push_to(name, text):
            (w.project / "README.md").write_text(text)
            return w.ok("--json", "push", "--whole", f"{url}:{name}").json("snap.push/1")["manifest"]

        def gc(*options):
            return w.ok("--json", "remote", "gc", url, *options).json("snap.remote/1")

        w.ok("init")
        mains = [push_to("main", f"{i}") for i in range(4)]
        release, trial = push_to("v1", "release"), push_to("trial", "trial")
        assert len(gc("--keep-last", "2", "--dry-run")["removed"]) == 2 and not p.asked("DELETE")
        old = ask("GET", mains[0])[1]
        # Between the two looks at the names somebody gives one to a manifest that would go.
        p.faults += [Fault("GET", "/tags/list", "none"),
                     Fault("GET", "/tags/list", "call", fn=lambda: ask("PUT", "again", old))]
        got = gc("--keep-last", "2")
        assert all(f.times == 0 for f in p.faults) and len(got["removed"]) == 2, got
        assert [ask("GET", m)[0] for m in mains] == [200, 404, 200, 200]
        assert ask("GET", "again") == (200, old)
        got = gc("--older-than", "1ms", "--keep-tag", "v*")
        assert {one["name"] for one in got["removed"]} == {"main", "trial", "again", None}, got
        assert [ask("GET", m)[0] for m in (*mains, trial, release)] == [404] * 5 + [200]
        assert ask("GET", "v1")[0] == 200 and ask("GET", "main")[0] == 404


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


class Deadly(Proxy):
    """Kills the program that asks: before the registry has a request, or when it has answered it. The request is known
    by its number, or by how it begins."""

    left = None

    def run(self, n, behind, *words, **more):
        """Was it killed?  Without n it is not, and the answer is how many requests it makes."""
        self.left, self.behind, self.ready = n, behind, threading.Event()
        self.seen.clear()
        self.child = subprocess.Popen([SNAP, "-q", *words, "--jobs", "1"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **more)
        self.ready.set()
        status = self.child.wait(60)
        self.left = None
        assert status in (0, -9), status
        return len(self.seen) if n is None else status == -9

    def answer(self, request):
        with self.lock:
            by_number = isinstance(self.left, int)
            line = f"{request.command} {request.path}"
            hit = self.left == 0 if by_number else bool(self.left) and line.startswith(self.left)
            self.left = None if hit else self.left - 1 if by_number else self.left
        if hit and not self.behind:
            self.kill()
            request.close_connection = True
            return
        super().answer(request)
        if hit:
            self.kill()

    def kill(self):
        self.ready.wait(60)
        self.child.kill()


def points(n):
    """Of n requests: before which one, or behind it."""
    every = [(i, behind) for i in range(n) for behind in (False, True)]
    return every if os.environ.get("SNAP_TESTS_LONG") else every[:: len(every) // 4]


def name_is_complete(r):
    """What the name means is there, whole and right; its manifest's digest."""
    def get(path):
        line = http.client.HTTPConnection("127.0.0.1", r.port, timeout=60)
        line.request("GET", f"/v2/team/app/{path}", headers={"Accept": MANIFEST_TYPE})
        answer = line.getresponse()
        data = answer.read()
        line.close()
        assert answer.status == 200, (path, answer.status)
        return data

    manifest = get("manifests/latest")
    told = json.loads(manifest)
    for blob in [told["config"], *told["layers"]]:
        assert digest(get(f"blobs/{blob['digest']}")) == blob["digest"], blob
    return digest(manifest)


@test
def a_push_that_is_killed_at_any_request_leaves_the_name_complete(w):
    needs()
    with Registry(w.top / "registry") as r, Deadly(r.port) as p:
        fill(w.project)
        w.snap("remote", "add", "team", f"oci://127.0.0.1:{p.port}/team/app").ends(0)
        push(w).ends(0)
        def killed_push(at, behind, text):
            (w.project / "src" / "f3").write_text(text)
            return p.run(at, behind, "push", "--force", "team", cwd=w.project, env=w.env)

        n, before = killed_push(None, False, "changed\n"), name_is_complete(r)
        chosen = points(n)
        for at, behind in chosen:
            assert killed_push(at, behind, f"changed {at} {behind}\n"), (at, n)
            # The last request moves the name; each push makes no fewer requests than the one before.
            assert name_is_complete(r) == before or at >= n - 1, (at, n)
        before = name_is_complete(r)
        assert killed_push("PUT /v2/team/app/manifests/", False, "before\n") and name_is_complete(r) == before
        assert killed_push("PUT /v2/team/app/manifests/", True, "behind\n") and name_is_complete(r) != before
        assert len(chosen) >= (30 if os.environ.get("SNAP_TESTS_LONG") else 4), n
        push(w, "--force").ends(0)
        place, env = other(w)
        try:
            w.snap("pull", "team", cwd=place, env=env).ends(0)
            assert content(place) == content(w.project)
        finally:
            end_other(w, env)


@test
def a_fetch_that_is_killed_at_any_request_stores_nothing_wrong_and_the_next_one_goes_on(w):
    needs()
    with Registry(w.top / "registry") as r, Deadly(r.port) as p:
        fill(w.project)
        w.snap("remote", "add", "team", f"oci://127.0.0.1:{p.port}/team/app").ends(0)
        push(w).ends(0)
        place, env = other(w)
        try:
            more = {"cwd": place, "env": {**w.env, **env}}
            n, died = p.run(None, False, "fetch", "team", **more), 0
            for i, (at, behind) in enumerate(points(n)):
                (w.project / "src" / "f3").write_text(f"changed {i}\n")
                push(w).ends(0)
                died += p.run(at, behind, "fetch", "team", **more)
                for pack in (w.top / "store2" / "remote" / "incoming").glob("*.pack"):
                    assert digest(pack.read_bytes())[7:] == pack.stem, pack
            assert died >= 3, (died, n)
            w.snap("pull", "team", cwd=place, env=env).ends(0)
            assert content(place) == content(w.project)
            assert b"no damage" in w.snap("check", cwd=place, env=env).ends(0).out
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
