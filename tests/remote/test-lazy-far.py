#!/usr/bin/env python3
"""clone --lazy from ssh:// and s3://: names first, bytes by pieces, connections that break and stores that are away."""

import _strptime  # noqa: F401  (an ordinary user may not find these two any more)
import encodings.idna  # noqa: F401
import os
import signal
import sys
from pathlib import Path

from remotetest import CLIENT  # noqa: F401  (finds the modules below)

sys.path.append(str(Path(__file__).resolve().parents[1] / "live"))

import livetest  # noqa: E402  (found through the line above)
from lazytest import Far, reads_as_eio, try_read, until  # noqa: E402
from s3server import S3  # noqa: E402
from servers import Fault, Proxy  # noqa: E402
from snaptest import gone, test  # noqa: E402
from sshtest import StandIn, by_sshd  # noqa: E402

FEW = [f"d{i % 5}/f{i}" for i in range(0, 150, 7)]


def by_ssh(w):
    """Through the stand-in, which breaks connections on order."""
    ssh = StandIn(w)
    w.env.update(ssh.env)
    far = Far(w)
    far.push(f"ssh://far{w.top}/depot")
    return far, ssh


class Bucket(Far):
    """A store of S3 with a snapshot, and a proxy before it."""

    def __enter__(self):
        self.s3 = S3().__enter__()
        self.proxy = Proxy(self.s3.port).__enter__()
        self.w.env.update(AWS_ACCESS_KEY_ID="AKTEST", AWS_SECRET_ACCESS_KEY="secret/with+signs", AWS_REGION="us-east-1",
                          AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.proxy.port}")
        self.push("s3://snaps/team/app")
        self.proxy.seen.clear()
        return self

    def __exit__(self, *why):
        super().__exit__(*why)
        self.proxy.__exit__(*why)
        self.s3.__exit__(*why)


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    assert gone(pid, 20)


def few_came(far):
    came = sum(f.stat().st_blocks * 512 for f in (far.w.top / "store2" / "remote" / "lazy").rglob("*.pack"))
    assert came < 6 << 20, f"{came} bytes came for a few"


@test
def a_read_over_ssh_brings_the_frame_that_it_needs(w):
    far, _ = by_ssh(w)
    with far:
        clone = far.clone()
        assert sorted(p.name for p in clone.iterdir()) == sorted(p.name for p in w.project.iterdir())
        far.is_right(clone, "d1/f1")
        few_came(far)
        assert far.status()["fetching"]
        far.finish(clone)


@test
def a_real_sshd_serves_a_lazy_clone(w):
    with by_sshd(w) as sshd:
        w.env.update(sshd.env())
        far = Far(w)
        far.push(sshd.url(f"{w.top}/depot"))
        with far:
            clone = far.clone()
            for path in FEW:
                far.is_right(clone, path)
            far.finish(clone)


@test
def connections_of_ssh_that_break_are_made_again(w):
    far, ssh = by_ssh(w)
    with far:
        clone = far.clone()
        far.is_right(clone, "d1/f1")
        # Whatever connection there is ends with its process; those that follow break amid questions and frames.
        fetcher, = w.daemons(b"snap-fetch")
        ssh.faults("die", "in 1", "out 8", "out 60000", "in 100", "out 3000")
        kill(fetcher)
        far.snap("list").ends(0)
        for path in FEW:
            until(lambda path=path: try_read(clone / path))
            far.is_right(clone, path)
        until(lambda: ssh.file.read_text() == "" or try_read(clone / "big"))
        far.finish(clone)


@test
def a_machine_that_is_away_is_eio_until_it_is_back(w):
    far, ssh = by_ssh(w)
    with far:
        clone = far.clone()
        far.is_right(clone, "d1/f1")
        fetcher, = w.daemons(b"snap-fetch")
        ssh.faults(*["die"] * 10_000)
        kill(fetcher)
        far.snap("list").ends(0)
        reads_as_eio(clone / "big")
        got = far.status()
        assert got["unread"] == ["big"] and got["stuck"], got
        far.snap("diff", "look").fails(1, "not fetched")
        far.is_right(clone, "d1/f1")
        ssh.faults()
        until(lambda: try_read(clone / "big"))
        far.finish(clone)


@test
def a_read_asks_a_bucket_for_the_frame_that_it_needs(w):
    with Bucket(w) as far:
        clone = far.clone()
        before = len(far.proxy.asked("GET", "/blobs/"))
        far.is_right(clone, "d1/f1")
        asked = far.proxy.asked("GET", "/blobs/")[before:]
        assert 1 <= len(asked) <= 2 and all("Range" in q[2] for q in asked), asked
        few_came(far)
        far.finish(clone)


@test
def failures_of_a_bucket_and_wrong_bytes_are_never_shown(w):
    with Bucket(w) as far:
        clone = far.clone()
        for kind, at in (("status", 500), ("status", 503), ("wrong", 5000), ("cut-answer", 1000), ("no-range", 0)):
            far.proxy.faults.append(Fault("GET", "/blobs/", kind, at=at, times=1))
        for path in FEW:
            far.is_right(clone, path)
        far.finish(clone)


@test
def a_bucket_without_the_key_or_the_blob_is_eio_and_named(w):
    with Bucket(w) as far:
        clone = far.clone()
        far.is_right(clone, "d1/f1")
        keys, far.s3.keys = far.s3.keys, {}
        reads_as_eio(clone / "big")
        got = far.status()
        assert got["unread"] == ["big"] and got["stuck"], got
        far.s3.keys = keys
        until(lambda: try_read(clone / "big"))
        packs = {k: t for k, t in far.s3.things.items() if "/blobs/" in k and len(t.data) > 1 << 20}
        for key in packs:
            del far.s3.things[key]
        bad = next(p for p in FEW if not try_read(clone / p))
        got = far.status()
        assert bad in got["unread"] and "is not there" in got["stuck"], got
        far.s3.things.update(packs)
        until(lambda: try_read(clone / bad))
        far.finish(clone)


if __name__ == "__main__":
    sys.exit(livetest.main())
