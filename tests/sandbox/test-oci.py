#!/usr/bin/env python3
"""Filters from profiles in the JSON of OCI and Docker."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandboxtest import ENOSYS, EPERM, SETID, main, parse_attempts, test  # noqa: E402

EINVAL, EFAULT = 22, 14

ALLOW, ERRNO = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"


def profile(box, *syscalls, default=ALLOW, **more):
    path = box.top / "profile.json"
    path.write_text(json.dumps({"defaultAction": default, "syscalls": list(syscalls), **more}) + "\n")
    return ["--profile", path]


def rule(*names, action=ERRNO, **more):
    return {"names": list(names), "action": action, **more}


def made(box, *rules, act="mkdir made && echo made"):
    return box.sh(act, options=profile(box, *rules)).out == b"made\n"


@test
def a_profile_stands_in_the_place_of_the_list(box):
    # Allowed by the profile, refused by our own list; the other walls are as they were.
    got = box.run("./attempts", "kcmp", "mount", "shadow", options=profile(box)).ends(0)
    got = parse_attempts(got.out.decode())
    assert got == {"kcmp": 0, "mount": EPERM, "shadow": 13}, got
    assert parse_attempts(box.run("./attempts", "kcmp").ends(0).out.decode())["kcmp"] == EPERM


@test
def no_profile_lets_a_run_set_set_id_bits(box):
    names = [*SETID, "setid_openat2", "io_uring"]
    outside = parse_attempts(box.outside("./attempts", *names).stdout.decode())
    assert set(outside.values()) <= {0, EINVAL, EFAULT}, outside
    got = parse_attempts(box.run("./attempts", *names, options=profile(box)).ends(0).out.decode())
    assert got.pop("setid_openat2") == ENOSYS, got
    assert set(got.values()) == {EPERM} and len(got) == len(SETID) + 1, got


@test
def rules_refuse_with_their_errno(box):
    assert made(box)
    (box.project / "made").rmdir()
    got = box.sh("mkdir made", options=profile(box, rule("mkdir", "mkdirat", errnoRet=28)))
    assert got.status == 1 and b"No space left" in got.err, str(got)
    got = box.sh("mkdir made", options=profile(box, rule("mkdir", "mkdirat")))
    assert b"not permitted" in got.err, str(got)


@test
def arguments_are_compared(box):
    two = {"index": 0, "value": 2, "op": "SCMP_CMP_EQ"}
    script = "import socket\nfor f in (1, 2):\n  try: socket.socket(f); print(f)\n  except OSError: print('no')"
    got = box.python(script, options=profile(box, rule("socket", args=[two])))
    assert got.ends(0).lines() == ["1", "no"], str(got)


@test
def a_run_has_no_capability_to_be_let_through_for(box):
    mkdir = ("mkdir", "mkdirat")
    assert made(box, rule(*mkdir, includes={"caps": ["CAP_SYS_ADMIN"]}))
    (box.project / "made").rmdir()
    assert not made(box, rule(*mkdir, excludes={"caps": ["CAP_SYS_ADMIN"]}))


@test
def rules_are_for_kernels_and_architectures(box):
    mkdir = ("mkdir", "mkdirat")
    assert not made(box, rule(*mkdir, includes={"minKernel": "4.8"}))
    assert not made(box, rule(*mkdir, includes={"arches": ["amd64", "arm64"]}))
    assert made(box, rule(*mkdir, includes={"minKernel": "99.0"}))
    (box.project / "made").rmdir()
    assert made(box, rule(*mkdir, includes={"arches": ["s390x"]}))
    (box.project / "made").rmdir()
    assert made(box, rule(*mkdir, excludes={"arches": ["amd64", "arm64"]}))


@test
def names_that_nobody_knows_are_left_out(box):
    assert made(box, rule("no_such_call_yet"))


@test
def a_profile_that_is_none_is_told(box):
    path = box.top / "wrong.json"
    for text, word in (("{", "JSON"), ("[]", "JSON"), ("{}", "defaultAction"),
                       ('{"defaultAction": "SCMP_ACT_NOTIFY", "syscalls": []}', "SCMP_ACT_NOTIFY"),
                       ('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["open"]}]}',
                        "action"),
                       ('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["open"], "action":'
                        ' "SCMP_ACT_ERRNO", "args": [{"index": 9, "value": 1, "op": "SCMP_CMP_EQ"}]}]}',
                        "argument 9"),
                       ('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["open"], "action":'
                        ' "SCMP_ACT_ERRNO", "args": [{"index": 1, "value": 1, "op": "SCMP_CMP_X"}]}]}',
                        "SCMP_CMP_X")):
        path.write_text(text)
        got = box.run("true", options=["--profile", path]).ends(2)
        assert word in got.err.decode(), (text, str(got))


@test
def a_filter_that_allows_too_little_runs_nothing(box):
    """What has to be done behind the filter fails, or even the end of the process that did it."""
    for calls in (["prlimit64"], ["sendmsg"], ["close_range"], ["sendmsg", "exit_group", "exit"]):
        got = box.sh("echo ran", options=profile(box, rule(*calls)))
        assert got.status == 125 and got.out == b"" and b"error: " in got.err, (calls, str(got))
    got = box.sh("echo ran", options=profile(box, rule("execve"))).ends(126)
    assert got.report["exec_failed"], str(got)


if __name__ == "__main__":
    sys.exit(main())
