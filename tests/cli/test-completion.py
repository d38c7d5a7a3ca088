"""Completion: what each shell offers where, asked of the shells themselves."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

from snaptest import SNAP, Skip, World, main, test

SHELLS = ("bash", "zsh", "fish")


def script(w, shell):
    """The script in a file, and a program of the name that it completes."""
    path = w.top / f"completion.{shell}"
    path.write_bytes(w.ok("completion", shell).out)
    bin_dir = w.top / "bin"
    if not bin_dir.exists():
        bin_dir.mkdir()
        (bin_dir / "snapcow").symlink_to(SNAP)
    w.env["PATH"] = f"{bin_dir}:{os.environ['PATH']}"
    return path


def run(w, *args, **more):
    done = subprocess.run(args, cwd=w.project, env=w.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60,
                          check=False, **more)
    assert done.returncode == 0 and done.stderr == b"", f"{args}: {done}"
    return done.stdout.decode()


def shell_or_skip(name):
    if not shutil.which(name):
        raise Skip(f"{name} is not installed")
    return name


def bash(w, line):
    """What bash would put in the place of the last word, by the words as it splits them."""
    breaks = " \t\n\"'@><=;|&(:"
    words = re.findall(r"[^\s@=:]+|[@=:]+", line) + ([""] if line.endswith(" ") else [])
    array = " ".join(f"'{word}'" for word in words)
    asked = (f"source '{script(w, 'bash')}'; COMP_WORDBREAKS=$1 COMP_LINE=$2 COMP_POINT=${{#2}}; "
             f"COMP_WORDS=({array}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
             "_snapcow snapcow '' ''; printf '%s\\n' \"${COMPREPLY[@]}\"")
    return run(w, "bash", "--norc", "-c", asked, "bash", breaks, line).split()


def fish(w, line):
    out = run(w, "fish", "--no-config", "-c", f"source '{script(w, 'fish')}'; complete -C '{line}'")
    return [row.split("\t")[0] for row in out.splitlines()]


def filled(w):
    """A world with clones, snapshots and tags to name."""
    first = w.take("-m", "the first", "-t", "known-good")
    w.ok("clone", "-n", "try-one")
    w.ok("clone", "-n", "try-two")
    return first


# --- what the program offers -----------------------------------------------------------------

@test
def names_are_told_without_a_daemon_and_without_a_word_of_failure(w: World):
    for what in ("clones", "states"):
        assert w.ok("completion", what).out == b""
        assert w.ok("-C", "/nowhere", "completion", what).out == b""
    assert not w.store.exists(), "asking for names must not make a store"
    first = filled(w)
    w.stop()
    got = w.ok("completion", "clones")
    assert got.out == b"try-one\tclone\ntry-two\tclone\n" and got.err == b"", str(got)
    rows = w.ok("completion", "states").out.decode().splitlines()
    assert rows == ["try-one\tclone", "try-two\tclone", "@\tthe newest snapshot",
                    "known-good\tthe first", f"{first[:8]}\tthe first"], rows
    assert not w.daemons(), "asking for names must start nothing"
    (w.store / "meta.db").write_bytes(b"no database" * 100)
    got = w.ok("completion", "clones")
    assert got.out == got.err == b"", str(got)


@test
def names_are_those_of_the_project_and_outside_of_one_all(w: World):
    filled(w)
    other = w.top / "other"
    other.mkdir()
    w.ok("clone", "-n", "elsewhere", cwd=other)
    assert b"elsewhere" not in w.ok("completion", "clones").out
    assert w.ok("completion", "clones", cwd=w.top).out.count(b"\n") == 3


@test
def a_name_that_would_break_its_line_is_cut(w: World):
    w.take("-m", "two\nlines\tand a tab", "-t", "v1")
    rows = w.ok("completion", "states").out.decode().splitlines()
    assert rows[1] == "v1\ttwo", rows


@test
def the_script_comes_as_json_too(w: World):
    for shell in SHELLS:
        got = w.ok("--json", "completion", shell).json("snap.completion/1", "shell", "script")
        assert got["shell"] == shell
        assert got["script"].encode() == w.ok("completion", shell).out
    w.snap("completion", "tcsh").fails(2, "'tcsh'", "hint: snapcow help completion")
    w.snap("completion", "tcsh", "--json").fails_json(2, "E_USAGE")
    w.snap("completion").fails(2, "bash|zsh|fish")


@test
def every_command_and_option_is_in_every_script(w: World):
    table = w.ok("help", "--json").json("snap.help/1")
    for shell in SHELLS:
        text = w.ok("completion", shell).out.decode()
        for command in table["commands"]:
            assert re.search(rf"\b{command['name']}\b", text), (shell, command)
            for option in command["options"]:
                assert re.search(rf"(--|-l ){option['long']}\b", text), (shell, option)


# --- bash ------------------------------------------------------------------------------------

@test
def bash_completes_commands_and_options(w: World):
    assert bash(w, "snapcow umo") == ["umount"]
    assert {"clone", "log", "rm", "completion"} <= set(bash(w, "snapcow "))
    assert bash(w, "snapcow clone --du") == ["--durability"]
    assert "--json" in bash(w, "snapcow log -")
    assert "--ttl" not in bash(w, "snapcow log -")
    assert bash(w, "snapcow --store /nowhere umo") == ["umount"]
    assert bash(w, "snapcow help umo") == ["umount"]


@test
def bash_completes_live_names(w: World):
    first = filled(w)
    assert bash(w, "snapcow rm t") == ["try-one", "try-two"]
    assert bash(w, "snapcow rm try-one try-t") == ["try-two"]
    assert bash(w, "snapcow ls ") == []
    assert bash(w, "snapcow log try-o") == ["try-one"]
    assert bash(w, "snapcow clone --from kno") == ["known-good"]
    assert bash(w, "snapcow clone --from=kno") == ["known-good"]
    assert bash(w, f"snapcow show {first[:4]}") == [first[:8]]
    assert bash(w, f"snapcow --store {w.top}/nowhere rm t") == []
    assert bash(w, f"snapcow -C {w.top} rm t") == ["try-one", "try-two"]


@test
def bash_completes_choices_and_directories(w: World):
    assert bash(w, "snapcow --color a") == ["auto", "always"]
    assert bash(w, "snapcow --color=al") == ["always"]
    assert bash(w, "snapcow completion z") == ["zsh"]
    assert bash(w, "snapcow experiment re") == ["resume"]
    assert bash(w, "snapcow remote ") == ["list", "add", "rm", "log", "gc"]
    assert bash(w, "snapcow policy ") == ["explain"]
    assert bash(w, "snapcow init s") == ["src"]
    assert bash(w, "snapcow -C s") == ["src"]
    assert bash(w, "snapcow clone -n t") == [], "a new name is nobody's to guess"


@test
def bash_completes_ways_profiles_and_runs(w: World):
    for command in ("promote", "undo", "rebase", "try"):
        assert bash(w, f"snapcow {command} --conflict t") == ["theirs"]
        assert bash(w, f"snapcow {command} --markers z") == ["zdiff3"]
    for command in ("promote", "run", "try"):
        assert bash(w, f"snapcow {command} --profile str") == ["strict"]
    assert bash(w, "snapcow logs ") == []
    if w.snap("run", "--", "true").status != 0:
        raise Skip("nothing can be run here")
    run = w.ok("runs", "--json").json("snap.runs/1")["runs"][0]["run"]
    assert bash(w, f"snapcow logs {run[:4]}") == [run]


@test
def experiments_are_offered_behind_what_is_done_with_them(w: World):
    w.take()
    assert w.ok("completion", "experiments").out == b""
    if w.snap("experiment", "-n", "faster", "--arm", "a=true").status == 125:
        raise Skip("nothing can be run here")
    assert w.ok("completion", "experiments").out == b"faster\texperiment\n"
    for act in ("show", "promote", "rm"):
        assert bash(w, f"snapcow experiment {act} f") == ["faster"], act
    assert bash(w, "snapcow experiment sho") == ["show"]
    if shutil.which("fish"):
        assert "faster" in fish(w, "snapcow experiment show f")
    if shutil.which("zsh"):
        typed_in_zsh(w, "snapcow experiment show fas", "faster")


@test
def behind_a_clone_its_own_states_are_offered(w: World):
    project = filled(w)
    of_clone = w.ok("snapshot", "try-one", "-m", "its own", "--json").json("snap.snapshot/1")["snapshot"]
    own = of_clone[:8]
    rows = w.ok("completion", "states", "try-one").out.decode().splitlines()
    assert rows[:2] == ["try-one@\tthe newest snapshot of try-one", f"{own}\tits own"], rows
    assert f"{project[:8]}\tthe first" in rows and "try-two\tclone" in rows, rows
    assert own not in w.ok("completion", "states").out.decode()
    assert own not in w.ok("completion", "states", "try-two").out.decode()
    assert w.ok("completion", "states", "nobody").out == w.ok("completion", "states").out
    w.snap("completion", "bash", "try-one").fails(2)
    for line in ("rollback try-one ", "diff try-one ", "rollback --dry-run try-one "):
        assert bash(w, f"snapcow {line}{own[:4]}") == [own], line
    assert bash(w, f"snapcow rollback try-two {own[:4]}") == []
    if shutil.which("fish"):
        assert fish(w, f"snapcow rollback try-one {own[:4]}") == [own]
        assert fish(w, f"snapcow rollback try-two {own[:4]}") == []
    if shutil.which("zsh"):
        typed_in_zsh(w, f"snapcow rollback try-one {own[:4]}", own)


@test
def a_name_is_never_run(w: World):
    """A tag may look like a command; completing it and pressing return must be harmless."""
    w.take("-t", "$(touch${IFS}bad)")
    assert bash(w, "snapcow show $") == ["\\$\\(touch\\$\\{IFS\\}bad\\)"]
    assert not (w.project / "bad").exists()


# --- zsh and fish ----------------------------------------------------------------------------

def typed_in_zsh(w, line, wanted):
    """What stands on the line when TAB was pressed behind it."""
    path = script(w, "zsh")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(w.project)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**w.env, "TERM": "dumb"})
    seen = b""
    try:
        start = (f"PS1=; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; "
                 f"source {path}; echo rea''dy\n")
        os.write(fd, start.encode())
        for word, send in ((b"ready", line.encode() + b"\t"), (wanted.encode(), b"")):
            end = time.monotonic() + 30
            while word not in seen and time.monotonic() < end:
                if select.select([fd], [], [], 1)[0]:
                    seen += os.read(fd, 4096)
            assert word in seen, f"{word!r} is not in {seen!r}"
            if send:
                seen = b""
                os.write(fd, send)
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


@test
def zsh_completes_commands_options_and_live_names(w: World):
    shell_or_skip("zsh")
    run(w, "zsh", "-n", str(script(w, "zsh")))
    filled(w)
    w.ok("rm", "try-two")
    for line, wanted in (("snapcow umo", "snapcow umount "),
                         ("snapcow clone --dur", "snapcow clone --durability="),
                         ("snapcow rm tr", "snapcow rm try-one "),
                         ("snapcow show kno", "snapcow show known-good"),
                         ("snapcow --color alw", "snapcow --color always ")):
        typed_in_zsh(w, line, wanted)


@test
def fish_completes_commands_options_and_live_names(w: World):
    shell_or_skip("fish")
    run(w, "fish", "--no-config", "-n", str(script(w, "fish")))
    first = filled(w)
    assert fish(w, "snapcow umo") == ["umount"]
    assert fish(w, "snapcow clone --dur") == ["--durability"]
    assert fish(w, "snapcow rm t") == ["try-one", "try-two"]
    assert set(fish(w, "snapcow show ")) >= {"@", "known-good", first[:8], "try-one"}
    assert fish(w, "snapcow --color al") == ["always"]
    assert fish(w, "snapcow completion z") == ["zsh"]
    assert fish(w, f"snapcow --store {w.top}/nowhere rm t") == []


if __name__ == "__main__":
    sys.exit(main())
