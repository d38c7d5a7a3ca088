"""The steps of tools/test: run each, count every check, print what failed and what was skipped.

Nothing here decides silently: a step that cannot run is a failure or a skip with its reason.
Children run in sessions of their own, and whatever they leave behind is re-parented to this
process (PR_SET_CHILD_SUBREAPER), so an interrupt can end all of it.
"""

import argparse
import ctypes
import fnmatch
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from sources import c_files

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build-test"
LOGS = OUT / "logs"
CRASHES = OUT / "crashes"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"

CLANG_FORMAT_MAJOR = 14  # versions disagree about the same .clang-format
# For sanitizers on slow machines; and for whole walks there, of which one may take hours.
TIMEOUT_MULTIPLIER, TIMEOUT_MULTIPLIER_LONG = 4, 16
# So many more than there are processors run at once, in the place of those that wait.
TESTS_MORE = 2
# A file system in memory, and how many bytes must be free there. Programs that kill processes but
# no machines learn nothing from the disk's waits, so outside --long tools/lib/one-test gives them
# this one, but for those in the sample with all checks.
MEMORY, MEMORY_MIN = Path("/dev/shm"), 2 << 30
# Watching for the use of dead stack frames makes some programs ten times slower, and looking for
# leaks costs seconds per process on aarch64. Outside --long a sample of the programs gets both.
ASAN_THOROUGH = "detect_stack_use_after_return=1:detect_leaks=1"
ASAN_STACK = "detect_stack_use_after_return=1:detect_leaks=0"
ASAN_PLAIN = "detect_stack_use_after_return=0:detect_leaks=0"
LEAK_CHECKED = ("unit",)  # suites whose programs start no others, so the leak check is affordable
THOROUGH_SHARE = 4  # one program in so many
SLOWEST_SHOWN = 10
FUZZ_SECONDS, FUZZ_SECONDS_LONG = 10, 300

# Sanitizers at -O2 with whole debug information take twice as long to compile; a backtrace needs
# only the line tables.
SANITIZED = ["-Db_sanitize=address,undefined", "-Doptimization=1", "-Dc_args=-g1"]

BUILDS = {  # step: directory, compiler, options and, behind "--", targets
    "build asan": ("asan", "gcc", [*SANITIZED, "-Dwerror=true"]),
    "build plain": ("plain", "gcc", ["-Doptimization=1", "-Dc_args=-g1", "-Dwerror=true"]),
    # For its warnings: no test program is linked.
    "build clang": ("clang", "clang", ["-Dbuildtype=debug", "-Dwerror=true", "--", "@objects",
                                       "cli/snapcow"]),
    # And what UNSANITIZED needs of the tests.
    "build release": ("release", "gcc", ["-Dbuildtype=release", "-Dtests=true", "-Dwerror=true",
                                         "--", "@product", "cli/snapcow", "tests/live/crowd",
                                         "tests/remote/depot-client", "tools/bench/neighbour"]),
    "build fuzz": ("fuzz", "clang", ["-Dfuzz=true", "-Dtests=false", "-Db_lundef=false",
                                     *SANITIZED]),
}

# Programs for ccache, under the names of compilers; builds of other checkouts fill the same cache.
CACHED_COMPILERS = Path("/usr/lib/ccache")

# Beside all unit tests, --quick runs one program of each kind.
QUICK = ("acls", "cli-commands", "cli-diff", "cli-promote", "cli-rollback", "cli-run", "cli-status",
         "cli-undo", "kill", "layer-kill", "live-records", "mount", "posix", "sandbox-filter",
         "sandbox-spec", "sandbox-walls")

# Tests of which something is left out under sanitizers, because those take memory of their own: the
# middle lane runs these few again with the release build.
UNSANITIZED = {
    "cli-root-packages": "npm_installs_globally",
    "cli-run-abuse": "a_very_deep_tree_stops_no_verb",
    "cli-run-net": "no_process_of_the_run_has_the_secret_in_its_memory",
    "cli-run-snapshot-user": "a_command_takes_snapshots_of_its_own_clone",
    "cli-run-tls": "no_process_of_the_run_has_secret_or_keys_in_its_memory",
    "live-many": "a_crowd_in_many_clones_finds_every_byte",
    "live-neighbour": "honest_work_goes_on_beside_each_abuse_and_what_it_took_is_given_back",
    "remote-registry": "a_transfer_takes_little_memory",
}

TAP_LINE = re.compile(r"^(not )?ok\b *(\d*) *(?:- )?([^#]*?) *(?:# *(skip|todo)\S* *(.*))?$", re.I)
TAP_PLAN = re.compile(r"^1\.\.(\d+) *$", re.M)
TAP_SKIP_ALL = re.compile(r"^1\.\.0 *# *skip\S* *(.*)$", re.I | re.M)


class Report:
    """What every check came to, and how long every step took."""

    def __init__(self):
        self.passed, self.failures, self.skips, self.steps = 0, [], [], []
        self.unsteady = []  # failed beside other programs, passed alone
        self.durations = []  # of test programs: (seconds, name)
        self.started = time.monotonic()
        self.no_skip = os.environ.get("SNAP_TESTS_NO_SKIP") == "1"

    def ok(self, n=1):
        self.passed += n

    def fail(self, what, why, detail=""):
        self.failures.append((what, why, detail.rstrip()))

    def skip(self, what, why):
        if self.no_skip:
            self.fail(what, f"skipped although SNAP_TESTS_NO_SKIP=1: {why}")
        else:
            self.skips.append((what, why))

    def step(self, name, fn, *args):
        print(f"[{time.monotonic() - self.started:4.0f} s] {name}", flush=True)
        before = (self.passed, len(self.failures), len(self.skips))
        start = time.monotonic()
        try:
            return fn(self, *args)
        finally:
            counts = [b - a for a, b in zip(before, (self.passed, len(self.failures),
                                                     len(self.skips)))]
            self.steps.append((name, *counts, time.monotonic() - start))

    def finish(self):
        width = max((len(s[0]) for s in self.steps), default=4)
        print(f"\n{'step':{width}}  passed  failed  skipped     time")
        for name, passed, failed, skipped, seconds in self.steps:
            print(f"{name:{width}}  {passed:6}  {failed:6}  {skipped:7}  {seconds:5.1f} s")
        print(f"{'':{width}}  {'':24}{time.monotonic() - self.started:5.1f} s")
        slowest = sorted(self.durations, reverse=True)[:SLOWEST_SHOWN]
        if slowest:
            print("\nslowest tests")
        for seconds, name in slowest:
            print(f"{seconds:7.1f} s  {name}")
        for what, why, detail in self.unsteady:
            print(f"\nUNSTEADY {what}: {why}; it passed when it was run again alone")
            if detail:
                print("    " + detail.replace("\n", "\n    "))
        for what, why, detail in self.failures:
            print(f"\nFAILED {what}: {why}")
            if detail:
                print("    " + detail.replace("\n", "\n    "))
        if self.skips:
            print()
        for what, why in self.skips:
            print(f"skipped {what}: {why}")
        print(f"\n{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped",
              flush=True)
        return 0 if self.passed and not self.failures else 1


def spawn(cmd, log, env=None):
    """Start `cmd` with its output going to the open file `log`."""
    return subprocess.Popen([str(c) for c in cmd], stdin=subprocess.DEVNULL, stdout=log,
                            stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
                            env={**os.environ, **(env or {})})


def run(name, cmd, env=None):
    """Run `cmd` to its end; return its status and output, which is also kept in LOGS."""
    path = LOGS / (name.replace(" ", "-") + ".log")
    with open(path, "w+b") as log:
        try:
            status = spawn(cmd, log, env).wait()
        except FileNotFoundError:
            return 127, f"{cmd[0]}: command not found"
    return status, path.read_text(errors="replace")


def tail(text, lines=40):
    return "\n".join(text.rstrip().splitlines()[-lines:])


def relative(path):
    return os.path.relpath(path, ROOT)


def build(report, name):
    folder, compiler, options = BUILDS[name]
    if not shutil.which(compiler):
        report.fail(name, f"{compiler} is not installed")
        return False
    status, out = run(name, ["tools/lib/build-dir", f"build-test/{folder}", "-Db_colorout=never",
                             *options], {"CC": compiler})
    if status:
        # Compilers explain first; ninja's last lines are about the other jobs.
        at = max(out.rfind("\nFAILED: ", 0, out.find("\nFAILED: ") + 10), out.find("ERROR: "), 0)
        lines = [line for line in out[at:].strip().splitlines() if " -MD -MQ " not in line]
        report.fail(name, f"status {status}, log in {relative(LOGS)}/", "\n".join(lines[:40]))
        return False
    report.ok()
    return True


def selected_tests(folder, opts):
    """The tests that were asked for: name -> suite."""
    out = subprocess.run(["meson", "introspect", "--tests", OUT / folder], capture_output=True,
                         text=True, check=True).stdout
    suites = {test["name"]: test["suite"][0].split(":")[-1] for test in json.loads(out)}
    if opts.only:
        return {n: s for n, s in suites.items()
                if any(p in n or fnmatch.fnmatch(n, p) for p in opts.only)}
    if opts.quick:
        return {n: s for n, s in suites.items() if s == "unit" or n in QUICK}
    return suites


def sampled(seed, name):
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return int.from_bytes(digest[:8], "little") % THOROUGH_SHARE == 0


def count_test(report, test):
    """Count one program of meson's log: its subtests if it speaks TAP, else the program."""
    name = test["name"].split(" / ")[-1]
    report.durations.append((test.get("duration", 0), name))
    out = test.get("stdout", "")
    detail = tail(out + "\n" + test.get("stderr", ""))
    failed_before, seen, comments = len(report.failures), 0, []
    for line in out.splitlines():
        match = TAP_LINE.match(line)
        if not match:
            comments.append(line)
            continue
        seen += 1
        bad, number, title, directive, reason = match.groups()
        label = f"{name}: {title or reason or number}"
        if directive:
            report.skip(label, reason or f"no reason given ({directive.lower()})")
        elif bad:
            report.fail(label, "not ok", tail("\n".join(comments), 20))
        else:
            report.ok()
        comments = []

    result = test["result"]
    if result in ("OK", "EXPECTEDFAIL"):
        if not seen:
            report.ok()
    elif result == "SKIP" and not seen:
        whole = TAP_SKIP_ALL.search(out)
        if whole:
            report.skip(name, whole.group(1) or "no reason given")
        elif test.get("returncode") == 77:
            report.skip(name, tail(out, 1) or "no reason given")
        else:  # meson takes a program that said nothing for a skipped one
            report.fail(name, "it reported no result", detail)
    elif result != "SKIP" and (result == "TIMEOUT" or len(report.failures) == failed_before):
        plan = TAP_PLAN.search(out)
        report.fail(name, f"{result.lower()}, exit status {test.get('returncode')} after "
                    f"{test.get('duration', 0):.0f} s, {seen} of "
                    f"{plan.group(1) if plan else 'an unknown number of'} tests reported", detail)


def tests(report, folder, opts):
    suites = selected_tests(folder, opts)
    if not suites:
        if opts.only:
            report.fail("tests", f"no test matches {' '.join(opts.only)}")
        else:
            report.skip("tests", "no tests in this build")
        return
    thorough = [n for n, suite in suites.items() if suite in LEAK_CHECKED
                and (opts.long or opts.only or sampled(opts.seed, n))]
    env = {"ASAN_OPTIONS": ASAN_STACK if opts.long else ASAN_PLAIN,
           "SNAP_TESTS_THOROUGH": " ".join(thorough) if folder == "asan" else "",
           "SNAP_TESTS_THOROUGH_OPTIONS": ASAN_THOROUGH,
           "SNAP_TESTS_MEMORY": str(MEMORY) if has_memory() else ""}
    run_and_count(report, folder, list(suites), env, [], opts)


def unsanitized(report, opts):
    """Run the functions of UNSANITIZED with the release build."""
    words = ["--test-args", " ".join(UNSANITIZED.values())]  # a program takes those that it has
    results = run_and_count(report, "release", list(UNSANITIZED), {}, words, opts)
    for name, function in UNSANITIZED.items():
        if name in results and function not in results[name].get("stdout", ""):
            report.fail(name, f"it has no test '{function}', which UNSANITIZED names")


def run_and_count(report, folder, names, env, words, opts):
    """Run these programs, those that fail once more alone, and count them; meson's record of each."""
    # All at once, so that no processor waits for the last of a part.
    results = meson_test(report, folder, names, env, (os.cpu_count() or 1) + TESTS_MORE, words)
    again = [] if opts.long else [n for n in results if failed(results[n])]
    second = meson_test(report, folder, again, env, 1, words) if again else {}
    for name, test in results.items():
        if name in second and not failed(second[name]):
            first = Report()
            count_test(first, test)
            report.unsteady += first.failures
            test = second[name]
        count_test(report, test)
    return results


def failed(test):
    alone = Report()
    count_test(alone, test)
    return bool(alone.failures)


def has_memory():
    """May files of tests lie in memory here? With --long they lie on the disk."""
    if os.environ.get("SNAP_TESTS_LONG") or "TMPDIR" in os.environ or not os.path.ismount(MEMORY):
        return False
    room = os.statvfs(MEMORY)
    return os.access(MEMORY, os.W_OK) and room.f_bavail * room.f_frsize >= MEMORY_MIN


def meson_test(report, folder, names, env, processes, words):
    """Run these programs, so many at once, with more words for meson; return meson's record of each."""
    base = f"testlog-{folder}" + "-again" * (processes == 1)
    # Meson adds the name of the wrapper to that of the log.
    log = OUT / folder / "meson-logs" / f"{base}-one-test.json"
    log.unlink(missing_ok=True)
    # Nothing is built again: the step before this one has done it.
    patience = TIMEOUT_MULTIPLIER_LONG if os.environ.get("SNAP_TESTS_LONG") else TIMEOUT_MULTIPLIER
    status, out = run(base, ["meson", "test", "-C", f"build-test/{folder}", "--no-rebuild",
                             "--logbase", base, "--timeout-multiplier", patience,
                             "--wrapper", f"{ROOT}/tools/lib/one-test",
                             "--num-processes", processes, *words, *names], env)
    results = {}
    if log.exists():
        for line in log.read_text(errors="replace").splitlines():
            test = json.loads(line)
            results[test["name"].split(" / ")[-1]] = test
    if len(results) != len(names):
        report.fail("tests", f"{len(results)} of {len(names)} programs were run", tail(out))
    elif status and not any(failed(test) for test in results.values()):
        report.fail("tests", f"meson test ended with status {status}", tail(out))
    return results


def formatting(report):
    found = None
    for name in (f"clang-format-{CLANG_FORMAT_MAJOR}", "clang-format"):
        if shutil.which(name):
            version = subprocess.run([name, "--version"], capture_output=True, text=True,
                                     check=False).stdout
            found = re.search(r"version (\d+)", version)
            if found and int(found.group(1)) == CLANG_FORMAT_MAJOR:
                break
    else:
        report.skip("format", f"needs clang-format {CLANG_FORMAT_MAJOR}, here is "
                    + (found.group(1) if found else "none"))
        return
    files = c_files(ROOT)
    if not files:
        report.skip("format", "no C files")
        return
    _, out = run("format", [name, "--dry-run", "--ferror-limit=1", *files])
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: (?:warning|error):", out, re.M)))
    if wrong:
        report.fail("format", f"{len(wrong)} of {len(files)} files; to mend them: "
                    f"{name} -i " + " ".join(wrong))
    elif out.strip():
        report.fail("format", "clang-format complained", tail(out))
    else:
        report.ok()


def layers(report, folder):
    for name, args in (("layers", ["--objects", OUT / folder]), ("layers self-test", ["--self-test"])):
        status, out = run(name, [sys.executable, "tools/check-layers.py", *args])
        if status:
            report.fail(name, f"{len(out.splitlines())} lines", tail(out))
        else:
            report.ok()


def documents(report):
    for name, *args in (("documents", "tools/check-docs.py"),
                        ("documents self-test", "tools/check-docs.py", "--self-test"),
                        ("architecture picture", "tools/architecture-svg.py", "--check")):
        status, out = run(name, [sys.executable, *args])
        if status:
            report.fail(name, f"{len(out.splitlines())} lines", tail(out))
        else:
            report.ok()


def macos(report):
    status, out = run("macos", ["tools/check-macos"])
    last = tail(out, 1)
    if status == 0:
        report.ok()
    elif status == 77:
        report.skip("macos", last.removeprefix("skipped: "))
    else:
        wrong = [line for line in out.splitlines() if not line.startswith(("compiled ", "linux "))]
        report.fail("macos", last, "\n".join(wrong[:40]))


def hardening(report):
    program = OUT / "release" / "cli" / "snapcow"
    for name, args in (("hardening", [program]), ("hardening self-test", ["--self-test"])):
        status, out = run(name, ["tools/check-hardening", *args])
        if status:
            report.fail(name, f"status {status}", tail(out))
        else:
            report.ok()


def fuzz(report, seconds):
    targets = sorted(p for p in (OUT / "fuzz" / "tests" / "fuzz").glob("fuzz-*")
                     if p.is_file() and os.access(p, os.X_OK))
    if not targets:
        report.skip("fuzz", "no targets in this build")
        return
    waiting, running = list(targets), {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            target = waiting.pop(0)
            running[fuzz_start(report, target, seconds)] = (target, time.monotonic())
        for child, (target, start) in list(running.items()):
            if child.poll() is not None:
                fuzz_count(report, target, child.returncode)
                del running[child]
            elif time.monotonic() - start > seconds + 120:
                child.kill()
        time.sleep(0.1)


def fuzz_start(report, target, seconds):
    name = target.name
    committed = CORPUS / name[len("fuzz-"):]
    scratch, crashes = OUT / "corpus" / name, CRASHES / name
    shutil.rmtree(scratch, ignore_errors=True)
    if committed.is_dir() and any(committed.iterdir()):
        shutil.copytree(committed, scratch)
    else:
        scratch.mkdir(parents=True)
        report.skip(f"{name} corpus", f"{relative(committed)} has no inputs")
    crashes.mkdir(parents=True, exist_ok=True)
    for old in crashes.iterdir():
        old.unlink()
    with open(LOGS / f"{name}.log", "wb") as log:
        seed = 0 if os.environ.get("SNAP_TESTS_LONG") else 1
        return spawn([target, scratch, f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=25",
                      "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={crashes}/"],
                     log)


def fuzz_count(report, target, status):
    out = (LOGS / f"{target.name}.log").read_text(errors="replace")
    inputs = sorted(relative(p) for p in (CRASHES / target.name).iterdir())
    if status == 0 and "Done " in out:
        report.ok()
    else:
        where = f"input in {' '.join(inputs)}" if inputs else "no input was kept"
        summary = re.findall(r"^(?:==\d+== ?ERROR|SUMMARY|.*runtime error):.*$", out, re.M)
        report.fail(target.name, f"status {status}, {where}",
                    "\n".join(summary[:4]) or tail(out, 20))


def descendants():
    """Process ids below this one, children of ended children included."""
    parent = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_bytes()
            except OSError:
                continue
            parent[int(entry)] = int(stat[stat.rindex(b")") + 2:].split()[1])
    found, level = set(), {os.getpid()}
    while level:
        level = {pid for pid, ppid in parent.items() if ppid in level} - found
        found |= level
    return found


def end_everything():
    for sig, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        deadline = time.monotonic() + patience
        for pid in descendants():
            try:
                os.kill(pid, sig)
            except OSError:
                pass
        while time.monotonic() < deadline and descendants():
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            time.sleep(0.05)


def interrupt(signum, _frame):
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(signum).name)


def run_steps(report, opts):
    folder = "plain" if opts.quick else "asan"
    if report.step(f"build {folder}", build, f"build {folder}"):
        report.step("tests", tests, folder, opts)
    else:
        report.skip("tests", "the build they need failed")
    if opts.only:
        for name in ("format", "layers", "documents", "macos", "build clang", "build release",
                     "hardening", "unsanitized", "fuzz"):
            report.skip(name, "only some tests were asked for")
        return
    report.step("format", formatting)
    report.step("layers", layers, folder)
    report.step("documents", documents)
    if opts.quick:
        return
    report.step("macos", macos)
    report.step("build clang", build, "build clang")
    if report.step("build release", build, "build release"):
        report.step("hardening", hardening)
        report.step("unsanitized", unsanitized, opts)
    else:
        for name in ("hardening", "unsanitized"):
            report.skip(name, "the build it needs failed")
    if not opts.fuzz_seconds:
        report.skip("fuzz", "--fuzz-seconds 0")
    elif report.step("build fuzz", build, "build fuzz"):
        report.step("fuzz", fuzz, opts.fuzz_seconds)
    else:
        report.skip("fuzz", "the build they need failed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--fuzz-seconds", type=int)
    opts = parser.parse_args()
    if opts.fuzz_seconds is None:
        opts.fuzz_seconds = FUZZ_SECONDS_LONG if opts.long else FUZZ_SECONDS
    if opts.long:
        os.environ["SNAP_TESTS_LONG"] = "1"
    # Undefined behaviour is a failure, not a remark.
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    opts.seed = os.environ.get("SNAP_TEST_SEED", str(random.getrandbits(32)))
    print(f"seed {opts.seed}: SNAP_TEST_SEED={opts.seed} repeats this choice")
    if not opts.long and not opts.only:
        os.environ["SNAP_TESTS_TWINS"] = opts.seed
    for folder in (LOGS, CRASHES):
        folder.mkdir(parents=True, exist_ok=True)

    if CACHED_COMPILERS.is_dir():
        os.environ["PATH"] = f"{CACHED_COMPILERS}:{os.environ['PATH']}"
    pr_set_child_subreaper = 36  # linux/prctl.h
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, interrupt)

    report = Report()
    try:
        run_steps(report, opts)
    except KeyboardInterrupt as why:
        end_everything()
        report.fail("interrupted", str(why))
        report.finish()
        return 130
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
