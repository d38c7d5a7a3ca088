"""Hooks of agents: a snapshot of each step, the way back to a turn, and nothing in the client's way."""

import base64
import json
import sys

from snaptest import SNAP, World, main, needs_fuse, test

SETTINGS = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json",
            "gemini": ".gemini/settings.json", "cursor": ".cursor/hooks.json"}


def payload(w, event, **more):
    return {"session_id": "5e55-one", "cwd": str(w.project), "hook_event_name": event, **more}


def hook(w, said, client="claude-code", cwd="/"):
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    got = w.snap("agents", "hook", client, input=text, stdin=None, cwd=cwd).ends(0)
    if client in ("claude-code", "codex"):
        assert got.out == b"", f"the model would read it\n{got}"
    else:
        assert json.loads(got.out).get("continue", True) is True, got
    return got.err.decode()


def steps(w, *args):
    got = w.ok("log", "--agent", "--json", *args).json("snap.log/1", "snapshots")["snapshots"]
    return [(int(s["meta"]["turn"]), s["message"]) for s in reversed(got)]


def prompt(w, text="do it", **more):
    assert hook(w, payload(w, "UserPromptSubmit", prompt=text, **more)) == ""


def bash(w, command, write=None, **more):
    said = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "toolu_1", **more}
    assert hook(w, payload(w, "PreToolUse", **said)) == ""
    if write is not None:
        (w.project / "README.md").write_text(write)
    assert hook(w, payload(w, "PostToolUse", **said)) == ""


@test
def a_turn_is_undone_with_what_its_commands_did_and_that_is_undone(w: World):
    for n in (1, 2, 3):
        prompt(w, f"prompt {n}")
        bash(w, f"sed {n}", f"turn {n}\n")
    assert steps(w) == [(1, "prompt: prompt 1"), (1, "after Bash: sed 1"), (2, "prompt: prompt 2"),
                        (2, "after Bash: sed 2"), (3, "prompt: prompt 3"), (3, "after Bash: sed 3")], steps(w)
    for n, text in ((3, "turn 2\n"), (2, "turn 1\n"), (1, "first\n")):
        w.ok("rollback", "--turn", str(n))
        assert (w.project / "README.md").read_text() == text
    w.ok("undo")
    assert (w.project / "README.md").read_text() == "turn 1\n"
    assert b"no turn 9" in w.snap("rollback", "--turn", "9").ends(4).err
    table = w.ok("log", "--agent").out.decode()
    assert "claude-code" in table and "5e55-one" in table and "after Bash: sed 3" in table, table


@test
def an_unchanged_tree_gets_no_snapshot_within_a_turn(w: World):
    prompt(w)
    for _ in range(5):
        bash(w, "true")
    assert steps(w) == [(1, "prompt: do it")], steps(w)
    (w.project / "README.md").write_text("by a person\n")
    bash(w, "make")
    assert steps(w)[1:] == [(1, "before Bash: make")], steps(w)
    assert "automatic" in w.ok("log").out.decode(), "they are in nobody's way"


@test
def sessions_are_told_apart_and_so_are_agents(w: World):
    prompt(w)
    bash(w, "one", "one\n")
    gemini = {"session_id": "other", "cwd": str(w.project), "hook_event_name": "BeforeAgent", "prompt": "p"}
    assert hook(w, gemini, "gemini") == ""
    gemini |= {"hook_event_name": "BeforeTool", "tool_name": "write_file", "tool_input": {"file_path": "a"}}
    (w.project / "README.md").write_text("two\n")
    assert hook(w, gemini, "gemini") == ""
    assert steps(w, "gemini") == [(1, "prompt: p"), (1, "before write_file: a")], steps(w, "gemini")
    assert steps(w, "claude-code") == [(1, "prompt: do it"), (1, "after Bash: one")]
    w.ok("rollback", "--turn", "1", "--session", "5e55")
    assert (w.project / "README.md").read_text() == "first\n"
    assert b"of session nope" in w.snap("rollback", "--turn", "1", "--session", "nope").ends(4).err
    assert b"--session needs --turn" in w.snap("rollback", "--session", "5e55").ends(2).err


@test
def a_turn_whose_beginning_was_removed_is_not_gone_back_to(w: World):
    for n in (1, 2):
        prompt(w)
        bash(w, "make", f"{n}\n")
    (w.project / "README.md").write_text("by a person\n")
    bash(w, "two", "two\n")
    listed = w.ok("log", "--agent", "--json").json("snap.log/1", "snapshots")["snapshots"]
    assert len(listed) == 6, listed
    for turn, oldest in ((1, 5), (2, 4), (2, 3), (2, 2)):
        w.ok("rm", listed[oldest]["snapshot"])
        if oldest != 4:
            why = w.snap("rollback", "--turn", str(turn)).ends(4).err.decode()
            assert f"the state before turn {turn} is not kept any more" in why, why
    assert (w.project / "README.md").read_text() == "two\n"


@test
def a_snapshot_that_somebody_labels_like_a_step_is_none(w: World):
    prompt(w)
    w.ok("snapshot", "--meta", "client=claude-code", "--meta", "session=5e55-one", "--meta",
         "turn=18446744073709551615", "--meta", "step=prompt")
    bash(w, "one", "one\n")
    prompt(w)
    assert steps(w) == [(1, "prompt: do it"), (1, "before Bash: one"), (1, "after Bash: one"),
                        (2, "prompt: do it")], steps(w)


@test
def every_client_is_understood(w: World):
    cursor = {"conversation_id": "c1", "generation_id": "g1", "workspace_roots": [str(w.project)],
              "hook_event_name": "preToolUse", "tool_name": "Write", "tool_input": {"path": "x"}}
    assert hook(w, cursor, "cursor") == ""
    shell = {**cursor, "hook_event_name": "beforeShellExecution", "command": "ls", "generation_id": "g2"}
    del shell["tool_name"], shell["tool_input"]
    assert hook(w, shell, "cursor") == ""
    codex = payload(w, "PreToolUse", turn_id="t1", tool_name="apply_patch", tool_use_id="call_9",
                    tool_input={"command": "*** Begin Patch"}, session_id="c2")
    assert hook(w, codex, "codex") == ""
    assert steps(w, "cursor") == [(1, "before Write: x"), (2, "before Shell: ls")], \
        "a prompt that had no hook shows by its number"
    got = w.ok("log", "--agent", "codex", "--json").json("snap.log/1")["snapshots"][0]
    assert got["meta"] == {"client": "codex", "session": "c2", "turn": "1", "step": "before",
                           "tool": "apply_patch", "call": "call_9", "prompt": "t1"}, got
    assert got["automatic"], got


@test
def a_step_in_a_clone_is_kept_there(w: World):
    needs_fuse()
    path = w.ok("clone", "--json", "-n", "try").json("snap.clone/1", "path")["path"]
    said = payload(w, "PreToolUse", tool_name="Bash", tool_input={"command": "make"}, cwd=path)
    assert hook(w, said) == ""
    assert steps(w) == [] and steps(w, "try") == [(1, "before Bash: make")]
    with open(f"{path}/README.md", "w", encoding="utf-8") as f:
        f.write("changed\n")
    w.ok("rollback", "try", "--turn", "1")
    with open(f"{path}/README.md", encoding="utf-8") as f:
        assert f.read() == "first\n"


@test
def a_step_is_kept_for_the_project_that_the_session_began_in(w: World):
    away = w.home / "away"
    away.mkdir()
    prompt(w)
    bash(w, "cd /elsewhere && make", "one\n", cwd=str(away))
    assert steps(w) == [(1, "prompt: do it"), (1, "after Bash: cd /elsewhere && make")], steps(w)
    known = [p["path"] for p in w.ok("projects", "--json").json("snap.projects/1")["projects"]]
    assert known == [str(w.project)], "what the agent only went to becomes no project"
    w.ok("init", cwd=away)
    (away / "there").write_text("before\n")
    bash(w, "sed there", "two\n", cwd=str(away))
    there = w.ok("log", "--agent", "--json", cwd=away).json("snap.log/1")["snapshots"]
    assert [s["meta"]["turn"] for s in there] == ["1"] and steps(w)[-1] == (1, "after Bash: sed there"), there
    (away / "there").write_text("changed\n")
    said = payload(w, "PreToolUse", tool_name="Edit", tool_input={"file_path": str(away / "new/dir/file")})
    assert hook(w, said) == ""
    assert len(w.ok("log", "--agent", "--json", cwd=away).json("snap.log/1")["snapshots"]) == 2, "for the file, too"
    said = payload(w, "UserPromptSubmit", prompt="first", session_id="another", cwd="/")
    got = w.snap("agents", "hook", "claude-code", input=json.dumps(said).encode(), stdin=None, cwd="/",
                 env={"CLAUDE_PROJECT_DIR": str(w.project)}).ends(0)
    assert got.err == b"" and steps(w, "--agent", "claude-code")[-1] == (1, "prompt: first"), got


@test
def a_project_keeps_so_many_steps_and_a_rollback_says_what_is_gone(w: World):
    config = w.home / ".config/snapcow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("agents: {steps: 4}\n")
    own = w.ok("snapshot", "-q").out.decode().strip()
    for n in range(1, 6):
        prompt(w, f"prompt {n}")
        bash(w, f"sed {n}", f"turn {n}\n")
    assert steps(w) == [(4, "prompt: prompt 4"), (4, "after Bash: sed 4"), (5, "prompt: prompt 5"),
                        (5, "after Bash: sed 5")], steps(w)
    assert own in w.ok("log", "-q").out.decode(), "nobody's own snapshot goes"
    assert b"turn 2" in w.snap("rollback", "--turn", "2").ends(4).err
    w.ok("rollback", "--turn", "4")
    assert (w.project / "README.md").read_text() == "turn 3\n"
    config.write_text("agents: {steps: 1}\n")
    assert "expects a number" in hook(w, payload(w, "UserPromptSubmit", prompt="x")), "and the step is kept"
    w.ok("check")


@test
def steps_that_something_needs_do_not_keep_the_others(w: World):
    needs_fuse()
    config = w.home / ".config/snapcow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("agents: {steps: 40}\n")
    needed = [1, *range(3, 12)]
    for n in range(1, 16):
        prompt(w, f"prompt {n}")
        if n in needed:
            w.ok("clone", "-n", f"needs{n}", "--from", "@")
        (w.project / "README.md").write_text(f"turn {n}\n")
    config.write_text("agents: {steps: 4}\n")
    prompt(w, "prompt 16")
    assert [turn for turn, _ in steps(w)] == [*needed, 13, 14, 15, 16], steps(w)
    w.ok("check")


@test
def what_looks_like_a_secret_is_not_kept(w: World):
    for n, command in enumerate(("curl -H 'Authorization: Bearer abcdef123' x", "TOKEN=abcdef123 make",
                                 "login --password abcdef123", 'x {"api_key": "abcdef123"}',
                                 "use ghp_abcdef123abcdef123 now", "a\nPASSWORD=abcdef123",
                                 r"curl -d '{\"user\": \"me\", \"password\": \"abcdef123\"}'",
                                 r'x "{\\"token\\":\\"abcdef123\\"}" y',
                                 "echo " + base64.b64encode(b"password: abcdef123 of the Xen host 42").decode(),
                                 "-----BEGIN RSA PRIVATE KEY-----\nabcdef123\n-----END RSA PRIVATE KEY-----")):
        prompt(w, command)
        bash(w, command, f"{n}\n")
    out = w.ok("log", "--all", "--json").out.decode()
    assert "abcdef123" not in out and "YWJjZGVm" not in out and "cGFzc3" not in out and "login --password ***" in out, out


@test
def a_hook_never_stands_in_the_way(w: World):
    good = payload(w, "PreToolUse", tool_name="Bash")
    for said, why in ((b"", "what the client says"), (b"[]", "what the client says"), (b"{", "what the client"),
                      ({**good, "hook_event_name": "Stop"}, "'Stop' is no event"),
                      ({**good, "session_id": None}, "names no session"), ({**good, "session_id": 7}, "no session"),
                      ({**good, "cwd": "/"}, "no snapshot of this step"),
                      ({**good, "cwd": str(w.project / "nowhere")}, "no snapshot of this step")):
        for client in SETTINGS:
            err = hook(w, said, client)
            assert why in err and err.count("\n") == 1, (said, err)
    (w.store / "meta.db").parent.mkdir(parents=True, exist_ok=True)
    (w.store / "meta.db").write_bytes(b"no database")
    assert "no snapshot of this step" in hook(w, good)


@test
def labels_that_are_too_long_or_odd_are_cut(w: World):
    said = payload(w, "PreToolUse", tool_name="B\x1b[2Jé\n" + "x" * 900, tool_use_id="é" * 400,
                   tool_input={"command": 7}, session_id="s" * 2000)
    assert hook(w, said) == ""
    (meta,) = [s["meta"] for s in w.ok("log", "--agent", "--json").json("snap.log/1")["snapshots"]]
    assert meta["session"] == "s" * 512 and meta["tool"] == "B?[2Jé" and meta["call"] == "é" * 256, meta


@test
def hooks_are_added_once_beside_others_and_removed(w: World):
    before = {"claude-code": '{\n  // mine\n  "hooks": {\n    "PreToolUse": [\n      { "matcher": "Bash", "hooks": '
                             '[{ "type": "command", "command": "lint" }] } // last\n    ]\n  },\n  "model": "x"\n}\n',
              "gemini": '{\n  "theme": "dark"\n}\n', "codex": '{"hooks": {"Stop": []}}\n'}
    for name, file in SETTINGS.items():
        path = w.home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in before:
            path.write_text(before[name])
        assert w.ok("agents", "--json").json("snap.agents/1")["agents"], name
        w.ok("agents", "add", name, "--hooks", "--dry-run")
        assert not path.exists() or path.read_text() == before[name]
        w.ok("agents", "add", name, "--hooks")
        once = path.read_text()
        w.ok("agents", "add", name, "--hooks")
        assert path.read_text() == once and once.count(f"agents hook {name}") == 3, once
        assert str(SNAP.resolve()) in once
        listed = {a["agent"]: a for a in w.ok("agents", "--json").json("snap.agents/1")["agents"]}
        assert listed[name]["hooks"] is True and listed["zed"]["hooks"] is None
        if name in before:
            assert (path.parent / (path.name + ".before-snap")).read_text() == before[name]
        w.ok("agents", "remove", name)
        left = path.read_text()
        assert "snapcow" not in left.replace(".before-snap", ""), left
        if name == "claude-code":
            assert left == before[name], left
    assert json.loads((w.home / SETTINGS["cursor"]).read_text())["version"] == 1
    assert b"has no hooks that snap knows" in w.snap("agents", "add", "zed", "--hooks").ends(13).err


@test
def a_hook_beside_ours_in_one_element_is_not_lost(w: World):
    w.ok("agents", "add", "claude-code", "--hooks", "--store", "a store", cwd=w.home)
    path = w.home / SETTINGS["claude-code"]
    both = json.loads(path.read_text())
    hooks = both["hooks"]["PreToolUse"][0]["hooks"]
    assert f"'{w.home}/a store'" in hooks[0]["command"], "a store is named from anywhere"
    hooks.append({"type": "command", "command": "lint"})
    path.write_text(json.dumps(both))
    for act in (("add", "claude-code", "--hooks"), ("remove", "claude-code")):
        assert b"must be taken out by hand" in w.snap("agents", *act).ends(2).err
        assert json.loads(path.read_text()) == both


@test
def the_hook_that_is_added_is_a_command_that_works(w: World):
    import subprocess
    w.ok("agents", "add", "claude-code", "--hooks")
    groups = json.loads((w.home / SETTINGS["claude-code"]).read_text())["hooks"]["PreToolUse"]
    command = groups[0]["hooks"][0]["command"]
    said = json.dumps(payload(w, "PreToolUse", tool_name="Bash")).encode()
    subprocess.run(["sh", "-c", command], input=said, env=w.env, cwd=w.project, check=True)
    assert steps(w) == [(1, "before Bash")]


@test
def a_skill_is_written_and_removed_unless_somebody_changed_it(w: World):
    path = w.home / ".claude/skills/snap/SKILL.md"
    w.ok("agents", "add", "claude-code", "--skill")
    text = path.read_text()
    assert text.startswith("---\nname: snap\ndescription: ") and "snap rollback --turn" in text, text
    assert "nothing to change" in w.ok("agents", "add", "claude-code", "--skill").out.decode()
    w.ok("agents", "remove", "claude-code")
    assert not path.parent.exists()
    w.ok("agents", "add", "claude-code", "--skill")
    path.write_text("mine\n")
    w.ok("agents", "remove", "claude-code")
    assert path.read_text() == "mine\n"
    w.ok("agents", "add", "claude-code", "--skill")
    assert path.read_text() == text and (path.parent / "SKILL.md.before-snap").read_text() == "mine\n"


@test
def codex_must_be_told_to_trust_its_hooks(w: World):
    (w.home / ".codex").mkdir(exist_ok=True)
    assert b"trust them" in w.ok("agents", "add", "codex", "--hooks").out
    assert b"trust them" not in w.ok("agents", "add", "codex", "--hooks").out, "nothing is new"
    assert b"trust them" not in w.ok("agents", "remove", "codex").out


if __name__ == "__main__":
    sys.exit(main())
