"""What a hint says to type does no less than what was typed."""

import os
import random
import shlex
import sys
import tarfile

from promotetest import clone, promote
from snaptest import World, main, test


def hints(w, status, *args, **more):
    """The words of each, without the program's name."""
    error = w.snap(*args, **more).ends(status).err.decode()
    return [shlex.split(line.removeprefix("hint: "), comments=True)[1:] for line in error.splitlines()
            if line.startswith("hint: ")]


def quarrel(w):
    (w.project / "both").write_text("first\n")
    path = clone(w)
    (path / "both").write_text("of the clone\n")
    (w.project / "both").write_text("of the project\n")
    return path


@test
def a_promotion_that_is_to_be_checked_is_checked_when_it_is_tried_again(w: World):
    path = quarrel(w)
    got = hints(w, 5, "promote", "--check", "make 'it' so", "try")
    assert got[0] == ["promote", "--conflict", "markers", "--check", "make 'it' so", "try"], got
    got = hints(w, 5, "promote", "try", "--conflict=stop", "--path", "--conflict", "--path", "both")
    assert got[0] == ["promote", "--conflict", "markers", "try", "--path", "--conflict", "--path",
                      "both"], got
    got = hints(w, 5, "-C", str(w.project), "promote", "try", cwd=w.top)
    assert got[0] == ["-C", str(w.project), "promote", "--conflict", "markers", "try"], got
    got = hints(w, 5, "promote", "-C", str(w.project), "try", cwd=w.top)
    assert got[0] == ["-C", str(w.project), "promote", "--conflict", "markers", "try"], got
    got = hints(w, 5, "rebase", "--markers", "diff3", "try")
    assert got[0] == ["rebase", "--conflict", "markers", "--markers", "diff3", "try"], got
    (path / "both").write_text("first\n")
    (path / ".envrc").write_text("export A=b\n")
    (path / ".npmrc").write_text("x=y\n")
    got = hints(w, 7, "promote", "--allow", ".npmrc", "--check", "true", "try")
    assert got[0] == ["promote", "--allow", ".envrc", "--allow", ".npmrc", "--check", "true",
                      "try"], got


@test
def an_undo_names_what_it_takes_back(w: World):
    path = clone(w)
    (path / "README.md").write_text("second\n")
    done = promote(w, "try")["promotion"]
    (w.project / "README.md").write_text("third\n")
    got = hints(w, 5, "undo", "--markers", "diff3")
    assert got[0] == ["undo", "--conflict", "markers", "--markers", "diff3", done], got
    got = hints(w, 5, "undo", done[:8])
    assert got[0] == ["undo", "--conflict", "markers", done[:8]], got
    w.snap("undo").fails(5, "  # put both versions, marked, into the project's files\n",
                         "  # the file after the change to be undone\n", "  # the file before that change\n")


@test
def whatever_was_typed_is_in_the_hint(w: World):
    seed = int(os.environ.get("SNAP_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"# SNAP_SEED={seed}")
    rng = random.Random(seed)
    quarrel(w)
    pieces = [["--check", "true"], ["--check=a b"], ["--path", "both"], ["--exclude", "-x"],
              ["--allow", "it's"], ["--markers", "zdiff3"], ["-y"], ["try"]]
    for _ in range(25):
        some = rng.sample(pieces[:-1], rng.randrange(len(pieces))) + [["try"]]
        rng.shuffle(some)
        typed = [word for piece in some for word in piece]
        got = hints(w, 5, "promote", *typed)
        assert got[0] == ["promote", "--conflict", "markers", *typed], (typed, got)


@test
def a_value_that_an_option_refuses_leads_to_the_help_of_the_command(w: World):
    w.take()
    for args, said in ((["clone", "--count", "0"], "option '--count' takes 1 to 1000"),
                       (["clone", "--count", "1001"], "option '--count' takes 1 to 1000"),
                       (["run", "--cpus", "x", "true"],
                        "'x' is not a number of processors such as 2 or 0.5"),
                       (["run", "--net", "x", "true"], "'x' is not one of none"),
                       (["bisect", "-j", "0", "a", "b", "--", "true"], "takes 1 to 64"),
                       (["promote", "--conflict", "x", "try"], "'x' is not one of stop"),
                       (["diff", "--stat", "--name-status"], "do not go together"),
                       (["audit", "sign"], "'audit sign' needs --key"),
                       (["edit", "try:README.md"], "'edit' needs '--old' and '--new'"),
                       (["approve", "--show", "x"], "--show needs --at"),
                       (["reject", "x"], "'reject' needs -m WHY"),
                       (["policy", "what"], "'policy' does not know 'what'")):
        got = hints(w, 2, *args)
        assert got == [["help", args[0]]], (args, got)
        w.snap(*args).fails(2, said)
    assert hints(w, 2, "watch", "test") == [["watch", "status"]]
    w.snap("watch", "test").fails(2, "'watch test' needs the name of a rule")


@test
def a_name_in_a_hint_is_one_that_a_shell_reads_back(w: World):
    w.take("-t", "a;b")
    assert hints(w, 4, "show", "a;b:nope") == [["show", "a;b:"]]
    w.ok("show", "a;b:")
    clone(w)
    kept = w.ok("--json", "artifact", "save", "try", "README.md").json("snap.artifact/1", "artifact")["artifact"]
    w.ok("artifact", "get", kept, "--to", "my report")
    (again,) = hints(w, 1, "artifact", "get", kept, "--to", "my report")
    assert again == ["artifact", "get", kept, "--to", "my report-again"], again
    w.ok(*again)
    with tarfile.open(w.top / "one.tar", "w") as tar:
        tar.add(w.project / "README.md", "README.md")
    w.ok("import", str(w.top / "one.tar"))
    other, replace = hints(w, 1, "import", str(w.top / "one.tar"))
    assert other == ["import", "--name", "one-2", str(w.top / "one.tar")], other
    w.ok(*other)
    w.ok(*replace)
    (other,) = hints(w, 1, "import", "--name", "try", str(w.top / "one.tar"))
    assert other == ["import", "--name", "try-2", str(w.top / "one.tar")], other
    w.ok(*other)


if __name__ == "__main__":
    sys.exit(main())
