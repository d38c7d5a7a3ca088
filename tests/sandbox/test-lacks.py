#!/usr/bin/env python3
"""Machines that lack something: the documented refusal or the documented walls, never less."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandboxtest import Skip, can_group, is_root, main, test  # noqa: E402

ENOSPC, EPERM, EINVAL = 28, 1, 22


def lacking(box, call, *more, command=("echo", "ran")):
    return box.run(*command, options=["--lack", call, *more])


@test
def without_landlock_nothing_runs_unless_that_is_said(box):
    lacking(box, "landlock_create_ruleset").refused("this kernel has no Landlock")
    lacking(box, f"landlock_create_ruleset={EPERM}").refused(
        "a filter of system calls refuses Landlock", "--allow-missing landlock")
    got = lacking(box, "landlock_create_ruleset", "--allow-missing", "landlock").ends(0)
    assert got.lines() == ["ran"] and "landlock" not in got.report["walls"], str(got)
    # Once begun it is finished or refused, whatever may be missing.
    lacking(box, f"landlock_restrict_self={EINVAL}", "--allow-missing", "landlock").refused("Landlock")


@test
def without_user_namespaces_nothing_runs(box):
    lacking(box, "clone3").refused("namespaces of the run", "clone3")
    lacking(box, f"clone3={ENOSPC}").refused("namespaces of the run", "max_user_namespaces")
    got = lacking(box, f"clone3={EPERM}")
    got.refused("namespaces of the run", *([] if is_root() else ["user namespaces are not allowed"]))


@test
def where_no_key_can_be_reached_a_run_needs_none_of_its_own(box):
    """As below the filters of Docker and nspawn, which a run inherits."""
    calls = ["keyctl", "add_key", "request_key"]
    every = [word for call in calls for word in ("--lack", f"{call}={EPERM}")]
    assert box.run("echo", "ran", options=every).ends(0).lines() == ["ran"]
    for one in range(2, len(every), 2):
        box.run("echo", "ran", options=every[:one] + every[one + 2:]).refused("keys of its own")
    lacking(box, f"keyctl={EPERM}").refused("keys of its own")


@test
def where_user_namespaces_are_used_up_nothing_runs(box):
    """For real: in a namespace whose root has forbidden more of them."""
    _, words = box.words([], ["echo", "ran"])
    act = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    got = box.outside("unshare", "-Ur", "sh", "-c", act, "sh", *words, env=box.env)
    assert got.returncode == 125 and got.stdout == b"", got
    assert b"max_user_namespaces" in got.stderr, got


@test
def the_root_of_a_user_namespace_is_as_any_user(box):
    _, words = box.words([], ["sh", "-c", "id -u; touch made; cat /proc/self/uid_map"])
    got = box.outside("unshare", "-Ur", *words, env=box.env)
    assert got.returncode == 0 and got.stdout.split()[:2] == [b"0", b"0"], got
    assert (box.project / "made").exists()


@test
def without_a_call_of_the_set_up_nothing_runs(box):
    calls = ["openat2", "open_tree", "mount_setattr", "move_mount", "fsopen", "fsconfig", "fsmount",
             "pivot_root", "umount2", "sethostname", "unshare", "setresuid", "setresgid", "capset",
             "setsid", "close_range", "fchdir", "symlinkat", "signalfd4",
             "timerfd_create", "socketpair"]
    for call in calls:
        got = lacking(box, f"{call}={EPERM}", command=("sh", "-c", "echo ran > ran"))
        assert got.status == 125 and not (box.project / "ran").exists(), f"{call}: {got}"
        assert got.err.startswith(b"error: ") and got.err.count(b"\n") == 1, f"{call}: {got}"
        assert got.report["walls"] == [], f"{call}: {got}"


@test
def without_cgroups_the_documented_walls_stand(box):
    if not is_root():
        raise Skip("only root can take them away")
    if not can_group():
        raise Skip("there are none here")
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"], check=True)
    try:
        box.run("true", options=["--mem", "64M"]).refused("memory", "cannot be limited here")
        box.run("true", options=["--cpus-milli", "500"]).refused("share of the processors")
        got = box.run("true", options=["--mem", "64M", "--mem-is-default", "--pids", "64"]).ends(0)
        assert "memory" not in got.report["walls"] and "pids" in got.report["walls"], str(got)
        got = box.run("true", options=["--cpus-milli", "500", "--allow-missing", "cpu"]).ends(0)
        assert "cpu" not in got.report["walls"], str(got)
    finally:
        subprocess.run(["umount", "/sys/fs/cgroup"], check=True)
    assert "memory" in box.run("true", options=["--mem", "64M"]).ends(0).report["walls"]


@test
def files_that_cannot_be_shown_as_root_s_are_refused(box):
    """/proc is a file system without idmapped mounts."""
    if not is_root():
        raise Skip("only a run by root needs them")
    got = box.run("true", options=["--project", "/proc/fs:/mnt"])
    got.refused("'/proc/fs' cannot be shown to a run by root", "idmapped")


@test
def a_proc_with_parts_covered_is_told(box):
    """As in a container; the kernel then gives nobody inside a whole one."""
    if not is_root():
        raise Skip("only root can cover it")
    _, words = box.words([], ["echo", "ran"])
    # The cover counts once it is locked, which a further user namespace sees to.
    act = 'mount -t tmpfs none /proc/fs && exec unshare -Urm "$@"'
    got = box.outside("unshare", "-m", "sh", "-c", act, "sh", *words, env=box.env)
    assert got.returncode == 125 and b"/proc" in got.stderr and got.stdout == b"", got


if __name__ == "__main__":
    sys.exit(main())
