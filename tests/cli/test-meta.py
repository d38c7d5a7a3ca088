"""Labels of snapshots: kept, shown, found again, and bounded."""

import sys

from snaptest import World, main, needs_fuse, test


def log(w, *args):
    return w.ok("log", "--json", *args).json("snap.log/1", "snapshots")["snapshots"]


def ids(w, *args):
    return [s["snapshot"] for s in log(w, *args)]


@test
def a_label_is_kept_shown_and_found_again(w: World):
    first = w.take("--meta", "step=1", "--meta", "who=a b=c", "--meta", "empty=")
    (w.project / "README.md").write_text("second\n")
    second = w.take("--meta", "step=2")
    plain = w.take()
    assert log(w)[-1]["meta"] == {"step": "1", "who": "a b=c", "empty": ""}, log(w)
    assert log(w)[0]["meta"] == {}
    w.ok("stop")
    assert ids(w, "--meta", "step") == [second, first]
    assert ids(w, "--meta", "step=1") == [first]
    assert ids(w, "--meta", "step=1", "--meta", "who=a b=c") == [first]
    assert ids(w, "--meta", "step=1", "--meta", "step=2") == []
    assert ids(w, "--meta", "step=") == [] and ids(w, "--meta", "empty=") == [first]
    assert ids(w, "--meta", "ste") == [] and ids(w) == [plain, second, first]
    assert w.ok("show", "--json", first).json("snap.show/1")["meta"]["who"] == "a b=c"
    assert b"empty= step=1 who=a b=c\n" in w.ok("show", first).out
    assert b"step=2\n" in w.ok("log").out


@test
def a_snapshot_of_a_clone_has_labels_too_and_the_event_tells_them(w: World):
    needs_fuse()
    w.ok("clone", "-n", "try")
    labelled = w.take("try", "--meta", "step=3")
    assert ids(w, "try", "--meta", "step=3") == [labelled]
    assert b'"meta":{"step":"3"}' in w.ok("events", "--json").out


@test
def what_is_no_label_is_refused_and_nothing_is_taken(w: World):
    w.take()
    many = [word for i in range(17) for word in ("--meta", f"k{i}=v")]
    for args, why in ((["--meta", "step"], "is not KEY=VALUE"), (["--meta", "=v"], "is not KEY=VALUE"),
                      (["--meta", "a b=v"], "is not KEY=VALUE"), (["--meta", ""], "is not KEY=VALUE"),
                      (["--meta", "k=a\nb=c"], "not printable"), (["--meta", "k=\x1b[2J"], "not printable"),
                      (["--meta", "k=" + "v" * 513], "513 bytes, above 512"),
                      (["--meta", "k" * 65 + "=v"], "65 bytes, above 64"),
                      (["--meta", "k=1", "--meta", "k=2"], "given twice"), (many, "17 keys, above 16")):
        failed = w.snap("snapshot", *args).ends(2)
        assert why.encode() in failed.err, failed
    assert len(log(w)) == 1
    w.take(*many[2:], "-m", "sixteen are allowed")
    w.take("--meta", "k" * 64 + "=" + "v" * 512)


if __name__ == "__main__":
    sys.exit(main())
