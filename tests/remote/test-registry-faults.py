#!/usr/bin/env python3
"""A registry that is lost, slow, busy or wrong: what is on its way is resumed, or refused with a sentence."""

import signal
import sys

from remotetest import Depot, digest, make_manifest, needs, noise
from servers import Fake, Fault, Proxy, Registry
from snaptest import main, test

DATA = noise(3 << 20)
LARGE = noise(33 << 20, 2)


class Scene:
    """A registry that holds DATA, and a proxy before it with the given faults."""

    def __init__(self, w, *faults, data=DATA):
        needs()
        self.registry = Registry(w.top / "registry")
        self.direct = Depot(w, self.registry.port)
        if data:
            self.direct.put(data)
        self.proxy = Proxy(self.registry.port, *faults)
        self.depot = Depot(w, self.proxy.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proxy.__exit__()
        self.registry.__exit__()


@test
def a_download_that_breaks_off_goes_on_where_it_did(w):
    with Scene(w, Fault("GET", "/blobs/", "cut-answer", 1 << 20, times=2)) as s:
        assert s.depot.get(DATA)
        ranges = [q[2].get("Range") for q in s.proxy.asked("GET", "/blobs/")]
        assert ranges == [None, "bytes=1048576-", "bytes=2097152-"], ranges


@test
def a_server_without_ranges_sends_again_and_the_sink_gets_each_byte_once(w):
    with Scene(w, Fault("GET", "/blobs/", "cut-answer", 1 << 20), Fault("GET", "/blobs/", "no-range")) as s:
        assert s.depot.get(DATA)
        assert s.depot.ok("range", digest(DATA), 1000, 20) == DATA[1000:1020]
    with Scene(w, Fault("GET", "/blobs/", "no-range")) as s:
        assert s.depot.ok("range", digest(DATA), 1000, 20) == DATA[1000:1020]


@test
def a_connection_that_always_breaks_ends_with_a_sentence(w):
    with Scene(w, Fault("GET", "/blobs/", "close", times=99)) as s:
        s.depot.fails("ECONNRESET", "get", digest(DATA), len(DATA), w.top / "out")
        assert len(s.proxy.asked("GET", "/blobs/")) >= 6


@test
def wrong_bytes_are_never_kept(w):
    with Scene(w, Fault("GET", "/blobs/", "wrong", 2000000, times=99)) as s:
        s.depot.fails("EBADMSG", "get", digest(DATA), len(DATA), w.top / "out", says="wrong bytes")
        assert (w.top / "out").read_bytes() == b""


@test
def an_answer_that_claims_to_be_short_is_not_taken_for_the_whole(w):
    with Scene(w, Fault("GET", "/blobs/", "lie", 5000, times=99)) as s:
        status, _, err = s.depot.run("get", digest(DATA), len(DATA), w.top / "out")
        assert status == 1 and ("ECONNRESET" in err or "EBADMSG" in err), err
        assert len((w.top / "out").read_bytes()) < len(DATA)


@test
def an_answer_that_is_longer_than_the_blob_is_refused(w):
    with Fake(lambda q, _: q.say(200, DATA + b"more")) as f:
        status, _, err = Depot(w, f.port).run("get", digest(DATA), len(DATA), w.top / "out")
        assert status == 1 and ("EFBIG" in err or "EBADMSG" in err), err
        assert (w.top / "out").stat().st_size <= len(DATA)


@test
def a_download_that_stands_still_is_begun_again(w):
    with Scene(w, Fault("GET", "/blobs/", "stall", 1 << 20)) as s:
        assert s.depot.get(DATA, SNAPCOW_REMOTE_STALL="1s")
        assert [q[2].get("Range") for q in s.proxy.asked("GET", "/blobs/")] == [None, "bytes=1048576-"]


@test
def an_interrupt_ends_a_transfer_that_stands_still(w):
    with Scene(w, Fault("GET", "/blobs/", "stall", 1 << 20)) as s:
        p = s.depot.start("get", digest(DATA), len(DATA), w.top / "out")
        while not s.proxy.asked("GET", "/blobs/"):
            pass
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
        assert p.returncode == 1 and b"ECANCELED" in err, err


@test
def a_registry_that_is_killed_and_comes_back_goes_on(w):
    with Scene(w) as s:
        def die():
            s.registry.stop()
            s.registry.start()
        s.proxy.faults += [Fault("GET", "/blobs/", "cut-answer", 1 << 20), Fault("GET", "/blobs/", "call", fn=die)]
        assert s.depot.get(DATA)


@test
def a_registry_that_is_not_there_is_named(w):
    d = Depot(w, 1)
    d.fails("ECONNREFUSED", "tags", says="http://127.0.0.1:1")


@test
def a_busy_registry_is_waited_for_as_long_as_it_asks(w):
    with Scene(w, Fault("GET", "/blobs/", "status", 429, Retry_After="1"), Fault("HEAD", "/", "status", 503),
               Fault("HEAD", "/", "status", 500)) as s:
        assert int(s.depot.ok("has", digest(DATA))) == len(DATA)
        assert len(s.proxy.asked("HEAD")) == 3
        assert s.depot.get(DATA)
    with Scene(w, Fault("GET", "/tags", "status", 503, times=99)) as s:
        s.depot.fails("EAGAIN", "tags", says="503")
        assert len(s.proxy.asked("GET", "/tags")) == 6
    with Scene(w, Fault("GET", "/tags", "status", 429, times=99, Retry_After="100000")) as s:
        s.depot.fails("EAGAIN", "tags", says="429")
        assert len(s.proxy.asked("GET", "/tags")) == 1


@test
def an_upload_that_breaks_off_ends_whole(w):
    with Scene(w, Fault("PATCH", "/uploads/", "cut-request", 5 << 20, times=1),
               Fault("PUT", "/uploads/", "cut-request", 1 << 20, times=1), data=None) as s:
        s.depot.put(LARGE)
        assert s.direct.get(LARGE)
        assert all(f.times == 0 for f in s.proxy.faults)


@test
def an_upload_goes_on_where_the_registry_says(w):
    """As a registry that keeps what it got of a broken piece does it; docker's begins anew."""
    got, broken = bytearray(), []

    def answer(request, body):
        where = {"Location": "/v2/team/snaps/blobs/uploads/1", "Range": f"0-{max(len(got) - 1, 0)}"}
        if request.command == "HEAD":
            request.say(404)
        elif request.command == "POST":
            request.say(202, **where)
        elif request.command == "GET":
            request.say(204, **where)
        elif request.command == "PATCH" and not broken:
            broken.append(1)
            got.extend(body[:7 << 20])
            request.close_connection = True
        else:
            if request.command == "PATCH":
                assert request.headers["Content-Range"] == f"{len(got)}-{len(got) + len(body) - 1}"
            got.extend(body)
            where["Range"] = f"0-{len(got) - 1}"
            request.say(202 if request.command == "PATCH" else 201, **where)

    with Fake(answer) as f:
        Depot(w, f.port).put(LARGE)
        assert bytes(got) == LARGE
        assert len(f.asked("POST")) == 1


@test
def an_upload_whose_answer_was_lost_is_not_sent_again(w):
    with Scene(w, Fault("PUT", "/uploads/", "lose-answer"), data=None) as s:
        s.depot.put(DATA)
        # libcurl may try once by itself, where it used a connection again.
        assert len(s.proxy.asked("PUT", "/uploads/")) <= 2 and len(s.proxy.asked("POST", "/uploads/")) == 1
        assert s.direct.get(DATA)


@test
def a_busy_registry_gets_an_upload_later(w):
    with Scene(w, Fault("POST", "/uploads/", "status", 503), Fault("PUT", "/uploads/", "status", 500, times=2),
               data=None) as s:
        s.depot.put(DATA)
        assert s.direct.get(DATA)
    with Scene(w, Fault("PUT", "/uploads/", "status", 500, times=99), data=None) as s:
        (w.top / "blob").write_bytes(DATA + b"new")
        s.depot.fails("EAGAIN", "put", w.top / "blob", says="500")


@test
def a_manifest_is_sent_again_until_its_tag_stands(w):
    with Scene(w, Fault("PUT", "/manifests/", "lose-answer"), Fault("PUT", "/manifests/", "status", 503)) as s:
        (w.top / "manifest").write_bytes(make_manifest(s.direct))
        s.depot.ok("tag", "main", w.top / "manifest")
        assert s.direct.ok("manifest", "main") == (w.top / "manifest").read_bytes()


@test
def a_registry_whose_disk_is_full_says_so(w):
    full = {"errors": [{"code": "UNKNOWN", "message": "unknown error", "detail": {"Err": "no space left on device"}}]}

    def answer(request, body):
        if request.command == "POST":
            request.say(202, Location="/v2/team/snaps/blobs/uploads/1")
        else:
            request.say(404 if request.command == "HEAD" else 500, full)

    with Fake(answer) as f:
        (w.top / "blob").write_bytes(DATA)
        Depot(w, f.port).fails("ENOSPC", "put", w.top / "blob", says="UNKNOWN")


@test
def a_redirect_to_another_host_gets_the_request_and_no_authorization(w):
    with Fake(lambda q, _: q.say(200, DATA)) as other:
        def answer(request, body):
            if request.headers.get("Authorization") is None:
                request.say(401, WWW_Authenticate='Basic realm="x"')
            else:
                request.say(307, Location=f"http://localhost:{other.port}/elsewhere?secret=hush")

        with Fake(answer) as f:
            d = Depot(w, f.port)
            w.home.joinpath(".docker").mkdir()
            w.home.joinpath(".docker/config.json").write_text(
                '{"auths":{"127.0.0.1:%d":{"auth":"dXNlcjpwYXNz"}}}' % f.port)
            assert d.get(DATA)
        assert [("GET", "/elsewhere?secret=hush")] == [q[:2] for q in other.seen]
        assert "Authorization" not in other.seen[0][2]


@test
def redirects_that_lead_nowhere_are_refused(w):
    for to, code in (("/v2/again", "ELOOP"), ("ftp://127.0.0.1/x", "EXDEV"), ("file:///etc/passwd", "EXDEV"),
                     ("//other/x", "EXDEV"), ("http://u:p@127.0.0.1/x", "EXDEV")):
        with Fake(lambda q, _, to=to: q.say(302, Location=to)) as f:
            Depot(w, f.port).fails(code, "tags", says="redirects")
            assert len(f.seen) <= 6


@test
def an_upload_is_never_sent_to_another_host_in_the_clear(w):
    with Fake(lambda q, _: q.say(201)) as other:
        for how in ("location", "redirect"):
            def answer(request, body, how=how):
                where = f"http://127.0.0.1:{other.port}/steal?secret=hush"
                if request.command == "POST":
                    request.say(202, Location=where if how == "location" else "/v2/team/snaps/blobs/uploads/1")
                else:
                    request.say(307, Location=where)

            with Fake(answer) as f:
                (w.top / "blob").write_bytes(b"mine")
                line = Depot(w, f.port).fails("EXDEV", "put", w.top / "blob")
                assert "hush" not in line
        assert other.seen == []


@test
def what_a_registry_says_cannot_drive_the_terminal(w):
    evil = {"errors": [{"code": "DENIED", "message": "\x1b]0;owned\x07" + "x" * 5000}]}
    with Fake(lambda q, _: q.say(403, evil)) as f:
        line = Depot(w, f.port).fails("EACCES", "tags", says="DENIED")
        assert "\x1b" not in line and len(line) < 300


if __name__ == "__main__":
    sys.exit(main())
