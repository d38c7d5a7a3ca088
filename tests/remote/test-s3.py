#!/usr/bin/env python3
"""Remotes in an S3 store: signatures, keys, names, faults, and a gc beside pushes."""

import json
import subprocess
import sys
import threading

from remotetest import Depot, digest, make_manifest, noise
from s3server import S3
from servers import Fake, Fault, Proxy, missing
from snaptest import SNAP, Skip, main, test, until as wait_for

DATA = noise(3 << 20)
KEYS = {"AWS_ACCESS_KEY_ID": "AKTEST", "AWS_SECRET_ACCESS_KEY": "secret/with+signs", "AWS_REGION": "us-east-1"}


class Bucket(Depot):
    """A prefix of a bucket, through the client; `keys` is the environment that it gets."""

    def __init__(self, w, server, prefix="team/app", keys=KEYS, named=False):
        super().__init__(w, server.port)
        end = f"127.0.0.1:{server.port}"
        self.url = f"s3+http://{end}/snaps/{prefix}" if named else f"s3://snaps/{prefix}"
        for name in [n for n in self.env if n.startswith("AWS_")]:
            self.env.pop(name)
        self.env.update(keys)
        if not named:
            self.env["AWS_ENDPOINT_URL"] = f"http://{end}"


def use(w, server, **keys):
    """The environment of the world's own commands."""
    w.env.update({**KEYS, **keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}"})


def fill(project, n=30):
    for i in range(n):
        (project / "src" / f"f{i}").write_bytes(noise(3000, i))


def content(project):
    return {str(p.relative_to(project)): p.read_bytes() for p in project.rglob("*") if p.is_file()}


def push(w, *options):
    w.snap("snapshot", "-m", "a state").ends(0)
    return w.snap("push", "team", *options)


class Elsewhere:
    """The same user at another machine: another store, an empty project."""

    def __init__(self, w):
        self.w, self.place = w, w.top / "work" / "elsewhere"
        self.place.mkdir(exist_ok=True)
        self.env = {"SNAPCOW_STORE": str(w.top / "store2")}
        self.snap("init").ends(0)

    def snap(self, *words):
        return self.w.snap(*words, cwd=self.place, env=self.env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.snap("stop")


# --- requests and keys ------------------------------------------------------------------------


@test
def a_blob_travels_and_every_request_is_signed(w):
    for named in (False, True):
        with S3() as s:
            b = Bucket(w, s, named=named)
            assert b.ok("has", digest(DATA)) == b"no\n"
            b.put(DATA)
            b.put(b"")
            assert int(b.ok("has", digest(DATA))) == len(DATA)
            assert b.get(DATA) and b.get(b"")
            assert b.ok("range", digest(DATA), 1000, 20) == DATA[1000:1020]
            assert s.names() == sorted("team/app/blobs/sha256/" + digest(d)[7:] for d in (DATA, b""))
            assert all("AWS4-HMAC-SHA256" in q[2]["Authorization"] for q in s.seen)
            assert len(s.asked("PUT")) == 2
            b.put(DATA)  # it is there
            assert len(s.asked("PUT")) == 2
            b.fails("ENOENT", "get", digest(b"nothing"), 7, w.top / "out")


@test
def wrong_keys_are_refused_and_say_what_to_do(w):
    with S3() as s:
        for keys, says in (
                ({}, ("wants keys", "AWS_ACCESS_KEY_ID")),
                ({**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
                ({**KEYS, "AWS_ACCESS_KEY_ID": "AKOTHER"}, "InvalidAccessKeyId"),
                ({**KEYS, "AWS_REGION": "mars-1"}, "AWS_REGION=us-east-1")):
            line = Bucket(w, s, keys=keys).fails("EACCES", "tags", says=says)
            assert "wrong" not in line.replace("wrong region", "") and "secret/with" not in line, line
        Bucket(w, s, keys={"AWS_ACCESS_KEY_ID": "AKTEST"}).fails("EINVAL", "tags", says="no secret key")
        Bucket(w, s, keys={**KEYS, "AWS_REGION": "a:b"}).fails("EINVAL", "tags", says="no region")
        s.skew = 3600
        Bucket(w, s).fails("EACCES", "tags", says="clocks")
        s.skew, s.public = 0, True
        assert Bucket(w, s, keys={}).ok("tags") == b""
        Bucket(w, s, "x/../y").fails("EINVAL", "tags", says="prefix")
    with S3(bucket="other") as s:
        Bucket(w, s).fails("EACCES", "tags", says="aws s3 mb s3://snaps")
    with S3(token="session") as s:
        Bucket(w, s).fails("EACCES", "tags", says="InvalidToken")
        assert Bucket(w, s, keys={**KEYS, "AWS_SESSION_TOKEN": "session"}).ok("tags") == b""


@test
def keys_come_from_the_files_of_aws(w):
    with S3(region="eu-test-1") as s:
        aws = w.home / ".aws"
        aws.mkdir()
        (aws / "credentials").write_text(
            "# ours\n[default]\naws_access_key_id = AKWRONG\naws_secret_access_key = x\n"
            "[team]\naws_access_key_id=AKTEST\r\naws_secret_access_key = secret/with+signs\n")
        (aws / "config").write_text(
            "[default]\nregion = nowhere-1\n[profile team]\nregion = eu-test-1\ns3 =\n  region = no\n"
            f"endpoint_url = http://127.0.0.1:{s.port}\n[profile sso]\nsso_session = x\nregion = eu-test-1\n")
        b = Bucket(w, s, keys={"AWS_PROFILE": "team"})
        del b.env["AWS_ENDPOINT_URL"]
        b.put(DATA)
        assert b.get(DATA)
        Bucket(w, s, keys={"AWS_REGION": "eu-test-1"}).fails("EACCES", "tags", says="InvalidAccessKeyId")
        Bucket(w, s, keys={"AWS_PROFILE": "gone"}).fails("EINVAL", "tags", says="'gone'")
        Bucket(w, s, keys={"AWS_PROFILE": "sso"}).fails("EACCES", "tags", says="export-credentials")
        # What is in the environment wins, with nothing of the file mixed in.
        assert Bucket(w, s, keys={**KEYS, "AWS_REGION": "eu-test-1", "AWS_PROFILE": "sso"}).ok("tags") == b""


@test
def the_server_of_these_tests_speaks_with_the_client_of_aws(w):
    why = missing("aws")
    if why:
        raise Skip(why + " (Debian: awscli)")
    with S3(page=3) as s:
        b = Bucket(w, s)

        def aws(*words, **env):
            return subprocess.run(["aws", "--endpoint-url", f"http://127.0.0.1:{s.port}", *words], capture_output=True,
                                  env={**b.env, "AWS_EC2_METADATA_DISABLED": "true", **env}, timeout=120, check=False)

        for i in range(7):
            b.put(b"blob %d" % i)
        done = aws("s3", "ls", "--recursive", "s3://snaps/team/")
        assert done.returncode == 0 and done.stdout.count(b"blobs/sha256/") == 7, done
        assert aws("s3", "ls", "s3://snaps/", AWS_SECRET_ACCESS_KEY="wrong").returncode != 0
        # What AWS' client wrote is read by ours.
        (w.top / "theirs").write_bytes(DATA)
        done = aws("s3api", "put-object", "--bucket", "snaps", "--key", "team/app/blobs/sha256/" + digest(DATA)[7:],
                   "--body", str(w.top / "theirs"))
        assert done.returncode == 0, done
        assert b.get(DATA)
        done = aws("s3", "cp", "s3://snaps/team/app/blobs/sha256/" + digest(b"blob 3")[7:], str(w.top / "ours"))
        assert done.returncode == 0 and (w.top / "ours").read_bytes() == b"blob 3", done


# --- faults -----------------------------------------------------------------------------------


class Scene:
    """A store that holds DATA, and a proxy before it with the given faults."""

    def __init__(self, w, *faults, **how):
        self.s3 = S3(**how)
        self.direct = Bucket(w, self.s3)
        self.direct.put(DATA)
        self.proxy = Proxy(self.s3.port, *faults)
        self.depot = Bucket(w, self.proxy)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proxy.__exit__()
        self.s3.__exit__()


@test
def a_download_that_breaks_off_goes_on_and_wrong_bytes_are_never_kept(w):
    with Scene(w, Fault("GET", "/blobs/", "cut-answer", 1 << 20, times=2)) as s:
        assert s.depot.get(DATA)
        ranges = [q[2].get("Range") for q in s.proxy.asked("GET", "/blobs/")]
        assert ranges == [None, "bytes=1048576-", "bytes=2097152-"], ranges
    with Scene(w, Fault("GET", "/blobs/", "wrong", 2000000, times=99)) as s:
        (w.top / "out").unlink()
        s.depot.fails("EBADMSG", "get", digest(DATA), len(DATA), w.top / "out", says="wrong bytes")
        assert (w.top / "out").read_bytes() == b""
    with Scene(w, Fault("GET", "/blobs/", "lie", 5000, times=99)) as s:
        status, _, err = s.depot.run("get", digest(DATA), len(DATA), w.top / "out")
        assert status == 1 and ("ECONNRESET" in err or "EBADMSG" in err), err


@test
def a_busy_store_is_waited_for_and_one_that_refuses_is_not(w):
    with Scene(w, Fault("GET", "/blobs/", "status", 503, Retry_After="1"), Fault("HEAD", "/", "status", 500)) as s:
        assert int(s.depot.ok("has", digest(DATA))) == len(DATA)
        assert s.depot.get(DATA)
    with Scene(w, Fault("PUT", "/blobs/", "status", 503, times=2), Fault("PUT", "/blobs/", "cut-request", 1 << 20),
               Fault("PUT", "/blobs/", "lose-answer")) as s:
        s.depot.put(DATA + b"new")
        assert all(f.times == 0 for f in s.proxy.faults) and s.direct.get(DATA + b"new")
    with Scene(w, Fault("PUT", "/blobs/", "status", 503, times=99)) as s:
        (w.top / "blob").write_bytes(DATA + b"new")
        s.depot.fails("EAGAIN", "put", w.top / "blob", says="503")
    with Scene(w, Fault("PUT", "/blobs/", "status", 403, times=99)) as s:
        (w.top / "blob").write_bytes(DATA + b"new")
        s.depot.fails("EACCES", "put", w.top / "blob", says="403")
        assert len(s.proxy.asked("PUT", "/blobs/")) == 1


@test
def bytes_that_changed_on_their_way_are_not_stored(w):
    with Scene(w) as s:
        (w.top / "blob").write_bytes(DATA[:-1] + b"!")
        s.depot.fails("EBADMSG", "put", w.top / "blob", digest(DATA + b"x"), says="changed while it was sent")
        assert len(s.s3.names()) == 1


@test
def a_list_that_is_none_is_refused(w):
    page = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
    evil = "<Error><Code>\x1b]0;owned\x07</Code><Message>" + "x" * 5000 + "</Message></Error>"
    for status, body, code, says in ((200, "hello", "EPROTO", "no list"), (200, page, "EPROTO", "again and again"),
                                     (404, "no", "EPROTO", "no S3 store"), (418, evil, "EPROTO", "418"),
                                     (301, "<Error><Code>PermanentRedirect</Code></Error>", "EACCES", "AWS_REGION=")):
        with Fake(lambda q, _, status=status, body=body: q.say(status, body.encode(), x_amz_bucket_region="eu-9")) as f:
            line = Bucket(w, f).fails(code, "tags", says=says)
            assert "\x1b" not in line and len(line) < 300, line
            assert status != 301 or "eu-9" in line, line


# --- names ------------------------------------------------------------------------------------


def tag(w, depot, note, *expect):
    (w.top / "manifest").write_bytes(make_manifest(depot, note=note))
    depot.ok("tag", "main", w.top / "manifest", *expect)
    return digest((w.top / "manifest").read_bytes())


@test
def a_name_moves_last_and_only_if_nobody_else_moved_it(w):
    for conditions in ("yes", "no", "501"):
        with Scene(w, conditions=conditions) as s:
            first = tag(w, s.depot, "1", "none")
            order = [q[1].split("/app/")[1].split("/")[0] for q in s.proxy.seen if q[0] in ("PUT", "DELETE")]
            assert order[-1] == "pending" and order.index("tags") > order.index("pending") > order.index("blobs"), order
            assert digest(s.direct.ok("manifest", "main")) == first
            assert s.direct.ok("manifest", first) == s.direct.ok("manifest", "main")
            (w.top / "other").write_bytes(make_manifest(s.direct, note="other"))
            s.depot.fails("ESTALE", "tag", "main", w.top / "other", "none", says="moved by somebody else")
            second = tag(w, s.depot, "2", first)
            assert s.depot.ok("tags") == b"main\n" and not s.s3.names("team/app/pending/")
            # Between the look and the move somebody else moves it.
            s.proxy.faults.append(Fault("PUT", "/tags/", "call", fn=lambda: s.direct.ok("tag", "main", w.top / "other")))
            (w.top / "third").write_bytes(make_manifest(s.direct, note="3"))
            if conditions == "yes":
                s.depot.fails("ESTALE", "tag", "main", w.top / "third", second)
                assert s.direct.ok("manifest", "main") == (w.top / "other").read_bytes()
            else:  # the store cannot compare: the later one wins, whole
                s.depot.ok("tag", "main", w.top / "third", second)
                assert s.direct.ok("manifest", "main") == (w.top / "third").read_bytes()
            s.depot.ok("delete", "main")
            s.depot.fails("ENOENT", "manifest", "main")
            s.depot.fails("ENOENT", "delete", "main")


@test
def a_name_whose_move_was_not_heard_of_is_moved_once(w):
    with Scene(w, Fault("PUT", "/tags/", "lose-answer")) as s:
        moved = tag(w, s.depot, "1", "none")
        assert digest(s.direct.ok("manifest", "main")) == moved and not s.s3.names("team/app/pending/")
        assert len(s.proxy.asked("PUT", "/tags/")) == 2, "the second was refused, and it had been ours"


@test
def a_name_with_wrong_bytes_is_refused(w):
    with Scene(w) as s:
        tag(w, s.depot, "1", "none")
        s.s3.things["team/app/tags/main"].data += b" "
        s.depot.fails("EBADMSG", "manifest", "main", says="wrong bytes")


# --- snapcow ----------------------------------------------------------------------------------


@test
def a_project_travels_and_only_changes_do_the_second_time(w):
    with S3() as s, Proxy(s.port) as p:
        use(w, p)
        fill(w.project)
        w.snap("remote", "add", "team", "s3://snaps/team/app").ends(0)
        push(w).ends(0)
        first = sum(int(q[2].get("Content-Length") or 0) for q in p.seen)
        p.seen.clear()
        (w.project / "src" / "f3").write_text("changed\n")
        push(w).ends(0)
        second = sum(int(q[2].get("Content-Length") or 0) for q in p.seen)
        assert 0 < second < first / 5, (first, second)
        with Elsewhere(w) as e:
            e.snap("pull", "s3://snaps/team/app:latest").ends(0)
            assert content(e.place) == content(w.project)
        assert b"latest" in w.ok("remote", "log", "team").out


@test
def a_push_and_a_pull_survive_a_network_that_fails(w):
    with S3() as s, Proxy(s.port) as p:
        use(w, p)
        fill(w.project)
        w.snap("remote", "add", "team", "s3://snaps/team/app").ends(0)
        p.faults += [Fault("PUT", "/blobs/", "status", 503), Fault("PUT", "/blobs/", "cut-request", 0),
                     Fault("PUT", "/pending/", "status", 500), Fault("PUT", "/tags/", "lose-answer"),
                     Fault("GET", "list-type", "status", 503)]
        push(w).ends(0)
        assert all(f.times == 0 for f in p.faults), [f.path for f in p.faults if f.times]
        p.faults = [Fault("GET", "/blobs/", "cut-answer", 100), Fault("GET", "/tags/", "status", 503)]
        with Elsewhere(w) as e:
            e.snap("pull", "s3://snaps/team/app:latest").ends(0)
            assert content(e.place) == content(w.project)
        assert all(f.times == 0 for f in p.faults)


@test
def a_push_that_fails_leaves_no_name_and_wrong_bytes_reach_no_store(w):
    with S3() as s, Proxy(s.port) as p:
        use(w, p)
        fill(w.project)
        w.snap("remote", "add", "team", "s3://snaps/team/app").ends(0)
        p.faults.append(Fault("PUT", "/blobs/", "status", 403, times=99))
        done = push(w)
        assert done.status != 0 and b"403" in done.err, done
        assert not p.asked("PUT", "/tags/")
        p.faults.clear()
        push(w).ends(0)
        p.faults.append(Fault("GET", "/blobs/", "wrong", 50, times=99))
        with Elsewhere(w) as e:
            done = e.snap("pull", "s3://snaps/team/app:latest")
            assert done.status != 0 and b"wrong bytes" in done.err, done
            assert content(e.place) == {}


@test
def a_push_that_is_killed_anywhere_leaves_the_name_whole(w):
    with S3() as s, Proxy(s.port) as p:
        use(w, p)
        fill(w.project)
        w.snap("remote", "add", "team", "s3://snaps/team/app").ends(0)
        push(w).ends(0)
        for n, where in enumerate(("/blobs/", "/pending/", "list-type", "/tags/")):
            before = s.things["team/app/tags/latest"].data
            (w.project / "src" / "f3").write_text(f"changed {n}\n")
            w.snap("snapshot", "-m", "a state").ends(0)
            held, reached = threading.Event(), threading.Event()

            def hold(reached=reached, held=held):
                reached.set()
                held.wait(60)

            method = "GET" if where in ("list-type",) else "PUT"
            p.faults = [Fault(method, where, "call", fn=hold)]
            child = subprocess.Popen([SNAP, "push", "team"], cwd=w.project, env=w.env, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            assert reached.wait(60), where
            child.kill()
            child.wait()
            now = s.things["team/app/tags/latest"].data
            held.set()
            assert now == before, where
        p.faults = []
        push(w, "--force").ends(0)
        with Elsewhere(w) as e:
            e.snap("pull", "s3://snaps/team/app:latest").ends(0)
            assert content(e.place) == content(w.project)


@test
def gc_removes_what_rules_say_and_nothing_that_a_name_needs(w):
    with S3(page=4) as s:
        use(w, s)
        url = "s3://snaps/team/app"
        w.ok("init")

        def push_to(name, text):
            (w.project / "README.md").write_text(text)
            return w.ok("--json", "push", "--whole", f"{url}:{name}").json("snap.push/1")["manifest"]

        def gc(*options):
            return w.ok("--json", "remote", "gc", url, *options).json("snap.remote/1")

        mains = [push_to("main", f"{i}") for i in range(4)]
        push_to("v1", "release")
        s.put("team/app/blobs/sha256/README", b"somebody else's", age=10 ** 6)
        before = s.names()
        assert len(gc("--keep-last", "2", "--dry-run")["removed"]) == 2 and s.names() == before
        got = gc("--keep-last", "2")
        assert len(got["removed"]) == 2 and s.names() == before, "what is young stays"
        s.make_older(10 ** 6)
        gc("--keep-last", "2")
        have = [f"team/app/blobs/sha256/{m[7:]}" in s.things for m in mains]
        assert have == [False, False, True, True], have
        assert not s.names("team/app/gc/") and "team/app/blobs/sha256/README" in s.things
        assert len(s.names()) < len(before)
        gc("--older-than", "1ms", "--keep-tag", "v*", "--grace", "0")
        assert s.names("team/app/tags/") == ["team/app/tags/v1"]
        with Elsewhere(w) as e:
            e.snap("pull", f"{url}:v1").ends(0)
            assert content(e.place) == content(w.project)


@test
def a_push_waits_for_a_gc_and_looks_again_at_what_it_needs(w):
    with Scene(w) as s:
        (w.top / "manifest").write_bytes(make_manifest(s.direct, data=b"a layer"))
        s.s3.put("team/app/gc/other")
        child = s.depot.start("tag", "main", w.top / "manifest")
        wait_for(lambda: len(s.proxy.asked("GET", "prefix=team%2Fapp%2Fgc%2F")) >= 2)
        assert not s.proxy.asked("PUT", "/tags/")
        del s.s3.things["team/app/blobs/sha256/" + digest(b"a layer")[7:]]  # the gc had looked before
        del s.s3.things["team/app/gc/other"]
        _, err = child.communicate(timeout=60)
        assert child.returncode == 1 and b"EAGAIN" in err and b"push once more" in err, err
        assert not s.s3.names("team/app/tags/") and not s.s3.names("team/app/pending/")
        # One that died long ago is not waited for.
        s.s3.put("team/app/gc/dead", age=7200)
        s.direct.put(b"a layer")
        s.depot.ok("tag", "main", w.top / "manifest")


@test
def a_gc_keeps_what_a_push_announced(w):
    with S3() as s:
        use(w, s)
        w.ok("init")
        url = "s3://snaps/team/app"
        w.ok("push", f"{url}:main")
        manifest = s.things["team/app/tags/main"].data
        w.ok("push", f"{url}:gone")
        del s.things["team/app/tags/main"]
        s.put("team/app/pending/main/1", manifest)
        s.put("team/app/pending/gone/2", s.things["team/app/tags/gone"].data)
        s.put("team/app/pending/main/dead", b"{}", age=10 ** 5)
        s.make_older(10 ** 4)
        blobs = s.names("team/app/blobs/")
        # Neither the blobs of the first, nor the name that the second is about to move.
        w.ok("remote", "gc", url, "--older-than", "1ms", "--grace", "0")
        assert s.names("team/app/blobs/") == blobs and "team/app/tags/gone" in s.things
        assert s.names("team/app/pending/") == ["team/app/pending/gone/2", "team/app/pending/main/1"]
        s.make_older(10 ** 6, "team/app/pending/")
        w.ok("remote", "gc", url, "--older-than", "1ms", "--grace", "0")
        assert s.names() == [], s.names()


@test
def a_gc_removes_nothing_that_a_key_of_somebody_else_leads_to(w):
    with S3() as s:
        use(w, s)
        w.ok("init")
        url = "s3://snaps/team/app"
        w.ok("push", f"{url}:main")
        s.put("other/file")
        for key in ("x/../../tags/main", "../../../other/file", "x/y?versionId=1", "x/../../../../other/file", "a b/c"):
            s.put("team/app/pending/" + key, age=10 ** 6)
        before = s.names()
        w.ok("remote", "gc", url, "--grace", "0")
        assert s.names() == before, set(before) ^ set(s.names())


def doctor(w, remote, status=0, **env):
    done = w.snap("doctor", "--json", "--remote", remote, env=env)
    got = done.json("snap.doctor/1", "ok", "checks", status=status)
    return {c["name"]: c for c in got["checks"]}


@test
def doctor_tries_it_and_leaves_nothing(w):
    with S3() as s:
        use(w, s)
        w.ok("remote", "add", "team", "s3://snaps/team/app")
        found = doctor(w, "team")
        assert list(found) == ["address", "reach", "tls", "clock", "login", "push", "names", "latency", "pull"], found
        assert all(c["ok"] for c in found.values()) and s.names() == [], found
        assert "AKTEST" in found["login"]["detail"] and "secret/" not in json.dumps(found)
        assert "itself refuses" in found["names"]["detail"]
        found = doctor(w, "team", 13, AWS_SECRET_ACCESS_KEY="wrong")
        assert found["login"]["level"] == "error" and "push" not in found, found
        found = doctor(w, "s3://nobody/x", 13)
        assert "aws s3 mb s3://nobody" in found["login"]["detail"], found
        s.conditions = "501"
        assert "later one wins" in doctor(w, "team")["names"]["detail"]
        port = s.port
    found = doctor(w, "team", 13)
    assert f"curl -i http://127.0.0.1:{port}/snaps" in found["reach"]["fix"], found
    w.snap("remote", "add", "bad", "s3://x").fails(2, "names no bucket")
    w.snap("remote", "add", "--insecure", "bad", "s3://snaps").fails(2, "only a registry")


if __name__ == "__main__":
    sys.exit(main())
