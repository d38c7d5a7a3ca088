"""snap mcp before programs of the protocol's authors: their conformance suite, and the Inspector.

The suite wants certain tools, resources and prompts: tests/mcp/conformance-server has them, on the
same protocol library and HTTP transport. SNAP_TESTS_LONG=1 fetches the programs from npm, and runs
both requirement sets as a whole; otherwise a few scenarios of each are run, if they are there.
"""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

from mcphttp import Server
from npmtest import node_of, npm_install
from snaptest import SNAP, main, needs_fuse, test

HERE = Path(__file__).resolve().parent.parent / "mcp"
LONG = os.environ.get("SNAP_TESTS_LONG") == "1"
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
REVISIONS = ("2025-11-25", "2026-07-28")
ALWAYS = {"2025-11-25": "server-initialize", "2026-07-28": "server-stateless"}


def programs():
    return npm_install(HERE / "package.json", "npm-conformance", fetch=LONG)


def run(w, *words, status=0):
    done = subprocess.run(words, cwd=w.top, env=w.env, stdin=subprocess.DEVNULL, timeout=400,
                          capture_output=True, check=False)
    assert done.returncode == status, (words, done.returncode, done.stdout[-3000:], done.stderr[-2000:])
    return done.stdout.decode()


def required(at, revision):
    """What the set of a revision demands."""
    text = (at / "node_modules/@modelcontextprotocol/conformance/requirements" / f"{revision}.yaml").read_text()
    return re.findall(r"^  - (\S+)$", text[text.index("\nserver:"):text.index("\nclient:")], re.M)


@test
def every_scenario_that_a_revision_requires_is_passed(w):
    at = programs()
    excused = set(re.findall(r"^  - (\S+)$", (HERE / "expected-failures.yaml").read_text(), re.M))
    seed = int(os.environ.get("SNAP_TEST_SEED") or random.randrange(1 << 32))
    print(f"# seed {seed}: SNAP_TEST_SEED={seed} repeats it")
    suite = [node_of(at), at / SUITE, "server"]
    with Server(w, command=[os.environ["SNAP_CONFORMANCE_SERVER"], HERE / "fixtures.json"]) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        for revision in REVISIONS:
            wanted = required(at, revision)
            assert len(wanted) >= 30 and not excused & set(wanted), wanted
            if not LONG:
                for name in (ALWAYS[revision], random.Random(seed).choice(wanted)):
                    run(w, *suite, "--url", url, "--spec-version", revision, "--scenario", name)
                continue
            out = run(w, *suite, "--url", url, "--requirements", revision)
            passed = set(re.findall(r"^\u2713 (\S+): [1-9]", out, re.M))
            failed = set(re.findall(r"^\u2717 (\S+):", out, re.M))
            assert set(wanted) <= passed, set(wanted) - passed
            assert failed <= excused, failed - excused
            if revision == REVISIONS[-1]:
                assert failed == excused, f"no longer to be excused: {excused - failed}"


@test
def the_inspector_works_in_both_eras_over_both_transports(w):
    needs_fuse()
    at = programs()
    inspector = [node_of(at), at / INSPECTOR, "--cli", "--quiet", "--format", "json", "--stored-auth-only"]
    w.ok("clone", "-n", "seen")
    with Server(w) as server:
        over_http = ["--header", f"Authorization: Bearer {server.token}",
                     "--server-url", f"http://127.0.0.1:{server.port}/mcp"]
        over_stdio = ["-e", f"SNAPCOW_STORE={w.store}", SNAP, "-C", w.project, "mcp"]
        for era in ("legacy", "modern"):
            for target in (over_http, over_stdio):
                def ask(*words, target=target, era=era):
                    options = ["--protocol-era", era, *words]
                    # The command of a server comes last, and its own options behind it.
                    return json.loads(run(w, *inspector, *options, *target))

                listed = ask("--method", "tools/list")
                listed = listed.get("result", listed)["tools"]
                assert "snap_promote" in [t["name"] for t in listed], listed
                if not LONG:
                    continue
                got = ask("--method", "tools/call", "--tool-name", "snap_list")
                got = got.get("result", got)["structuredContent"]
                assert [c["clone"] for c in got["clones"]] == ["seen"], got
                got = ask("--method", "resources/read", "--uri", "snap://clones")
                assert "seen" in json.dumps(got), got


if __name__ == "__main__":
    sys.exit(main())
