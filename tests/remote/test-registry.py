#!/usr/bin/env python3
"""Blobs, manifests and tags in docker's registry, through depot-registry.c."""

import json
import os
import subprocess
import sys

import remotetest
from remotetest import Depot, Skip, digest, make_manifest, needs, noise
from servers import Fake, Proxy, Registry, Tunnel, make_certificate, missing
from snaptest import main, test

SMALL, LARGE = noise(1000), noise(33 << 20)


def file_of(w, data, name="manifest"):
    path = w.top / name
    path.write_bytes(data)
    return path


@test
def a_blob_comes_back_as_it_went(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        for data in (b"", SMALL):
            assert d.ok("has", digest(data)).strip() == b"no"
            d.put(data)
            assert int(d.ok("has", digest(data))) == len(data)
        assert d.get(SMALL)
        assert d.ok("range", digest(SMALL), 100, 50) == SMALL[100:150]
        assert d.ok("range", digest(SMALL), 990, 10) == SMALL[990:]
        status, _, err = d.run("get", digest(b"nowhere"), 7, w.top / "out")
        assert status == 1 and "ENOENT: \n" in err, err


@test
def a_large_blob_goes_in_pieces_and_is_not_sent_twice(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        d = Depot(w, p.port)
        d.put(LARGE)
        assert len(p.asked("PATCH")) == 2 and len(p.asked("PUT")) == 1
        assert d.get(LARGE)
        d.put(LARGE)
        assert len(p.asked("PATCH")) == 2 and len(p.asked("PUT")) == 1


@test
def what_is_there_already_is_not_asked_for_again(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        d = Depot(w, p.port)
        d.put(LARGE)
        (w.top / "out").write_bytes(LARGE[:30 << 20])
        d.ok("get", digest(LARGE), len(LARGE), w.top / "out")
        assert (w.top / "out").read_bytes() == LARGE
        [get] = p.asked("GET", "/blobs/")
        assert get[2]["Range"] == f"bytes={30 << 20}-", get


@test
def a_blob_that_is_not_what_it_is_called_is_refused_by_the_registry(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        d.fails("EBADMSG", "put", file_of(w, SMALL), digest(b"another"), says="DIGEST_INVALID")
        assert d.ok("has", digest(b"another")).strip() == b"no"


@test
def a_blob_is_taken_over_from_another_repository(w):
    needs()
    with Registry(w.top / "registry") as r, Proxy(r.port) as p:
        one, two = Depot(w, p.port, "team/one"), Depot(w, p.port, "team/two")
        one.put(SMALL)
        assert two.ok("mount", digest(SMALL), "team/one") == b"1\n"
        assert two.get(SMALL)
        assert two.ok("mount", digest(b"nowhere"), "team/one") == b"0\n"
        two.fails("EINVAL", "mount", digest(SMALL), "../x", says="no name of a repository")


@test
def a_manifest_has_a_tag_and_a_digest(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        assert d.ok("tags") == b""
        first, second = make_manifest(d), make_manifest(d, b"other")
        d.ok("tag", "main", file_of(w, first))
        d.ok("tag", "-", file_of(w, second))
        assert d.ok("manifest", "main") == first == d.ok("manifest", digest(first))
        assert d.ok("manifest", digest(second)) == second
        assert d.ok("tags") == b"main\n"
        d.fails("ENOENT", "manifest", "nothing")
        d.fails("EINVAL", "manifest", "../../x", says="neither a tag nor a digest")
        assert json.loads(first)["layers"][0]["digest"] == digest(b"a layer")


@test
def a_tag_moves_only_from_where_it_is_expected(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        first, second = make_manifest(d), make_manifest(d, b"other")
        d.ok("tag", "main", file_of(w, first), "none")
        d.fails("ESTALE", "tag", "main", file_of(w, second), "none", says="names another snapshot")
        d.fails("ESTALE", "tag", "main", file_of(w, second), digest(second))
        assert d.ok("manifest", "main") == first
        d.ok("tag", "main", file_of(w, second), digest(first))
        assert d.ok("manifest", "main") == second


@test
def a_manifest_whose_blobs_are_missing_is_refused(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        manifest = make_manifest(d).replace(digest(b"a layer").encode(), digest(b"nowhere").encode())
        d.fails("EPROTO", "tag", "main", file_of(w, manifest), says="BLOB_UNKNOWN")
        assert d.ok("tags") == b""


@test
def a_manifest_can_be_removed_by_its_digest(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        manifest = make_manifest(d)
        d.ok("tag", "main", file_of(w, manifest))
        d.fails("EOPNOTSUPP", "delete", "main", says="removes no tags")
        d.ok("delete", digest(manifest))
        d.fails("ENOENT", "manifest", "main")
        d.fails("ENOENT", "delete", digest(manifest))


@test
def tags_come_in_pages(w):
    def answer(request, body):
        if "last=b" in request.path:
            request.say(200, {"name": "x", "tags": ["c"]})
        elif "last=a" in request.path:
            request.say(200, {"name": "x", "tags": ["b"]}, Link='</v2/x/tags/list?last=b&n=1>; rel="next"')
        else:
            request.say(200, {"name": "x", "tags": ["a"]}, Link="<http://%s/v2/x/tags/list?last=a>; rel=\"next\""
                        % request.headers["Host"])

    with Fake(answer) as f:
        assert Depot(w, f.port, "x").ok("tags") == b"a\nb\nc\n"


@test
def a_registry_that_lies_about_its_tags_is_refused(w):
    answers = [
        ({"tags": ["../../etc"]}, {}),
        ({"tags": [1]}, {}),
        ({"tags": "x"}, {}),
        (b"<html>", {}),
        ({"tags": ["a"]}, {"Link": '<http://127.0.0.1:1/v2/x/tags/list>; rel="next"'}),
        ({"tags": ["a"]}, {"Link": '</v2/x/tags/list?n=1000>; rel="next"'}),
        (b"[" * 100000, {}),
    ]
    for body, headers in answers:
        with Fake(lambda q, _, b=body, h=headers: q.say(200, b, **h)) as f:
            Depot(w, f.port, "x").fails("EPROTO", "tags", says="tags")
    with Fake(lambda q, _: q.say(200, b" " * (5 << 20))) as f:
        Depot(w, f.port, "x").fails("EFBIG", "tags", says="the answer has over")


@test
def a_manifest_with_wrong_bytes_is_never_handed_out(w):
    with Fake(lambda q, _: q.say(200, b'{"a":1}')) as f:
        Depot(w, f.port, "x").fails("EBADMSG", "manifest", digest(b"other"), says="wrong bytes")
    with Fake(lambda q, _: q.say(200, b'{"a":1}', Docker_Content_Digest=digest(b"other"))) as f:
        Depot(w, f.port, "x").fails("EBADMSG", "manifest", "main", says="wrong bytes")
    with Fake(lambda q, _: q.say(200, b"x" * (5 << 20))) as f:
        Depot(w, f.port, "x").fails("EFBIG", "manifest", "main")


@test
def names_that_lead_elsewhere_are_no_registry(w):
    for url, says in (("oci://host", "HOST[:PORT]/REPOSITORY"), ("oci://ho st/x", "no host"),
                      ("oci://host/X", "no name of a repository"), ("oci://host/a/../b", "no name"),
                      ("oci://user@host/x", "no host"), ("oci://host/x:tag", "names a snapshot"),
                      ("oci://host:0/x", "no host"), ("oci://host:99999/x", "no host")):
        d = Depot(w, 1)
        d.url = url
        d.fails("EINVAL", "tags", says=says)


@test
def https_proves_who_it_is_and_goes_through_the_users_proxy(w):
    needs("openssl")
    cert = make_certificate(w.top, "registry.example")
    with Registry(w.top / "registry") as r, Proxy(r.port, tls=cert) as p, Tunnel(p.port) as t:
        d = Depot(w, 443, host="registry.example")
        through = {"https_proxy": f"http://127.0.0.1:{t.port}"}
        d.fails("EPROTO", "tags", says="certificate", **through)
        d.put(SMALL, SSL_CERT_FILE=cert[0], **through)
        assert d.get(SMALL, SSL_CERT_FILE=cert[0], **through)
        assert set(t.names) == {"registry.example:443"}
        # A certificate for another name proves nothing.
        other = Depot(w, 443, host="other.example")
        other.fails("EPROTO", "tags", SSL_CERT_FILE=cert[0], **through)


@test
def a_host_elsewhere_is_spoken_to_by_https_unless_the_user_says_otherwise(w):
    with Fake(lambda q, _: q.say(200, {"tags": ["a"]})) as f:
        d = Depot(w, f.port, "x", host="registry.example")
        proxy = {"http_proxy": f"http://127.0.0.1:{f.port}", "https_proxy": "http://127.0.0.1:1"}
        status, _, err = d.run("tags", SNAP_TEST_PLAIN="1", **proxy)
        assert status == 0 and len(f.seen) == 1, err
        d.fails("ECONNREFUSED", "tags", **proxy)
        assert len(f.seen) == 1


@test
def what_is_on_this_machine_is_not_asked_through_a_proxy(w):
    with Fake(lambda q, _: q.say(200, {"tags": ["a"]})) as f:
        status, _, err = Depot(w, f.port, "x").run("tags", http_proxy="http://127.0.0.1:1", all_proxy="http://127.0.0.1:1")
        assert status == 0 and len(f.seen) == 1, err


@test
def a_rate_limits_what_moves(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        data = noise(4000000)
        d.put(data)
        before = os.times().elapsed
        assert d.get(data, SNAP_TEST_RATE="1000000")
        assert os.times().elapsed - before > 1


@test
def a_transfer_takes_little_memory(w):
    needs()
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        d.put(LARGE)
        _, _, err = d.run("get", digest(LARGE), len(LARGE), w.top / "out")
        if not os.environ.get("SNAP_SANITIZED", "none").startswith("address"):
            assert 0 < int(err.split()[1]) < 24 << 10, err


@test
def skopeo_reads_and_copies_what_we_put(w):
    needs()
    if missing("skopeo"):
        raise Skip(missing("skopeo"))
    with Registry(w.top / "registry") as r:
        d = Depot(w, r.port)
        manifest = make_manifest(d, SMALL)
        d.ok("tag", "main", file_of(w, manifest))
        raw = subprocess.run(["skopeo", "inspect", "--raw", "--tls-verify=false",
                              f"docker://127.0.0.1:{r.port}/team/snaps:main"], capture_output=True, check=True).stdout
        assert raw == manifest
        (w.top / "policy.json").write_text('{"default":[{"type":"insecureAcceptAnything"}]}')
        subprocess.run(["skopeo", "--policy", str(w.top / "policy.json"), "copy", "--src-tls-verify=false",
                        "--dest-tls-verify=false", f"docker://127.0.0.1:{r.port}/team/snaps:main",
                        f"docker://127.0.0.1:{r.port}/copy:main"], capture_output=True, check=True)
        copy = Depot(w, r.port, "copy")
        assert copy.ok("manifest", "main") == manifest
        assert copy.get(SMALL)


if __name__ == "__main__":
    sys.exit(main())
