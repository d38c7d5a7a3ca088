#!/usr/bin/env python3
"""Limits that hold, and results that name them."""

import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandboxtest import (Skip, can_group, eventually, groups, has_ended, main,  # noqa: E402
                         memory_group, processes, test)

HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"
M = 1 << 20


@test
def memory_that_runs_out_kills_inside_the_group_only(box):
    if not can_group():
        raise Skip("no memory group can be made here")
    got = box.python(HOG, options=["--mem", 64 * M]).ends(137)
    assert got.report["oom_killed"] and got.report["limit"] == "memory", str(got)
    assert "memory" in got.report["walls"] and got.report["max_mem"] <= 64 * M, got.report
    # The same amount fits where there is more, and this process is still here.
    fits = "x = bytearray(80 << 20); print(len(x))"
    assert box.python(fits, options=["--mem", 256 * M]).ends(0).lines() == [str(80 << 20)]
    eventually("no group is left", lambda: groups(box.callers) == [])


@test
def a_child_that_ran_out_of_memory_is_told_too(box):
    if not can_group():
        raise Skip("no memory group can be made here")
    got = box.sh(f"python3 -I -c '{HOG}'; echo then $?", options=["--mem", 64 * M]).ends(0)
    assert got.report["oom_killed"] and got.lines() == ["then 137"], str(got)


@test
def memory_in_files_that_are_not_on_disk_counts(box):
    if not can_group():
        raise Skip("no memory group can be made here")
    got = box.sh("head -c 200M /dev/zero > /dev/shm/x; echo $?", options=["--mem", 64 * M])
    assert got.report["oom_killed"], str(got)


@test
def empty_files_that_are_not_on_disk_are_bounded_too(box):
    fill = ("import os\nn = 0\ntry:\n  while n < 100000: open(f'/tmp/{n}', 'x').close(); n += 1\n"
            "except OSError as e: print(n, e.errno)\nelse: print(n, 0)")
    n, errno = map(int, box.python(fill, options=["--tmp", 4 * M]).ends(0).lines()[0].split())
    assert errno == 28 and 1000 < n < 10000, (n, errno)


@test
def what_a_run_watches_leaves_most_to_its_user(box):
    """inotify counts for the user outside, too, who would have none left."""
    act = ("import ctypes\nlibc, n = ctypes.CDLL(None), 0\n"
           "while n < 5000 and libc.inotify_init1(0) >= 0: n += 1\n"
           "print(n, *(open(f'/proc/sys/user/max_inotify_{x}').read().strip() for x in ('instances', 'watches')))")
    most = {x: int(Path(f"/proc/sys/fs/inotify/max_user_{x}").read_text()) for x in ("instances", "watches")}
    n, instances, watches = map(int, box.python(act).ends(0).lines()[0].split())
    assert 0 < n <= instances == most["instances"] // 4 and watches == most["watches"] // 4, (n, instances, watches)


@test
def a_memory_limit_by_name_is_had_or_refused(box):
    if can_group():
        raise Skip("a memory group can be made here")
    box.sh("true", options=["--mem", 64 * M]).refused("memory", "cannot be limited here", "cgroup")
    got = box.sh("true", options=["--mem", 64 * M, "--allow-missing", "memory"]).ends(0)
    assert "memory" not in got.report["walls"], got.report


@test
def a_memory_limit_by_default_falls_back_to_each_process(box):
    if can_group():
        raise Skip("a memory group can be made here")
    got = box.python(HOG, options=["--mem", 64 * M, "--mem-is-default"]).ends(1)
    assert b"MemoryError" in got.err and "memory" not in got.report["walls"], str(got)
    assert "rlimits" in got.report["walls"], got.report


@test
def a_fork_bomb_stays_within_its_number(box):
    # Nothing is imported by a child: thirty of them take a minute for that on a slow machine.
    bomb = ("import os, signal\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: signal.pause()\n"
            "    n += 1\nexcept OSError as e: print(n, e.errno)")
    got = box.python(bomb, options=["--pids", 32, "--wall", 60000]).ends(0)
    n, errno = map(int, got.lines()[0].split())
    assert errno == 11 and 25 <= n <= 32, str(got)
    assert "pids" in got.report["walls"], got.report
    if can_group():
        assert got.report["limit"] == "pids", got.report
    # The control: outside as many are no matter.
    assert box.outside("sh", "-c", "for i in $(seq 64); do sleep 0.01 & done; wait").returncode == 0


@test
def a_bomb_that_never_ends_is_ended(box):
    got = box.sh("b() { b | b & }; b; sleep 600", options=["--pids", 64, "--wall", 1000, "--grace", 500])
    assert got.status == 124 and got.report["timed_out"], str(got)


@test
def processors_are_shared_as_told(box):
    if not can_group():
        box.sh("true", options=["--cpus-milli", 500]).refused("share of the processors")
        return
    # Of its own time only: on a slow machine python takes seconds to start.
    burn = ("import time\nbegin, cpu = time.monotonic(), time.process_time()\n"
            "while time.process_time() - cpu < 0.3: pass\nprint((time.monotonic() - begin) / 0.3)")
    got = box.python(burn, options=["--cpus-milli", 200]).ends(0)
    assert "cpu" in got.report["walls"] and float(got.lines()[0]) > 2.5, str(got)


@test
def processor_time_ends_a_run(box):
    burn = "while True: pass"
    got = box.python(burn, options=["--cpu", 1000, "--wall", 120000])
    assert got.report["limit"] == "cpu" and got.status != 0, str(got)
    assert not got.report["timed_out"], got.report


@test
def time_that_is_up_ends_a_run(box):
    got = box.sh("sleep 600", options=["--wall", 200]).ends(124)
    assert got.report["timed_out"] and got.report["limit"] == "time", got.report
    assert got.report["signal"] == signal.SIGTERM, got.report


@test
def who_ignores_the_end_is_ended_with_all_it_started(box):
    script = ("trap '' TERM HUP INT; (setsid sh -c \"trap '' TERM; echo deep; sleep 600; sleep 600\" &) ;"
              " sleep 600; sleep 600")
    got = box.sh(script, options=["--wall", 3000, "--grace", 200]).ends(124)
    assert got.lines() == ["deep"] and got.report["signal"] == signal.SIGKILL, str(got)


@test
def a_file_has_a_size(box):
    got = box.sh("head -c 4M /dev/zero > big; echo $?; stat -c %s big", options=["--fsize", M])
    assert got.lines()[-1] == str(M) and got.lines()[0] != "0", str(got)
    got = box.run("dd", "if=/dev/zero", "of=big", "bs=4M", "count=1", options=["--fsize", M])
    assert got.report["limit"] == "fsize" or got.status == 1, str(got)


@test
def open_files_have_a_number(box):
    count = ("import os\nn = 0\ntry:\n  while True: os.open('/dev/null', 0); n += 1\n"
             "except OSError as e: print(n, e.errno)")
    got = box.python(count, options=["--nofile", 64]).ends(0)
    n, errno = map(int, got.lines()[0].split())
    assert errno == 24 and n < 64, str(got)
    got = box.sh("ulimit -n 1024", options=["--nofile", 64])
    assert got.status != 0, str(got)


@test
def endless_output_is_cut(box):
    got = box.sh("yes | head -c 50M; yes >&2 | head -c 0; echo done > end",
                 options=["--output", M, "--wall", 5000])
    assert len(got.out) + len(got.err) == M and got.report["truncated"], len(got.out)
    assert got.report["limit"] in ("output", "time"), got.report
    got = box.sh("echo short", options=["--output", M]).ends(0)
    assert not got.report["truncated"] and got.report["limit"] is None, got.report


@test
def a_run_goes_before_the_host_when_memory_ends(box):
    (score,) = map(int, box.sh("cat /proc/self/oom_score_adj").ends(0).lines())
    assert score >= max(200, int(Path("/proc/self/oom_score_adj").read_text())), score


@test
def cores_are_neither_written_nor_piped(box):
    """With a limit of 0 the kernel still starts a program of the host that core_pattern names; with 1 it does not."""
    lower = ("import ctypes, resource as r, struct\nr.setrlimit(r.RLIMIT_CORE, (0, 0))\n"
             "libc, none = ctypes.CDLL(None), ctypes.create_string_buffer(struct.pack('QQ', 0, 0))\n"
             "print(libc.prlimit64(0, 4, none, None), r.getrlimit(r.RLIMIT_CORE), r.prlimit(0, r.RLIMIT_CORE))")
    for options in (), ("--untold",):
        got = box.python(lower, options=options).ends(0)
        assert got.lines() == ["0 (1, 1) (1, 1)"], str(got)
        assert box.sh("kill -SEGV $$", options=options).status == 139
    assert got.report["refused"] == "", str(got)
    # The control: here a limit can be lowered.
    assert box.outside("sh", "-c", "ulimit -c 0; ulimit -H -c").stdout == b"0\n"


@test
def signals_and_timers_leave_most_to_their_user(box):
    """They count for the user outside, too."""
    act = ("import ctypes\nlibc, n = ctypes.CDLL(None), 0\ntimer = ctypes.c_void_p()\n"
           "while n < 9000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0: n += 1\nprint(n)")
    (n,) = map(int, box.python(act).ends(0).lines())
    assert 1000 < n <= 4096, n


@test
def what_a_run_used_is_told(box):
    got = box.python("x = bytearray(50 << 20)\nfor i in range(3000000): pass\n"
                     "import time; time.sleep(0.05)").ends(0)
    r = got.report
    assert r["max_rss"] > 50 << 20 and r["cpu_ms"] > 0 and r["duration_ms"] >= 50, r


# --- the end of a run ------------------------------------------------------------------------------

@test
def nothing_outlives_the_command(box):
    marker = f"{box.top}-daemon"
    got = box.sh(f"setsid sleep 600 & setsid sh -c 'exec sleep 600 {marker}' >/dev/null 2>&1 &"
                 " sleep 0.1; exit 3").ends(3)
    assert processes(marker) == [], str(got)


@test
def a_caller_that_is_killed_takes_everything_with_it(box):
    marker = f"{box.top}/marker"
    script = (f"trap '' TERM; setsid sh -c 'trap \"\" TERM HUP; sleep 601; : {marker}' & echo up; "
              f"sleep 600; : {marker}")
    options = ["--pids", 64] + (["--mem", 64 * M] if can_group() else [])
    caller = box.start("sh", "-c", script, options=options)
    assert caller.stdout.readline() == b"up\n"
    (init,) = Path(f"/proc/{caller.pid}/task/{caller.pid}/children").read_text().split()
    eventually("two sleepers", lambda: len(processes(marker)) >= 2)
    made = groups([caller.pid])  # with version 1, unless systemd made it, one for memory and one for processes
    one = not memory_group() or bool(made) and made[0].suffix == ".scope"
    assert len(made) == (0 if not can_group() else 1 if one else 2), made
    caller.kill()
    caller.wait()
    eventually("the run is gone", lambda: processes(marker) == [] and has_ended(init))
    # What only a live caller could remove, the next one does.
    box.sh("true", options=options).ends(0)
    eventually("no group is left", lambda: groups(box.callers) == [])


@test
def a_run_cannot_stop_or_kill_its_init(box):
    got = box.sh("kill -STOP 1; kill -KILL 1; kill -TERM 1; kill -STOP -1 2>/dev/null; echo still",
                 options=["--wall", 3000, "--grace", 100])
    # "kill -1" stops all but its sender and the init: time then ends the run.
    assert got.lines()[:1] == ["still"], str(got)


@test
def a_run_that_stops_itself_is_ended_in_time(box):
    got = box.sh("kill -STOP $$", options=["--wall", 300, "--grace", 200]).ends(124)
    assert got.report["signal"] == signal.SIGKILL, got.report


@test
def signals_to_the_caller_reach_the_command(box):
    run = box.start("sh", "-c", "trap 'echo caught; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    assert run.stdout.readline() == b"up\n"
    run.terminate()
    out, _ = run.communicate(timeout=60)
    assert (out, run.returncode) == (b"caught\n", 5), (out, run.returncode)


@test
def a_reader_that_leaves_ends_the_run(box):
    run = box.start("yes")
    assert run.stdout.read(4) == b"y\ny\n"
    run.stdout.close()
    said = run.stderr.read().decode()
    assert run.wait(60) == 125 and "passing on what the run wrote" in said, said


@test
def many_runs_leave_nothing(box):
    options = ["--pids", 64, "--wall", 60000]
    before = Path("/proc/self/mountinfo").read_text()
    words = [box.words(options, ["true"])[1] for _ in range(30)]
    runs = [subprocess.Popen(w, env=box.env, stdin=subprocess.DEVNULL) for w in words]
    assert all(r.wait(120) == 0 for r in runs)
    eventually("no group is left", lambda: groups([r.pid for r in runs]) == [])
    assert Path("/proc/self/mountinfo").read_text() == before


if __name__ == "__main__":
    sys.exit(main())
