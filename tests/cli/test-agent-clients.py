"""Real agents, driven by a scripted model on the loopback: a whole story with snap's tools, and its hooks fire."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from modeltest import Model
from npmtest import npm_install
from snaptest import SNAP, Skip, World, main, needs_fuse, test

HERE = Path(__file__).parent / "agent-clients"
SECONDS = 300


def packages():
    if not os.environ.get("SNAP_TESTS_LONG"):
        raise Skip("Claude Code and Codex are large; SNAP_TESTS_LONG=1 fetches them from npm")
    return npm_install(HERE / "package.json", "npm-agents")


def program(at, *places):
    """The client's own program, without its launcher."""
    arch = {"aarch64": "arm64", "x86_64": "x64"}.get(platform.machine())
    for place in places:
        found = sorted(at.glob(f"node_modules/{place.format(arch=arch, machine=platform.machine())}"))
        if found:
            return found[0]
    raise Skip(f"npm has no such client for {platform.machine()}")


def story(name, *more):
    """Clone, edit, run, see it fail, roll back, fix, promote; and what comes then."""
    def tool(what):
        return name.format(what)
    return [(tool("snap_clone"), {"name": "fix"}),
            (tool("snap_write"), {"clone": "fix", "path": "check.sh", "content": "grep -q right README.md\n"}),
            (tool("snap_snapshot"), {"clone": "fix", "message": "the check"}),
            (tool("snap_write"), {"clone": "fix", "path": "README.md", "content": "wrong\n"}),
            (tool("snap_run"), {"clone": "fix", "command": "sh check.sh"}),
            (tool("snap_rollback"), {"clone": "fix"}),
            (tool("snap_edit"), {"clone": "fix", "path": "README.md", "old": "first", "new": "right"}),
            (tool("snap_run"), {"clone": "fix", "command": "sh check.sh"}),
            (tool("snap_promote"), {"clone": "fix", "check": ["sh check.sh"]}),
            *more]


def judge(w, results, client):
    assert len(results) >= 9, results
    assert '"exit_code":1' in results[4].replace(" ", ""), results[4]
    assert '"exit_code":0' in results[7].replace(" ", ""), results[7]
    assert (w.project / "README.md").read_text() == "right\n", results
    calls = w.ok("runs", "--agent", "--json").json("snap.runs/1")["calls"]
    assert [c["tool"] for c in reversed(calls)] == [
        "snap_clone", "snap_write", "snap_snapshot", "snap_write", "snap_run", "snap_rollback", "snap_edit", "snap_run",
        "snap_promote"], calls
    assert all(c["outcome"] == "ok" for c in calls) and client in calls[0]["client"].lower(), calls
    w.ok("check")


def run(w, words, env):
    done = subprocess.run(words, cwd=w.project, env={**w.env, **env}, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=SECONDS, check=False)
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


@test
def claude_code_tells_the_whole_story_and_its_hooks_fire(w: World):
    needs_fuse()
    claude = program(packages(), "@anthropic-ai/claude-code-linux-{arch}/claude", "@anthropic-ai/claude-code/cli.js")
    w.ok("init")
    w.ok("agents", "add", "claude-code", "--hooks", "--allow-promote")
    config = w.home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"snap": {"command": str(SNAP), "args": ["--store", str(w.store), "mcp", "--allow-promote"]}}}))
    with Model(story("mcp__snap__{}", ("Bash", {"command": "echo from the shell > note", "description": "a note"}))) as model:
        run(w, [claude, "-p", "do what the script has", "--mcp-config", config, "--strict-mcp-config", "--model", "claude-sonnet-4-5",
                "--allowedTools", "mcp__snap", "Bash"],
            {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
             "DISABLE_AUTOUPDATER": "1", "SNAPCOW_STORE": str(w.store)})
        judge(w, model.results, "claude")
    assert (w.project / "note").read_text() == "from the shell\n"
    steps = [s["message"] for s in w.ok("log", "--agent", "--json").json("snap.log/1")["snapshots"]]
    assert "after Bash: echo from the shell > note" in steps and "prompt: do what the script has" in steps, steps
    w.ok("rollback", "--turn", "1")
    assert not (w.project / "note").exists() and (w.project / "README.md").read_text() == "first\n"


@test
def codex_tells_the_whole_story_and_its_hooks_fire(w: World):
    needs_fuse()
    codex = program(packages(), "@openai/codex-linux-{arch}/vendor/*/bin/codex",
                    "@openai/codex-linux-{arch}/vendor/*/codex/codex")
    w.ok("init")
    w.ok("--store", str(w.store), "agents", "add", "codex", "--hooks", "--allow-promote")
    with Model(story("mcp__snap/{}", ("exec_command", {"cmd": "echo from the shell > note"}))) as model:
        provider = f'{{name="script",base_url="{model.url}/v1",wire_api="responses",requires_openai_auth=false}}'
        run(w, [codex, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-s", "danger-full-access", "-c", "approval_policy=\"never\"", "-c", "model_provider=script", "-c", "mcp_servers.snap.default_tools_approval_mode=\"approve\"",
                "-c", f"model_providers.script={provider}", "-c", 'model="gpt-5"', "do what the script has"],
            {"CODEX_HOME": str(w.home / ".codex"), "SNAPCOW_STORE": str(w.store)})
        judge(w, model.results, "codex")
    assert (w.project / "note").read_text() == "from the shell\n"
    steps = [s["message"] for s in w.ok("log", "--agent", "codex", "--json").json("snap.log/1")["snapshots"]]
    assert "after Bash: echo from the shell > note" in steps and "prompt: do what the script has" in steps, steps
    w.ok("rollback", "--turn", "1")
    assert not (w.project / "note").exists() and (w.project / "README.md").read_text() == "first\n"


if __name__ == "__main__":
    sys.exit(main())
