#!/usr/bin/env python3
"""clone REMOTE/NAME through docker's registry: names first, bytes by range requests, and a network that fails."""

import encodings.idna  # noqa: F401  (an ordinary user may not find it any more)
import sys
import time
from pathlib import Path

from remotetest import needs  # finds the modules below

sys.path.append(str(Path(__file__).resolve().parents[1] / "live"))

import lazytest  # noqa: E402  (found through the line above)
import livetest  # noqa: E402
from lazytest import reads_as_eio, try_read, until  # noqa: E402
from servers import Fault, Proxy, Registry  # noqa: E402
from snaptest import test  # noqa: E402


class Far(lazytest.Far):
    """A registry with a snapshot, and a proxy before it."""

    def __enter__(self):
        needs()
        self.registry = Registry(self.w.top / "registry").__enter__()
        self.proxy = Proxy(self.registry.port).__enter__()
        self.push(f"127.0.0.1:{self.proxy.port}/team/app")
        self.proxy.seen.clear()
        return self

    def __exit__(self, *why):
        super().__exit__(*why)
        self.proxy.__exit__(*why)
        self.registry.__exit__(*why)


@test
def a_read_asks_for_the_frame_that_it_needs(w):
    with Far(w) as far:
        clone = far.clone()
        before = len(far.proxy.asked("GET", "/blobs/"))
        assert (clone / "d1" / "f1").read_bytes() == (w.project / "d1" / "f1").read_bytes()
        asked = far.proxy.asked("GET", "/blobs/")[before:]
        assert 1 <= len(asked) <= 2 and all("Range" in q[2] for q in asked), asked
        far.finish(clone)


@test
def a_registry_that_is_killed_is_eio_until_it_is_back(w):
    with Far(w) as far:
        clone = far.clone()
        assert (clone / "d1" / "f1").read_bytes() == (w.project / "d1" / "f1").read_bytes()
        far.registry.stop()
        # Something else than what came along with the first.
        reads_as_eio(clone / "big")
        got = far.status()
        assert got["unread"] == ["big"] and got["stuck"], got
        far.snap("diff", "look").fails(1, "not fetched")
        assert (clone / "d1" / "f1").read_bytes() == (w.project / "d1" / "f1").read_bytes()
        far.registry.start()
        until(lambda: far.status()["stuck"] is None or (clone / "d4" / "f9").read_bytes())
        far.finish(clone)


@test
def a_registry_killed_in_the_middle_of_the_rest_goes_on(w):
    with Far(w) as far:
        clone = far.clone()
        far.proxy.faults.append(Fault("GET", "/blobs/", "cut-answer", at=200_000, times=3))
        far.gate.unlink()
        far.registry.stop()
        time.sleep(0.5)
        far.registry.start()
        far.gate.touch()
        far.finish(clone)


@test
def failures_and_wrong_bytes_on_the_way_are_never_shown(w):
    with Far(w) as far:
        clone = far.clone()
        for kind, at in (("status", 500), ("status", 429), ("wrong", 5000), ("cut-answer", 1000), ("no-range", 0)):
            far.proxy.faults.append(Fault("GET", "/blobs/", kind, at=at, times=1))
        for i in range(0, 150, 7):
            path = f"d{i % 5}/f{i}"
            assert (clone / path).read_bytes() == (w.project / path).read_bytes(), path
        far.finish(clone)


@test
def bytes_that_stay_wrong_are_eio_and_named(w):
    with Far(w) as far:
        clone = far.clone()
        far.proxy.faults.append(Fault("GET", "/blobs/", "wrong", at=100, times=10_000))
        bad = [p for p in clone.glob("d0/f*") if not try_read(p)]
        assert bad, "one byte of the first frame is wrong"
        got = far.status()
        assert got["unread"] == sorted(str(p.relative_to(clone)) for p in bad) and "wrong bytes" in got["stuck"], got
        far.proxy.faults.clear()
        until(lambda: all(try_read(p) for p in bad))
        far.finish(clone)


if __name__ == "__main__":
    sys.exit(livetest.main())
