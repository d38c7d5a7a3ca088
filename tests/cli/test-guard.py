"""What runs later, somewhere else, is held or shown: each way that a clone could plant something.

As root, and with --user as an ordinary user.
"""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from promotetest import clone, picture, promote, refused, same, statuses  # noqa: E402

HELD = """
.hg/hgrc .forgejo/workflows/a.yml .gitea/workflows/a.yml .gitlab-ci.yaml .teamcity/settings.kts .tekton/a.yaml
.mvn/extensions.xml .mvn/jvm.config rust-toolchain.toml .bazelrc mise.toml .mise.local.toml .pnp.cjs lib/evil.pth
.Rprofile .ghci .iex.exs .pylintrc .helix/languages.toml .dir-locals.el .dir-locals-2.el .gdbinit .lldbinit
CLAUDE.md sub/CLAUDE.md CLAUDE.local.md .claude/settings.json AGENTS.md AGENTS.override.md GEMINI.md
.gemini/settings.json .cursor/rules/a.mdc .cursorrules .windsurfrules .windsurf/rules/a.md
.github/copilot-instructions.md .mcp.json .aider.conf.yml .codex/config.toml .clinerules .clinerules/a.md .roo/rules/a.md
.continue/config.yaml .goosehints .junie/guidelines.md .kiro/steering/a.md .amazonq/rules/a.md opencode.json
.opencode/agent/a.md QWEN.md CRUSH.md WARP.md .augment-guidelines .trae/rules/a.md
hie.yaml rust-analyzer.toml .octaverc latexmkrc ansible.cfg .flake8 mypy.ini .rubocop.yml .rspec .repo/repo/main.py
_darcs/prefs/defaults .arcconfig sub/.formatter.exs
""".split()
WARNED = """
tests/conftest.py setup.py sub/CMakeLists.txt cmake/a.cmake meson.build configure tox.ini pyproject.toml setup.cfg pom.xml
gradle.properties build.sbt mix.exs Package.swift Vagrantfile flake.nix rules.bzl Directory.Build.targets
eslint.config.mjs .eslintrc.js vite.config.ts jest.config.cjs composer.json
""".split()
MISSING = ("--allow-missing", "memory", "--allow-missing", "cpu")
PASS = ["claude.c", "docs/agents.md", "src/git/config", "mise/main.rs", "HEAD", "objects/one", "src/pth"]


def make(path, text="x\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def held(w, *args):
    """Nothing has changed, and why: paths and rules."""
    before = picture(w.project)
    got = refused(w, 7, "E_REFUSED", "promote", "try", *args)
    same(picture(w.project), before)
    return {p["path"]: p["rule"] for p in got["held"]}


def warnings(got):
    return {p["path"]: (p["rule"], p["detail"]) for p in got["warnings"]}


@live_test
def the_sentence_counts_what_allowing_the_first_leaves_held(w):
    there = clone(w)
    make(there / ".github/workflows/test.yml")
    got = w.snap("promote", "try").fails(7)
    assert "'.github' with 2 paths below it is held by rule 'ci'" in got.err.decode(), got
    assert "held, too" not in got.err.decode() and "more" not in got.err.decode(), got
    for path in (".github", ".github/workflows", ".github/workflows/test.yml"):
        assert f"  held: {path} (ci)\n" in got.err.decode(), got
    make(there / ".envrc")
    got = w.snap("promote", "try").fails(7)
    assert "'.envrc' is held by rule" in got.err.decode(), got
    assert "; 3 other paths are held, too\n" in got.err.decode(), got
    got = w.snap("promote", "--allow", ".github", "try").fails(7)
    assert "'.envrc' is held by rule" in got.err.decode(), got
    assert "held, too" not in got.err.decode() and "  held:" not in got.err.decode(), got
    w.ok("snapshot", "try", "-t", "theirs")
    got = w.snap("rollback", "theirs").fails(7)
    assert "and '.envrc' is held by rule" in got.err.decode(), got
    assert "; 3 other paths are held, too\n" in got.err.decode(), got


@live_test
def files_that_run_later_are_held(w):
    there = clone(w)
    for name in HELD:
        if name != ".clinerules":
            make(there / name)
    for name in PASS:
        make(there / name)
    got = held(w)
    missing = [name for name in HELD if name not in got and name != ".clinerules"]
    assert not missing, missing
    assert not [name for name in PASS if name in got], got
    shutil.rmtree(there / ".clinerules")
    make(there / ".clinerules")
    assert held(w)[".clinerules"] == "agents"


# --- repositories -----------------------------------------------------------------------------

def make_bare(top):
    (top / "objects").mkdir(parents=True)
    (top / "refs").mkdir()
    (top / "HEAD").write_text("ref: refs/heads/main\n")
    (top / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n"
                                f"\tfsmonitor = touch {top.name}-ran\n")


@live_test
def a_repository_without_dot_git_is_held(w):
    there = clone(w)
    make_bare(there / "docs" / "data")
    make(there / "docs" / "data" / "plain")
    got = held(w)
    names = {f"docs/data/{n}" for n in ("HEAD", "config", "objects", "refs")}
    assert got == dict.fromkeys(names, "bare-repository"), got
    # What makes it one may be left out, and then it is none.
    assert promote(w, "try", "--exclude", "HEAD", "--exclude", "docs/data/refs")["held"] == []
    if shutil.which("git"):
        done = subprocess.run(["git", "rev-parse", "--git-dir"], cwd=w.project / "docs" / "data", check=False,
                              capture_output=True, env={**w.env, "GIT_CEILING_DIRECTORIES": str(w.project)})
        assert done.returncode != 0, done


@live_test
def a_repository_is_held_also_if_the_project_had_half_of_it(w):
    make_bare(w.project / "half")
    (w.project / "half" / "HEAD").unlink()
    make_bare(w.project / "whole")
    there = clone(w)
    make(there / "half" / "HEAD", "ref: refs/heads/main\n")
    make(there / "whole" / "config", "[core]\n\tfsmonitor = evil\n")
    make(there / "whole" / "hooks" / "post-checkout")
    make(there / "whole" / "notes.txt")
    make(there / "shared" / "HEAD", "ref: refs/heads/main\n")
    make(there / "shared" / "commondir", "../whole\n")
    (there / "linked").mkdir()
    make(there / "linked" / "HEAD", "ref: refs/heads/main\n")
    (there / "linked" / "objects").symlink_to("../whole/objects")
    (there / "linked" / "refs").symlink_to("../whole/refs")
    got = held(w)
    assert set(got.values()) == {"bare-repository"}, got
    assert set(got) == {"half/HEAD", "whole/config", "whole/hooks", "whole/hooks/post-checkout", "shared/HEAD",
                        "shared/commondir", "linked/HEAD", "linked/objects", "linked/refs"}, got
    promote(w, "try", *[word for name in got for word in ("--allow", name)])


# --- links ------------------------------------------------------------------------------------

@live_test
def links_that_lead_out_or_into_git_are_held_and_targets_are_shown(w):
    (w.project / ".git").mkdir()
    (w.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (w.project / "data").symlink_to("/etc")  # of the user's own
    (w.project / "deep" / "er").mkdir(parents=True)
    there = clone(w)
    out = {"absolute": "/etc/passwd", "up": "../x", "deep/er/up": "../../../x", "through": "data/passwd",
           "again": "src/../../x", "could": "deep/er/../../README.md", "git": ".git/hooks", "GIT": ".GIT/config",
           "deep/git": "../.git", "chain": "chained", "chained": "deep/../../x", "loop": "loop"}
    inside = {"file": "README.md", "deep/er/file": "../../README.md", "dir": "deep/er", "dangling": "src/not-yet",
              "here": str(w.project / "src"), "dot": "./src/", "twice": "dir/file"}
    for name, target in {**out, **inside}.items():
        (there / name).symlink_to(target)
    got = held(w)
    assert got == dict.fromkeys(out, "link"), (set(out) ^ set(got), got)
    data = refused(w, 7, "E_REFUSED", "promote", "try")
    assert {p["path"]: p["target"] for p in data["held"]} == out, data["held"]
    said = w.snap("promote", "try")
    assert said.status == 7 and b"-> '" in said.err, said
    plan = w.snap("promote", "-n", "try").out.decode()
    for name, target in {**out, **inside}.items():
        assert f"{name} -> {target}" in plan, plan
    got = promote(w, "try", *[word for name in out for word in ("--allow", name)])
    assert {p["path"]: p.get("target") for p in got["changed"]} == {**out, **inside}, got["changed"]


@live_test
def a_link_that_became_one_by_what_is_beside_it_is_held(w):
    """Each alone leads nowhere; what counts is the tree that both make."""
    there = clone(w)
    (there / "a").symlink_to("b/c")
    promote(w, "try")
    (there / "b").symlink_to("/etc")
    assert held(w) == {"b": "link"}


@live_test
def giants_of_holes_are_held_and_cost_what_is_in_them(w):
    """Each of these would take an hour, if it read what is not there."""
    make(w.project / "a")
    path = clone(w)
    make(path / "a", "y\n")
    with open(path / "empty", "wb") as f:
        f.truncate(1 << 40)
    with open(path / "far", "wb") as f:
        f.seek(10 ** 12)
        f.write(b"x")
    got = w.ok("diff", "--json", ".", "try").json("snap.diff/1", "files")["files"]
    assert {f["path"]: f["in_patch"] for f in got} == {"a": True, "empty": False, "far": False}, got
    said = w.ok("diff", ".", "try").out.decode()
    assert "# left out: empty: almost all of its 1.0 TiB are holes\n" in said and "+y\n" in said, said
    assert held(w) == {"empty": "sparse", "far": "sparse"}
    got = promote(w, "--allow", "empty", "--allow", "far", "try")
    assert statuses(got) == {"a": "modified", "empty": "added", "far": "added"}, got
    assert (w.project / "empty").stat().st_size == 1 << 40
    with open(w.project / "far", "rb") as f:
        assert f.seek(10 ** 12 - 1) and f.read() == b"\0x"
    (path / "empty").chmod(0o600)
    got = promote(w, "try")
    assert statuses(got) == {"empty": "modified"}, "its bytes were let pass already"
    w.ok("undo")
    w.ok("undo")
    assert not (w.project / "far").exists() and not (w.project / "empty").exists()


@live_test
def pipes_are_held(w):
    there = clone(w)
    os.mkfifo(there / "pipe")
    assert held(w) == {"pipe": "fifo"}
    promote(w, "try", "--allow", "pipe")


# --- warnings ---------------------------------------------------------------------------------

PACKAGE = '{"name": "x", "scripts": {"test": "node test", "build": "tsc"}, "dependencies": {"a": "1"}}\n'
MAKEFILE = "CC = cc\n\nall: main.o\n\t$(CC) -o main main.o\n\nclean:\n\trm -f main\n"


@live_test
def scripts_that_changed_are_named(w):
    (w.project / "package.json").write_text(PACKAGE)
    there = clone(w)
    (there / "package.json").write_text(PACKAGE.replace("tsc", "tsc; evil").replace(
        '"scripts": {', '"scripts": {"postinstall": "evil", '))
    got = promote(w, "-n", "try")
    assert got["held"] == [] and warnings(got) == {
        "package.json": ("scripts", "scripts 'postinstall', 'build'")}, got
    said = w.ok("promote", "try").out.decode()
    assert "warning: package.json: scripts 'postinstall', 'build': " in said, said
    for text, detail in (('{"scripts": {"test": "node test"}}', "script 'test'"), ("{", "its scripts cannot be told apart")):
        make(there / "new" / "package.json", text)
        assert warnings(promote(w, "-n", "try"))["new/package.json"] == ("scripts", detail)


@live_test
def a_package_whose_scripts_stay_is_no_warning(w):
    (w.project / "package.json").write_text(PACKAGE)
    (w.project / "old.mk").write_text("all:\n\techo\n")
    there = clone(w)
    (there / "package.json").write_text("\ufeff" + PACKAGE.replace('"1"', '"2"'))
    (there / "old.mk").unlink()
    assert warnings(promote(w, "try")) == {}


@live_test
def recipes_that_changed_are_named(w):
    (w.project / "Makefile").write_text(MAKEFILE)
    there = clone(w)
    for new, detail in ((MAKEFILE.replace("rm -f main", "rm -f main; evil"), "recipe 'clean'"),
                        (MAKEFILE + "# a word\n", None),
                        (MAKEFILE.replace("CC = cc", "CC = evil"), "what stands outside of recipes"),
                        (MAKEFILE.replace("CC = cc", "X := $(shell evil)") + "new: all\n\techo \\\nb: c\n",
                         "recipe 'new'; and what stands outside of recipes")):
        (there / "Makefile").write_text(new)
        want = {"Makefile": ("recipes", detail)} if detail else {}
        assert warnings(promote(w, "-n", "try")) == want, detail


@live_test
def what_builds_and_tests_run_is_a_warning(w):
    there = clone(w)
    for name in (*WARNED, *PASS):
        make(there / name)
    got = promote(w, "try")
    assert statuses(got)["tests/conftest.py"] == "added"
    assert warnings(got) == dict.fromkeys(WARNED, ("build", None)), got


# --- the way of a rollback ------------------------------------------------------------------

def rolled_back(w, *args):
    """Nothing has changed, and why."""
    before = picture(w.project)
    got = refused(w, 7, "E_REFUSED", "rollback", *args)
    same(picture(w.project), before)
    return {p["path"]: p["rule"] for p in got["held"]}


@live_test
def the_project_goes_to_the_state_of_a_clone_by_the_guard_only(w):
    (w.project / ".git" / "hooks").mkdir(parents=True)
    (w.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    there = clone(w)
    make(there / ".git" / "hooks" / "post-checkout", "#!/bin/sh\nevil\n")
    (there / ".git" / "hooks" / "post-checkout").chmod(0o755)
    make(there / ".envrc", "evil\n")
    make(there / "tests" / "conftest.py")
    (there / "out").symlink_to("/etc/passwd")
    make(there / "README.md", "second\n")
    state = w.take("-t", "theirs", "try")
    wanted = {".envrc": "shell", "out": "link"}
    for name in (state, "theirs", state[:8]):
        assert rolled_back(w, name) == wanted
    w.snap("rollback", "theirs").fails(7, "that state is a clone's", "rollback --allow .envrc")
    plan = w.snap("rollback", "--dry-run", "--json", "theirs").json("snap.rollback/1", "held", "warnings", status=7)
    assert {p["path"]: p["rule"] for p in plan["held"]} == wanted, plan
    said = w.snap("rollback", "--dry-run", "theirs").ends(7).out.decode()
    assert "held: out -> /etc/passwd (link)" in said and "warning: tests/conftest.py: " in said, said
    got = w.ok("rollback", "--json", "theirs", "--allow", ".envrc", "--allow", "out").json("snap.rollback/1")
    assert got["held"] == [] and [p["path"] for p in got["warnings"]] == ["tests/conftest.py"], got
    assert (w.project / "README.md").read_text() == "second\n" and (w.project / ".envrc").exists()
    # Git's own is left alone, whatever is allowed.
    assert list((w.project / ".git" / "hooks").iterdir()) == []
    w.ok("undo")
    assert not (w.project / ".envrc").exists() and (w.project / "README.md").read_text() == "first\n"
    assert (w.project / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"


@live_test
def states_of_the_project_and_of_clones_go_back_unguarded(w):
    make(w.project / ".envrc", "mine\n")
    (w.project / ".git").mkdir()
    make(w.project / ".git" / "config", "mine\n")
    mine = w.take()
    (w.project / ".envrc").unlink()
    make(w.project / ".git" / "config", "later\n")
    w.ok("rollback", mine)
    assert (w.project / ".envrc").exists() and (w.project / ".git" / "config").read_text() == "mine\n"
    there = clone(w)
    make(there / ".npmrc")
    state = w.take("try")
    (there / ".npmrc").unlink()
    w.ok("rollback", "try", state)
    assert (there / ".npmrc").exists()


@live_test
def an_allowed_file_brings_the_new_directories_that_it_needs(w):
    there = clone(w)
    make(there / ".github/workflows/deep/ci.yml")
    make(there / ".github/workflows/other.yml")
    assert ".github/workflows/other.yml" in held(w, "--allow", ".github/workflows/deep/ci.yml")
    (there / ".github/workflows/other.yml").unlink()
    got = promote(w, "try", "--allow", ".github/workflows/deep/ci.yml")
    assert statuses(got)[".github/workflows/deep/ci.yml"] == "added", got
    (there / ".github/workflows/new").mkdir(mode=0o2755)
    (there / ".github/workflows/new").chmod(0o2755)
    make(there / ".github/workflows/new/a.yml")
    assert ".github/workflows/new" in held(w, "--allow", ".github/workflows/new/a.yml"), "it has a set-id bit"


@live_test
def texts_that_name_the_clone_are_told_of(w):
    there = clone(w)
    make(there / "venv/bin/tool", f"#!{there}/venv/bin/python3\n")
    make(there / "venv/pyvenv.cfg", f"command = python3 -m venv {there}/venv\n")
    (there / "binary").write_bytes(b"\0" + os.fsencode(there))
    make(there / "other", "nothing\n")
    (there / "large").write_bytes(b"x" * (1 << 20) + os.fsencode(there))
    got = promote(w, "try")
    assert warnings(got) == {"venv/bin/tool": ("clone-path", None),
                             "venv/pyvenv.cfg": ("clone-path", None)}, got
    make(there / "venv/pyvenv.cfg", f"changed {there}/venv\n")
    text = w.ok("promote", "try").out.decode()
    assert "it names the directory of the clone" in text, text


@live_test
def a_secret_that_no_later_run_would_look_for_is_a_warning(w):
    key = "-----BEGIN PRIVATE KEY-----\n"
    make(w.project / "conf/.env", "TOKEN=secret\n")
    make(w.project / "conf/old.key")
    make(w.project / "node_modules/tool/.env")
    there = clone(w)
    # The mask is on the file, and a run may move the directory above it.
    w.ok("run", "try", "--profile", "strict", *MISSING, "--",
         "sh", "-c", "! cat conf/.env && mkdir vendor && mv conf vendor/conf")
    make(there / "vendor/tls/server.pem", key)
    make(there / "vendor/tls/ca.pem", "-----BEGIN CERTIFICATE-----\n")
    make(there / "vendor/tls/README", key)
    make(there / "vendor/.env.example")
    make(there / "tls/.env")
    make(there / "node_modules/tool/.env", "changed\n")
    found = ["vendor/conf/.env", "vendor/conf/old.key", "vendor/tls/server.pem"]
    got = promote(w, "try", "--dry-run")
    assert warnings(got) == {path: ("unsearched", None) for path in found}, got
    text = w.ok("promote", "try").out.decode()
    assert "warning: vendor/conf/.env: runs that hide secrets do not look for new ones" in text, text


def as_nobody(w, *paths):
    """A function like w.snap() for an ordinary user, to whom those belong; prepared by root."""
    if os.geteuid() != 0:
        raise livetest.Skip("only root can prepare it")
    nobody = pwd.getpwnam(livetest.ORDINARY)
    livetest.open_fuse_for_all()
    for path in (w.top, w.home, *paths):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    w.top.chmod(0o755)
    return lambda *args: w.snap(*args, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])


@live_test
def a_file_of_a_group_that_one_is_not_in_gets_another(w):
    snap = as_nobody(w, w.project, *w.project.rglob("*"))
    os.chown(w.project / "README.md", -1, 0)
    there = Path(snap("-q", "clone", "-n", "try").ends(0).out.decode().strip())
    assert (w.project / "README.md").stat().st_gid == 0
    script = f"grep -q first {there}/README.md && echo changed > {there}/README.md && stat -c %g {there}/README.md"
    nobody = pwd.getpwnam(livetest.ORDINARY)
    done = subprocess.run(["sh", "-c", script], check=True, stdout=subprocess.PIPE, user=nobody.pw_uid,
                          group=nobody.pw_gid, extra_groups=[])
    assert done.stdout == b"0\n", "the clone has the group"
    got = snap("promote", "--json", "try").json("snap.promote/1", "warnings")
    assert warnings(got) == {"README.md": ("group", None)}, got
    assert (w.project / "README.md").read_text() == "changed\n"
    assert (w.project / "README.md").stat().st_gid == w.project.stat().st_gid
    assert snap("promote", "try").ends(0).out.startswith(b"nothing to promote")
    snap("undo").ends(0)
    assert (w.project / "README.md").read_text() == "first\n"


@live_test
def whoever_clones_a_strangers_project_is_told_what_that_means(w):
    snap = as_nobody(w)
    (w.project / "open").write_text("for all\n")
    (w.project / "open").chmod(0o666)
    done = snap("clone", "-n", "try").ends(0)
    assert b"belongs to user 0: in the clone, as there, you can change only" in done.err, done
    nobody = pwd.getpwnam(livetest.ORDINARY)
    there = w.store / "clones/try"
    for name in ("README.md", "open"):
        subprocess.run(["sh", "-c", f"cat {there}/{name} && echo more > {there}/{name}"],
                       check=False, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    got = snap("status", "--json", "try").json("snap.status/1", "changed")
    assert got["changed"] == {"added": 0, "modified": 1, "deleted": 0}, got
    snap("rm", "try").ends(0)


# --- levels -----------------------------------------------------------------------------------

@live_test
def a_person_says_hold_warn_or_pass(w):
    config = w.home / ".config" / "snapcow"
    config.mkdir(parents=True)
    (config / "guard.yaml").write_text("""\
- {name: mine, paths: [CLAUDE.md, "bin/*"], why: I read it, level: pass}
- {name: look, paths: [AGENTS.md], why: worth a look, level: warn}
- {name: tests, paths: [conftest.py], why: they are mine}
""")
    there = clone(w)
    for name in ("CLAUDE.md", "AGENTS.md", "conftest.py", "GEMINI.md", "bin/tool", "bin/root"):
        make(there / name)
    (there / "bin" / "root").chmod(0o4755)
    # What the file itself tells is no matter of its name.
    assert held(w) == {"conftest.py": "tests", "GEMINI.md": "agents", "bin/root": "set-id"}
    got = promote(w, "try", "--allow", "conftest.py", "--allow", "GEMINI.md", "--allow", "bin/root")
    assert warnings(got) == {"AGENTS.md": ("look", None)}, got
    rules = {r["name"]: r["level"] for r in w.ok("promote", "--rules", "--json").json("snap.promote/1")["rules"]}
    assert (rules["mine"], rules["look"], rules["tests"]) == ("pass", "warn", "hold"), rules
    assert rules["scripts"] == "warn" and rules["git"] == "hold", rules
    (config / "guard.yaml").write_text("- {name: x, paths: [y], why: z, level: never}")
    w.snap("promote", "try").fails(2, "guard.yaml:1:4: 'level' is not one of hold, warn, pass")


if __name__ == "__main__":
    sys.exit(livetest.main())
