"""Every command given nonsense: a sentence, the documented status, and nothing lost.

The tables go over all commands that the program says it has, so that a new one is tried too: all
with SNAP_TESTS_LONG=1, else those that a seed chooses.
"""

import json
import os
import shutil
import subprocess
import sys

from snaptest import SNAP, Skip, World, flip, main, some, test

NOBODY = 65534

# What a command needs so that it has something to do; the others need nothing.
WORDS = {
    "allow": ["a.example:443", "try"],
    "answer": ["0123abcd", "deny"],
    "approve": ["0123"],
    "attach": ["0123456789ab"],
    "audit": ["verify"],
    "bisect": ["@", "@", "--", "true"],
    "blame": ["README.md"],
    "cancel": ["0123456789ab"],
    "compare": ["@", "try"],
    "completion": ["bash"],
    "diff": ["@"],
    "edit": ["try:README.md", "--old", "f", "--new", "g"],
    "export": ["@", "--tar", "out.tar"],
    "experiment": ["--arm", "a=true"],
    "fetch": ["dir:/nowhere/at/all"],
    "fsmonitor": ["--setup", "try"],
    "image": ["show", "none"],
    "import": ["/dev/null"],
    "mount": ["try"],
    "policy": ["explain", "try"],
    "pull": ["dir:/nowhere/at/all"],
    "push": ["dir:/nowhere/at/all"],
    "reject": ["0123", "-m", "x"],
    "replay": ["0123456789ab"],
    "rm": ["try"],
    "run": ["--", "true"],
    "ship": ["try"],
    "show": ["@"],
    "top": ["-n", "1"],
    "try": ["--discard", "--", "true"],
    "ui": ["--listen", "nowhere"],
    "umount": ["try"],
    "wait": ["0123456789ab"],
    "why": ["README.md"],
    "worker": ["status", "--queue", "nats://127.0.0.1:1"],
    "write": ["try:README.md", "--content", "x"],
}

# They say the same whatever the directory and the store.
ANYWHERE = {
    "agents",
    "completion",
    "doctor",
    "help",
    "mcp",
    "profile",
    "remote",
    "serve",
    "tasks",
    "ui",
    "version",
    "worker",
}

# The code of a failure must be one of these (docs/man/snapcow-exit-codes.7.scd).
CODES = {
    1: {"E_PERMISSION", "E_EXISTS", "E_NO_SPACE", "E_NO_MEMORY", "E_DAEMON", "E_FAILED"},
    2: {"E_USAGE"}, 4: {"E_NOT_FOUND", "E_NO_PROJECT"}, 5: {"E_CONFLICT"}, 6: {"E_STALE"},
    7: {"E_REFUSED"}, 8: {"E_CHECK_FAILED"}, 9: {"E_LIMIT"}, 11: {"E_BUSY", "E_VERSION"}, 12: {"E_DAMAGED"},
    13: {"E_MISSING", "E_VERSION"},
}
CODES[125] = set().union(*CODES.values())


def table(w):
    return w.ok("help", "--json").json("snap.help/1")["commands"]


def calls(w, but=()):
    """Each command with words that make sense."""
    for c in table(w):
        if c["name"] not in but:
            yield c, [c["name"], *WORDS.get(c["name"], [])]


def early(args, *options):
    """With options where they are ours, and not behind a "--"."""
    return [args[0], *options, *args[1:]]


def told(result, *statuses):
    """It failed as the contract has it, for programs: one object, a code that fits the status."""
    assert result.status in statuses, f"want one of {statuses}\n{result}"
    assert result.out.count(b"\n") == 1, f"not one line\n{result}"
    got = json.loads(result.out)
    assert got["schema"] == "snap.error/1" and got["error"]["message"], str(result)
    assert got["error"]["code"] in CODES[result.status], str(result)
    assert b"Sanitizer" not in result.err and result.err == b"", str(result)
    return got["error"]


def own(args, status):
    """What a command ends with that cannot do its work: `run` and `try` have a code of their own."""
    return 125 if args[0] in ("run", "try") and status != 2 else status


def fails_either_way(w, args, *statuses, **more):
    status = told(w.snap(*early(args, "--json"), **more), *statuses)
    result = w.snap(*args, **more)
    assert result.status in statuses and result.err.startswith(b"error: "), str(result)
    return status


# --- the command line ---------------------------------------------------------------------------

@test
def an_option_that_nobody_has_is_usage_everywhere(w: World):
    for c, args in calls(w):
        w.snap(*early(args, "--bogus")).fails(2)
        told(w.snap(*early(args, "-\u00e9", "--json")), 2)
    for bogus in ("--json=yes", "--=", "-=", "---", "--no-json"):
        w.snap("log", bogus).fails(2)
    assert not w.store.exists()


@test
def a_value_of_the_wrong_type_is_usage_for_every_option(w: World):
    """Every option that takes a number, a size or a time, found by what help calls its value."""
    wrong = {"N": ["", "-1", "99999999999999999999"], "SIZE": ["", "2X", "99999999999E"],
             "TIME": ["7", "1y", "99999999999w"], "auto|always|never": ["", "maybe"]}
    tried = 0
    every = [(args, option) for c, args in calls(w) for option in c["options"]]
    every += [(["log"], o) for o in w.ok("help", "--json").json("snap.help/1")["options"]]
    for args, option in some([one for one in every if one[1]["value"] in wrong], 2):
        for value in wrong[option["value"]]:
            w.snap(*early(args, f"--{option['long']}={value}")).fails(2, option["long"])
            tried += 1
    assert tried > 15
    assert not w.store.exists()


@test
def a_value_that_is_missing_is_usage(w: World):
    every = [(c["name"], option) for c, _ in calls(w) for option in c["options"] if option["value"]]
    for command, option in some(every, 3):
        name = f"-{option['short']}" if option["short"] else f"--{option['long']}"
        w.snap(command, name).fails(2, "needs a value")


@test
def too_many_words_are_usage(w: World):
    for c, args in calls(w):
        if c["words"] and "..." in c["words"]:
            continue
        w.snap(*args, *["word"] * 5).fails(2)
    for c in table(w):
        if c["words"] and not c["words"].startswith("["):
            w.snap(c["name"]).fails(2, c["words"])
    assert not w.store.exists()


@test
def words_that_are_no_names_never_do_harm(w: World):
    """Whatever stands where a clone or state stands: not found, or no name at all."""
    w.take("-t", "v1")
    w.ok("clone", "-n", "try")
    before = w.ok("-q", "log").out
    odd = ["", "..", "a/b", "@@", "@-99999999999999999999", "%s%n\n", "\udcff", "x" * 5000]
    names = [c["name"] for c in table(w) if c["words"]]
    pairs = [(name, word) for name in names for word in odd
             if name not in ("init", "help", "completion", "run", "tag")]
    for name, word in some(pairs, 3):
        result = w.snap(name, "--json", "--", os.fsencode(word))
        if result.status != 0:
            told(result, 2, 4)
    assert w.ok("-q", "log").out == before and b"try" in w.ok("-q", "ls").out
    w.ok("check")


# --- the place ------------------------------------------------------------------------------------

@test
def a_directory_that_is_gone_is_not_found(w: World):
    w.take()
    lost = w.top / "lost"
    for c, args in some(calls(w, ANYWHERE), 2):
        lost.mkdir()
        done = subprocess.run(["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", SNAP,
                               *early(args, "--json")],
                              cwd=lost, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        got = json.loads(done.stdout)
        assert done.returncode == own(args, 4) and got["error"]["code"] == "E_NOT_FOUND", (args, done)
    for name in ("version", "help"):
        lost.mkdir()
        subprocess.run(["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", SNAP, name], cwd=lost,
                       env=w.env, stdout=subprocess.DEVNULL, check=True)


def as_user(w):
    if os.geteuid() != 0:
        raise Skip("root is needed to be somebody else")
    program = w.top / "snapcow"
    shutil.copy(SNAP, program)
    w.top.chmod(0o755)
    return {"program": program, "user": NOBODY, "group": NOBODY, "extra_groups": []}


@test
def the_store_of_another_user_is_closed(w: World):
    w.take()
    w.ok("clone", "-n", "try")
    who = as_user(w)
    for c, args in some(calls(w, ANYWHERE), 2):
        told(w.snap(*early(args, "--json"), **who), own(args, 1))
    w.stop()
    for c, args in some(calls(w, ANYWHERE), 2):
        told(w.snap(*early(args, "--json"), **who), own(args, 1))
    w.ok("check")
    assert b"try" in w.ok("-q", "ls").out


@test
def where_no_daemon_can_be_there_is_a_sentence(w: World):
    """A store on a disk that is mounted read-only: no log can be made, not even to look."""
    if os.geteuid() != 0:
        raise Skip("mounting takes root")
    w.take()
    w.ok("clone", "-n", "try")
    w.ok("umount", "try")
    w.stop()
    program = w.top / "wrapped"
    program.write_text("#!/bin/sh\nexec unshare -m sh -ec 'mount --bind \"$SNAPCOW_STORE\" "
                       "\"$SNAPCOW_STORE\"; mount -o remount,bind,ro \"$SNAPCOW_STORE\"; "
                       f"exec \"$@\"' sh '{SNAP}' \"$@\"\n")
    program.chmod(0o755)
    for c, args in some(calls(w, ANYWHERE | {"answer", "stop"}), 2):
        error = told(w.snap(*early(args, "--json"), program=program), own(args, 1))
        assert error["code"] == "E_PERMISSION", error
    w.ok("stop", program=program)
    w.ok("check")


# --- the store ------------------------------------------------------------------------------------

@test
def a_store_that_is_no_store_is_damage_for_every_command(w: World):
    w.take()
    w.stop()
    shutil.rmtree(w.store / "run")
    for name in ("meta.db", "chunks.db"):
        whole = (w.store / name).read_bytes()
        for bad in (b"no database " * 400, whole[:100]):
            (w.store / name).write_bytes(bad)
            for c, args in some(calls(w, ANYWHERE | {"answer", "stop"}), 3):
                result = w.snap(*early(args, "--json"))
                if result.status != 0 or c["name"] != "check":
                    told(result, own(args, 12))
        (w.store / name).write_bytes(whole)
        for log in w.store.glob("*-wal"):
            log.unlink()
    w.ok("check")
    assert w.ok("show", "@:README.md").out == b"first\n"


@test
def a_damaged_tree_is_damage_and_the_rest_stays_readable(w: World):
    (w.project / "src" / "blob").write_bytes(os.urandom(3000))
    first = w.take()
    blob = (w.project / "src" / "blob").read_bytes()
    w.stop()
    flip(w.store / "chunks.db", blob[100:164])
    w.snap("check").ends(12)
    w.snap("show", "@:src/blob").fails(12)
    assert w.ok("show", "@:README.md").out == b"first\n"
    path = w.ok("clone", "-n", "try", "--from", "@").out.decode().strip()
    with open(os.path.join(path, "README.md"), "rb") as f:
        assert f.read() == b"first\n"
    try:
        with open(os.path.join(path, "src", "blob"), "rb") as f:
            f.read()
        raise AssertionError("damaged bytes were handed out")
    except OSError:
        pass
    assert w.ok("-q", "log").out.decode().split()[-1] == first


@test
def a_full_disk_loses_nothing(w: World):
    """A store on a disk of 8 MiB that fills up: the status is 1, and what was there is there."""
    if os.geteuid() != 0:
        raise Skip("mounting takes root")
    w.store.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", w.store], check=True)
    try:
        first = w.take("-t", "v1")
        (w.project / "blob").write_bytes(os.urandom(16 << 20))
        error = told(w.snap("snapshot", "--json"), 1)
        assert error["code"] == "E_NO_SPACE", error
        told(w.snap("clone", "-n", "try", "--json"), 1)
        assert w.ok("-q", "log").out.decode().split() == [first]
        assert w.ok("show", "v1:README.md").out == b"first\n"
        (w.project / "blob").unlink()
        w.ok("gc")
        w.ok("check")
        w.ok("snapshot")
        w.ok("rm", w.ok("-q", "clone", "-n", "try").out and "try")
        w.ok("check")
    finally:
        w.snap("stop", "--force")
        subprocess.run(["umount", w.store], check=True)


if __name__ == "__main__":
    sys.exit(main())
