"""What an installation puts where, the manual in it, and the daemon as a unit starts it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from snaptest import SNAP, Skip, World, gone, main, test

SOURCE = Path(__file__).resolve().parents[2]
BUILD = SNAP.parents[1]


def commands(w):
    return [c["name"] for c in w.ok("help", "--json").json("snap.help/1")["commands"]]


def install(w, prepare=None):
    """Install into a directory of this test; where the prefix is in it."""
    if not shutil.which("meson"):
        raise Skip("meson is not on PATH")
    dest = w.top / "dest"
    if prepare:
        prepare(dest)
    env = {k: v for k, v in w.env.items() if k != "DESTDIR"}
    done = subprocess.run(["meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", dest],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return next(dest.rglob("bin/snapcow")).parents[1]


def names(folder):
    return {p.name for p in folder.iterdir()} if folder.is_dir() else set()


@test
def everything_is_installed_where_it_is_looked_for(w: World):
    prefix = install(w)
    assert names(prefix / "bin") == {"snapcow", "snap"}
    assert os.readlink(prefix / "bin" / "snap") == "snapcow"
    share = prefix / "share"
    pages = {f"{name}-{c}.1" for c in commands(w) for name in ("snap", "snapcow")}
    assert names(share / "man" / "man1") == pages | {"snapcow.1"}
    assert names(share / "man" / "man5") == {"snapcow-format.5"}
    assert names(share / "man" / "man7") == {"snapcow-exit-codes.7"}
    assert names(share / "bash-completion" / "completions") == {"snap", "snapcow"}
    assert names(share / "zsh" / "site-functions") == {"_snapcow"}
    assert names(share / "fish" / "vendor_completions.d") == {"snapcow.fish"}
    units = prefix / "lib" / "systemd" / "user"
    assert names(units) == {"snapcow-watch.service", "snapcow.service", "snapcow.socket"}
    unit = (units / "snapcow.service").read_text()
    program = f"/{prefix.relative_to(w.top / 'dest')}/bin/snapcow"
    assert f"ExecStart={program} start --foreground\n" in unit
    assert f"ExecStart={program} watch start --foreground\n" in (units / "snapcow-watch.service").read_text()
    assert f"ExecStartPre={program} --quiet stop\n" in (units / "snapcow.socket").read_text()
    script = (share / "bash-completion" / "completions" / "snapcow").read_bytes()
    assert script == w.ok("completion", "bash").out
    install(w)


def files(top):
    return {p.relative_to(top): p.read_bytes() for p in top.rglob("*") if p.is_file()}


def shared(w, prefix, *short):
    """What tools/quickstart puts beside the program, and what `meson install` puts there."""
    share = w.top / f"share{len(short)}"
    done = subprocess.run([SOURCE / "tools/lib/install-shared", BUILD, share, *short], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and done.stdout == b"", done
    return share, files(share), files(prefix / "share")


@test
def quickstart_installs_the_manual_and_completions_too(w: World):
    prefix = install(w)
    share, got, want = shared(w, prefix, "snap")
    assert got == want, got.keys() ^ want.keys()
    assert os.readlink(share / "man" / "man1" / "snap-run.1") == "snapcow-run.1"
    _, again, _ = shared(w, prefix, "snap")
    assert again == got, "again, over what is there"
    _, got, want = shared(w, prefix)
    assert got.keys() == {p for p in want if not re.fullmatch(r"snap(-.*)?", p.name)}, got.keys()
    theirs = share / "man" / "man1" / "snap-run.1"
    theirs.unlink()
    theirs.write_text("another program's")
    shared(w, prefix, "snap")
    assert theirs.read_text() == "another program's"
    script = (SOURCE / "tools" / "quickstart").read_text()
    assert "\ninstall_program\ninstall_manual\n" in script


@test
def without_cmocka_the_tests_are_left_out_and_that_is_said(w: World):
    if not shutil.which("meson") or not shutil.which("pkg-config"):
        raise Skip("meson or pkg-config is not on PATH")
    lacking = w.top / "pkg-config"
    lacking.write_text("#!/bin/sh\ncase \"$*\" in *cmocka*) exit 1;; esac\nexec pkg-config \"$@\"\n")
    lacking.chmod(0o755)
    env = {**w.env, "PKG_CONFIG": str(lacking)}

    def setup(name, *words):
        return subprocess.run(["meson", "setup", w.top / name, SOURCE, *words], env=env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    done = setup("without")
    assert done.returncode == 0 and "the tests are not built: they need cmocka" in done.stdout, done
    done = setup("asked", "-Dtests=true")
    assert done.returncode != 0 and "cmocka" in done.stdout, "meson names what is missing"


@test
def systemd_finds_no_fault_with_the_units(w: World):
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    units = install(w) / "lib" / "systemd" / "user"
    here = w.top / "units"
    shutil.copytree(units, here)
    unit = here / "snapcow.service"
    for path in here.iterdir():  # the prefix may have no such program, and on a tidy machine it has none
        path.write_text(re.sub("(Exec[A-Za-z]+)=[^ ]*", rf"\1={SNAP}", path.read_text()))
    runtime = w.top / "runtime"
    runtime.mkdir(mode=0o700)

    def verify(*paths):
        return subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", *paths], check=False,
                              env={**w.env, "XDG_RUNTIME_DIR": str(runtime)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    done = verify(here / "snapcow.socket", unit, here / "snapcow-watch.service")
    if "Failed to initialize manager" in done.stdout:
        raise Skip(done.stdout.strip())
    assert done.returncode == 0 and "snapcow" not in done.stdout, done.stdout
    # The control: it does find a fault.
    unit.write_text(unit.read_text().replace("Restart=on-failure", "Restart=perhaps"))
    assert "perhaps" in verify(unit).stdout


@test
def a_snap_of_somebody_else_is_never_touched(w: World):
    def put_theirs(dest):
        theirs = dest / str(prefix_of_build()).lstrip("/") / "bin"
        theirs.mkdir(parents=True)
        (theirs / "snap").write_text("theirs")

    prefix = install(w, put_theirs)
    assert (prefix / "bin" / "snap").read_text() == "theirs"
    assert not any(n.startswith("snap-") for n in names(prefix / "share" / "man" / "man1"))
    assert names(prefix / "share" / "bash-completion" / "completions") == {"snapcow"}


def everything_below(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*")} if folder.is_dir() else set()


def uninstall(build=BUILD):
    done = subprocess.run([SOURCE / "tools" / "uninstall", build], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()


@test
def what_was_installed_can_be_taken_away_whole(w: World):
    theirs = w.top / "dest" / str(prefix_of_build()).lstrip("/") / "share" / "man" / "man1" / "their.1"

    def put_theirs(_):
        theirs.parent.mkdir(parents=True)
        theirs.write_text("theirs")

    prefix = install(w, put_theirs)
    assert "snap" in names(prefix / "bin")
    status, said = uninstall()
    assert status == 0, said
    assert everything_below(prefix) == {"share", "share/man", "share/man/man1", "share/man/man1/their.1"}
    status, said = uninstall()
    assert status == 0 and "nothing was installed" in said, said
    status, said = uninstall(w.top)
    assert status == 2 and "is no build directory" in said, said


@test
def what_quickstart_installed_can_be_taken_away_too(w: World):
    build, share = w.top / "build", w.top / "share"
    (build / "meson-logs").mkdir(parents=True)
    env = {**w.env, "INSTALLED": str(build / "quickstart.txt")}
    subprocess.run([SOURCE / "tools/lib/install-shared", BUILD, share, "snap"], env=env, check=True)
    theirs = share / "man" / "man1" / "snap-run.1"
    theirs.unlink()
    theirs.write_text("another program's")
    status, said = uninstall(build)
    assert status == 0 and "Deleted: " in said, said
    assert [p for p in share.rglob("*") if not p.is_dir()] == [theirs]
    status, said = uninstall(build)
    assert status == 0 and "nothing was installed" in said, said
    script = (SOURCE / "tools" / "quickstart").read_text()
    assert script.count('>>"$INSTALLED"') == 2, "the program and its short name are listed, too"


@test
def a_short_name_that_leads_elsewhere_by_now_stays(w: World):
    prefix = install(w)
    (prefix / "bin" / "snap").unlink()
    (prefix / "bin" / "snap").symlink_to("/somewhere/else")
    status, said = uninstall()
    assert status == 1 and "Could not delete" in said, said
    assert everything_below(prefix) == {"bin", "bin/snap"}, everything_below(prefix)
    assert os.readlink(prefix / "bin" / "snap") == "/somewhere/else"


def prefix_of_build():
    said = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], stdout=subprocess.PIPE,
                          check=True).stdout
    return next(o["value"] for o in json.loads(said) if o["name"] == "prefix")


@test
def a_snap_elsewhere_on_the_path_keeps_its_name_too(w: World):
    prefix, other = w.top / "prefix", w.top / "other"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "snapcow").write_text("ours")
    other.mkdir()
    (other / "snap").write_text("#!/bin/sh\n")
    (other / "snap").chmod(0o755)
    env = {"MESON_INSTALL_DESTDIR_PREFIX": str(prefix), "PATH": f"{other}:/usr/bin:/bin"}
    script = [SOURCE / "tools" / "install" / "snap-name", "bin", "share/man", "share"]
    said = subprocess.run(script, env=env, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert str(other / "snap") in said and not (prefix / "bin" / "snap").exists(), said
    # For another machine it does not matter what is on this one.
    subprocess.run(script, env={**env, "DESTDIR": str(prefix)}, stdout=subprocess.DEVNULL, check=True)
    assert os.readlink(prefix / "bin" / "snap") == "snapcow"


# --- the manual -------------------------------------------------------------------------------

def pages():
    found = sorted((BUILD / "docs" / "man").glob("*.[157]"))
    if not found:
        raise Skip("the manual was not built")
    return found


@test
def every_command_has_a_page_with_its_options(w: World):
    there = {p.name: p.read_text() for p in pages()}
    for c in w.ok("help", "--json").json("snap.help/1")["commands"]:
        text = there[f"snapcow-{c['name']}.1"].replace("\\-", "-").replace("\\&", "")
        assert c["summary"].split()[0] in text, c
        for option in c["options"]:
            assert f"--{option['long']}" in text, option
    overview = there["snapcow.1"].replace("\\-", "-")
    assert all(f"snapcow-{c}" in overview for c in commands(w))


@test
def every_page_renders_without_a_word_of_complaint(w: World):
    checks = [["groff", "-ww", "-man", "-Tutf8", "-z"], ["mandoc", "-T", "lint", "-W", "error"]]
    checks = [c for c in checks if shutil.which(c[0])]
    if not checks:
        raise Skip("neither groff nor mandoc is installed")
    for page in pages():
        for check in checks:
            done = subprocess.run([*check, page], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False)
            assert done.returncode == 0 and done.stdout == b"", (check, page, done.stdout)


@test
def exit_codes_and_error_names_are_those_of_the_manual(w: World):
    """The page is written by hand; the table that decides is in the program."""
    page = (SOURCE / "docs" / "man" / "snapcow-exit-codes.7.scd").read_text()
    table = (SOURCE / "cli" / "fail.c").read_text()
    for name in {word.strip('",') for word in table.split() if word.startswith('"E_')}:
        assert name in page, f"{name} is not in the manual"


# --- the daemon in the foreground -------------------------------------------------------------

def foreground(w):
    """A daemon that is this process's child, and what it says until it is ready."""
    process = subprocess.Popen([SNAP, "start", "--foreground"], cwd=w.project, env=w.env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    line = b""
    while b"ready" not in line:
        line = process.stderr.readline()
        assert line, "it ended before it was ready"
    return process


@test
def the_daemon_can_be_had_in_the_foreground(w: World):
    process = foreground(w)
    got = w.ok("start", "--json").json("snap.start/1")
    assert got["started"] is False and got["pid"] == process.pid, got
    w.snap("start", "--foreground").fails(11, "already", "hint: snapcow stop")
    w.snap("start", "--foreground", "--json").fails_json(11, "E_BUSY")
    w.ok("clone", "-n", "try")
    w.ok("stop")
    assert process.wait(20) == 0
    process.stderr.close()
    assert not w.mounts()


@test
def a_signal_ends_it_in_order(w: World):
    process = foreground(w)
    w.ok("clone", "-n", "try")
    (w.store / "clones" / "try" / "new").write_text("kept")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0 and gone(process.pid, 1)
    process.stderr.close()
    assert not w.mounts()
    w.ok("mount", "try")
    assert (w.store / "clones" / "try" / "new").read_text() == "kept"


@test
def a_foreground_that_cannot_begin_says_so_and_ends(w: World):
    w.take()
    w.stop()
    (w.store / "meta.db").write_bytes(b"no database" * 500)
    result = w.snap("start", "--foreground").ends(1)
    assert b"error: " in result.err and b"meta.db" in result.err, str(result)


if __name__ == "__main__":
    sys.exit(main())
