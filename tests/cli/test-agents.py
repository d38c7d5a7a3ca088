"""Agents on this machine: our entry in their files, and nothing else of those changed."""

import json
import random
import re
import sys

from snaptest import SNAP, World, main, test

FILES = {"claude-code": ".claude.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json",
         "cursor": ".cursor/mcp.json", "vscode": ".config/Code/User/mcp.json",
         "windsurf": ".codeium/windsurf/mcp_config.json", "zed": ".config/zed/settings.json",
         "opencode": ".config/opencode/opencode.json", "openhands": ".openhands/mcp.json"}

GEMINI = """{
    // stays
    "theme": "dark", /* stays too */
    "mcpServers": {
        "other": { "command": "a // no comment", "args": ["\\"", 2,], } // the last one
    },
}
"""

CODEX = """model = "x" # stays

[mcp_servers.other]
command = "[mcp_servers.snap]"

[history]
max = 1
"""


def put(w, name, text):
    path = w.home / FILES[name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def plain(text):
    """JSON without what only people need."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or "", text, flags=re.S)
    return json.loads(re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda m: m[1] or "", text))


def agents(w, *args):
    got = w.ok("agents", "--json", *args).json("snap.agents/1", "act", "agents")
    return {a["agent"]: a for a in got["agents"]}


@test
def every_agent_is_listed_and_one_that_was_used_is_found(w: World):
    put(w, "codex", "")
    got = agents(w)
    assert set(got) == set(FILES), got
    assert got["codex"]["found"] and not got["codex"]["set_up"], got
    assert all(got[n]["file"] == str(w.home / f) for n, f in FILES.items()), got
    assert "agents add codex" in w.ok("agents").out.decode()


@test
def an_entry_is_added_to_every_agent_once_and_removed(w: World):
    for name in FILES:
        w.ok("agents", "add", name)
        path = w.home / FILES[name]
        once = path.read_text()
        assert str(SNAP.resolve()) in once and '"mcp"' in once, once
        assert path.stat().st_mode & 0o077 == 0, oct(path.stat().st_mode)
        w.ok("agents", "add", name)
        assert path.read_text() == once
        if path.suffix == ".json":
            json.loads(once)
        got = agents(w)[name]
        assert got["set_up"] and got["current"], got
        w.ok("agents", "remove", name)
        assert "snap" not in path.read_text().replace(str(SNAP.resolve()), "snap"), path.read_text()
        assert "nothing to change" in w.ok("agents", "remove", name).out.decode()


@test
def comments_and_all_else_of_a_file_stay(w: World):
    path = put(w, "gemini", GEMINI)
    w.ok("agents", "add", "gemini", "--no-promote")
    got = path.read_text()
    entry = [line for line in got.splitlines() if '"snap"' in line]
    assert len(entry) == 1 and "--no-promote" in entry[0], got
    assert got.replace(entry[0] + "\n", "").replace("}, // the", "} // the") == GEMINI, got
    assert plain(got)["mcpServers"]["snap"]["args"] == ["mcp", "--no-promote"], got
    assert (path.parent / (path.name + ".before-snap")).read_text() == GEMINI
    w.ok("agents", "remove", "gemini")
    assert path.read_text() == GEMINI, path.read_text()


@test
def a_toml_file_keeps_its_other_sections(w: World):
    path = put(w, "codex", CODEX)
    w.ok("agents", "add", "codex")
    w.ok("agents", "add", "codex", "--read-only")
    got = path.read_text()
    assert got.startswith(CODEX) and got.count("[mcp_servers.snap]\n") == 1, got
    assert '["mcp","--read-only"]' in got, got
    w.ok("agents", "remove", "codex")
    assert path.read_text() == CODEX, path.read_text()


@test
def an_entry_of_another_program_is_replaced_in_its_place(w: World):
    path = put(w, "cursor", '{"mcpServers": {"snap": {"command": "old"}, "b": {}}}')
    assert agents(w)["cursor"]["set_up"] and not agents(w)["cursor"]["current"]
    w.ok("agents", "add", "cursor")
    got = json.loads(path.read_text())
    assert list(got["mcpServers"]) == ["snap", "b"], got
    assert got["mcpServers"]["snap"]["command"] == str(SNAP.resolve()), got


@test
def what_cannot_be_understood_is_not_touched(w: World):
    for text, why in (('{"a": [}', "line 1: a value is missing"), ("[]", "not an object"),
                      ('{\n"mcpServers": 3}', "line 2: it is not an object"), ('{"a": 1', "'}' is missing"),
                      ('{"a": 1 "b": 2}', "',' is missing"), ('{} x', "follows"), ('{"a', "no end"),
                      ('{"mcpServers": {"snap": 1, "snap": 2}}', "given twice"), ("/* ", "no end"),
                      ("[" * 100_000, "not an object"), ('{"a":' + "[" * 100_000, "nested")):
        path = put(w, "cursor", text)
        failed = w.snap("agents", "add", "cursor").fails(2, "is left as it is", why)
        assert b"agents show cursor" in failed.err, str(failed)
        assert path.read_text() == text
        assert not (path.parent / "mcp.json.before-snap").exists()


@test
def a_dry_run_writes_nothing_and_show_prints_what_would_be_written(w: World):
    w.ok("agents", "add", "vscode", "--dry-run")
    assert not (w.home / FILES["vscode"]).exists()
    shown = json.loads(w.ok("agents", "show", "vscode", "--allow-promote").out)
    assert shown["servers"]["snap"] == {"type": "stdio", "command": str(SNAP.resolve()),
                                        "args": ["mcp", "--allow-promote"]}, shown


@test
def a_link_stays_one_and_modes_stay(w: World):
    real = w.top / "dotfiles"
    real.write_text("{}")
    real.chmod(0o640)
    (w.home / ".claude.json").symlink_to(real)
    w.ok("agents", "add", "claude-code")
    assert (w.home / ".claude.json").is_symlink()
    assert "mcpServers" in json.loads(real.read_text()) and real.stat().st_mode & 0o777 == 0o640


@test
def unknown_agents_and_words_are_refused(w: World):
    w.snap("agents", "add", "clippy").fails(4, "there is no agent 'clippy'; there are claude-code, codex")
    w.snap("agents", "add").fails(2, "'agents' takes nothing, or")
    w.snap("agents", "frob", "codex").fails(2, "'agents' takes nothing, or")
    w.snap("agents", "add", "codex", "--read-only", "--no-promote").fails(2, "exclude each other")
    assert "## Working in clones" in w.ok("agents", "--guide").out.decode()


def some_json(rng, depth=0):
    """A random object with comments, blanks and commas where people put them."""
    def gap():
        return rng.choice(["", " ", "\n  ", " // c }\n", " /* { */ ", "\t"])
    members = []
    for i in range(rng.randrange(4)):
        value = (some_json(rng, depth + 1) if depth < 3 and rng.random() < 0.4 else
                 rng.choice(['"s"', '"a\\"}b"', "1", "null", "[]", '[1,{"x":2}]']))
        members.append(f'{gap()}"k{i}"{gap()}:{gap()}{value}{gap()}')
    return "{" + ",".join(members) + (rng.choice(["", ","]) if members else "") + gap() + "}"


@test
def random_files_keep_their_meaning(w: World):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    for i in range(25):
        servers = f'"mcpServers": {some_json(rng)}'
        text = rng.choice([some_json(rng), "{" + servers + "}", '{"a": 1, ' + servers + ', "z": [2]}'])
        path = put(w, "cursor", text)
        w.ok("agents", "add", "cursor")
        want, got = plain(text), plain(path.read_text())
        ours = got["mcpServers"].pop("snap")
        assert ours["args"] == ["mcp"], f"seed {seed}: {text}"
        if "mcpServers" not in want:
            got.pop("mcpServers")
        assert got == want, f"seed {seed}: {text}\n{path.read_text()}"
        w.ok("agents", "remove", "cursor")
        got = plain(path.read_text())
        assert {**got, "mcpServers": 0} == {**want, "mcpServers": 0}, f"seed {seed}: {text}"


if __name__ == "__main__":
    sys.exit(main())
