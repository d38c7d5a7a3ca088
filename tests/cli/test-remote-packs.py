"""push: which packs of earlier pushes a snapshot goes on with. Packs are small here, so that there are many."""

import os
import random

from depots import Other, blobs, depot, names_are_complete, pushed
from snaptest import World, main, test

TARGET = 64 << 10  # bytes of a pack
SIZE = 20_000  # of a file of which a pack holds a few
TINY = 300


def fill(top, files, size, seed):
    dice = random.Random(seed)
    for i in range(files):
        path = top / f"d{i % 10}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dice.randbytes(size))


def push(w, target=TARGET):
    w.env["SNAPCOW_PACK_TARGET"] = str(target)
    got = pushed(w.ok("--json", "push", f"{depot(w)}:main"))
    names_are_complete(w)
    return got


def arrives(o, w, sent):
    got = o.ok("--json", "fetch", f"{depot(w)}:main").json("snap.fetch/1")
    assert got["root"] == sent["root"], (got, sent)
    o.ok("check")
    return got


@test
def of_many_full_packs_none_is_sent_again(w: World):
    fill(w.project, 900, SIZE, 1)
    w.ok("init")
    first = push(w)
    assert first["packs"] > 140, first
    (w.project / "d1" / "f1").write_bytes(b"other")
    second = push(w)
    assert second["packs_sent"] == 2 and second["packs"] == first["packs"] + 2, second
    assert second["bytes_sent"] < first["bytes_sent"] / 50, (first, second)
    o = Other(w)
    arrives(o, w, second)
    (w.project / "d2" / "f2").write_bytes(b"another")
    assert arrives(o, w, push(w))["packs_received"] == 2
    o.end()


@test
def many_small_packs_become_few_and_the_large_ones_stay(w: World):
    fill(w.project / "large", 200, SIZE, 2)
    w.ok("init")
    large = push(w)
    o = Other(w)
    arrives(o, w, large)
    fill(w.project / "small", 1200, TINY, 3)
    small = push(w, 1024)
    assert small["packs_sent"] > 140, small
    (w.project / "small" / "d1" / "f1").write_bytes(b"other")
    sent = push(w)
    assert sent["packs"] < large["packs"] + 20, (large, small, sent)
    # Content of large packs is not sent; directories, and what was in small ones, are.
    assert sent["bytes_skipped"] > 180 * SIZE, (large, sent)
    assert 1200 * TINY < sent["bytes_sent"] < 3 * 1200 * TINY, sent
    arrives(o, w, sent)
    new = Other(w, "new")
    arrives(new, w, sent)
    new.end()
    (w.project / "large" / "d1" / "f1").write_bytes(b"one more")
    again = push(w)
    assert again["packs_sent"] == 2 and again["packs"] == sent["packs"] + 2, again
    arrives(o, w, again)
    o.end()


@test
def no_directory_stays_without_what_is_below_it(w: World):
    fill(w.project / "below", 900, TINY, 4)
    w.ok("init")
    first = push(w, 2048)
    for i, path in enumerate(sorted((w.project / "below").glob("d*/f*"))):
        os.utime(path, ns=(0, 1_234_567_890_123_456_789 + 987_654_321 * i))
    # Directories alone, in a pack that is large enough to stay if it were one of content.
    before = set(blobs(w))
    assert push(w)["packs_sent"] == 1 and first["packs"] < 128, first
    assert max(size for name, size in blobs(w).items() if name not in before) > TARGET / 2
    fill(w.project / "more", 300, TINY, 5)
    assert push(w, 1024)["packs"] > 140
    (w.project / "more" / "d1" / "f1").write_bytes(b"other")
    sent = push(w)
    assert sent["packs"] < 20, sent
    o = Other(w)
    arrives(o, w, sent)
    o.end()


@test
def packs_that_hold_the_past_alone_do_not_pile_up(w: World):
    fill(w.project, 200, SIZE, 0)
    w.ok("init")
    first, most = push(w), 0
    for i in range(1, 7):
        fill(w.project, 200, SIZE, i)
        got = push(w)
        most = max(most, got["packs"])
    assert 128 < most < 6 * first["packs"], (most, first)
    assert got["packs"] < 4 * first["packs"], (got, first)
    o = Other(w)
    arrives(o, w, got)
    o.end()


if __name__ == "__main__":
    main()
