"""snap ui in a real browser: every view with real data, and changes made by clicking."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mcptest import Client
from npmtest import npm_install
from snaptest import Skip, main, needs_fuse, test
from uitest import Server

# Names that readers of patches trip over; what they hold must be seen all the same.
ODD = ("sp ace.sh", 'ev"il.sh', "zero\u200bwidth.sh", "a 2024-01-01 00:00:00 +0000.sh")
HERE = Path(__file__).resolve().parent / "browser"


def follow(process, when):
    """What the browser found at last; when it has reached a place, what `when` has for that is done."""
    for line in process.stdout:
        told = json.loads(line)
        if "reached" not in told:
            return told
        when[told["reached"]]()
    return None


def browse(server, *steps, when=None, **more):
    """What the browser found while it did those steps."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        raise Skip("no Chromium is installed")
    packages = npm_install(HERE / "package.json", "npm-browser", fetch=bool(os.environ.get("SNAP_TESTS_LONG")))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as plan:
        json.dump({"url": server.url, "steps": steps, "shots": os.environ.get("SNAP_SCREENSHOTS"), **more}, plan)
        plan.flush()
        with tempfile.TemporaryFile() as log:
            # What it waits for has a bound of its own, in story.mjs.
            with subprocess.Popen(["node", HERE / "story.mjs", packages, chromium, plan.name],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log) as process:
                found = follow(process, when or {})
            log.seek(0)
            assert process.returncode == 0, log.read().decode()[-3000:]
    for kind in ("violations", "errors", "outside", "wide"):
        assert found[kind] == [], (kind, found[kind])
    return found["said"]


def fill(w):
    """A project with something in every view."""
    (w.project / "total.py").write_text("def total(xs):\n    return sum(xs)\n")
    w.take("-t", "v1", "-m", "<b>start</b> & more")
    w.ok("clone", "-n", "fix")
    there = w.store / "clones" / "fix"
    (there / "total.py").write_text("def total(xs):\n    return sum(x for x in xs)\n")
    (there / "logo").write_bytes(bytes(range(256)))
    (there / "<img src=x onerror=alert(1)>").write_text("\u202eno\n")
    for name in ODD:
        (there / name).write_text(f"content of {ODD.index(name)}\n")
    w.take("fix", "-m", "by a generator")
    w.snap("run", "fix", "--", "sh", "-c", r"printf '\033[31mred\033[0m\n<script>\n'; exit 3")
    w.ok("experiment", "-n", "faster", "--arm", "a=echo 1 > a.txt", "--arm", "b=false", "--check", "true",
         "--keep", "passed")
    (w.project / "total.py").write_text("def total(xs):\n    return float(sum(xs))\n")


@test
def every_view_shows_real_data_to_everybody(w):
    needs_fuse()
    fill(w)
    run = w.ok("runs", "fix", "--json").json("snap.runs/1")["runs"][0]["run"]
    with Server(w) as server:
        said = browse(server, "views", "first_paint",
                      views=["timeline", "clones/fix", "experiments/faster", f"runs/{run}", "changes", "store", "diff/fix"])
    for i, name in enumerate(ODD):
        assert f"content of {i}" in said["diff"], name
    assert "#" not in said["address"] or server.token not in said["address"], "the token left the address bar"
    print(f"# first paint after {said['paint']:.0f} ms, {said['cpu']:.0f} ms of the page's thread")


@test
def what_a_run_uses_is_drawn_while_it_lives_and_afterwards(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "fix")
    run = w.ok("-q", "run", "--detach", "fix", "--", "sh", "-c",
               "until [ -e stop ]; do head -c 300000 /dev/zero >> big; done").out.decode().strip()

    def stop():
        (w.store / "clones" / "fix" / "stop").write_text("")

    with Server(w) as server:
        said = browse(server, "curves", run=run, when={"live": stop})
    assert [text.split()[0] for text in said["curves"]] == ["Processors", "Memory", "Written", "Processes"], said
    assert all("over time, at most" in label for label in said["labels"]), said
    assert "at most 0" not in said["labels"][1] and "at most 0" not in said["labels"][2], said


@test
def the_growth_of_the_store_is_drawn(w):
    for i in range(3):
        (w.project / "data").write_bytes(os.urandom(1 << 20))
        w.take()
        w.ok("stop")
    with Server(w) as server:
        said = browse(server, "growth")
    assert [text.split("\n")[0] for text in said["growth"]] == [
        "On disk", "Holds", "Times less by sharing and packing"], said


def step(w, event, **more):
    """What the hook of an agent tells."""
    told = {"session_id": "5e55", "cwd": str(w.project), "hook_event_name": event, **more}
    w.snap("agents", "hook", "claude-code", input=json.dumps(told).encode(), stdin=None).ends(0)


@test
def the_timeline_has_runs_promotions_and_steps_of_agents(w):
    needs_fuse()
    w.take("-m", "start")
    w.ok("clone", "-n", "fix")
    (w.store / "clones" / "fix" / "README.md").write_text("before the run\n")
    run = w.ok("run", "--json", "fix", "--", "sh", "-c", "echo new > new").json("snap.run/1")["run"]
    w.ok("promote", "fix")
    step(w, "UserPromptSubmit", prompt="do it")
    w.snap("snapshot", "-m", "labelled", "--meta", "client=claude-code", "--meta", "step=prompt", "--meta", "turn=9").ends(0)
    with Server(w) as server:
        said = browse(server, "timeline")
    kinds = [kind for kind, _ in said["rows"]]
    texts = {kind: text for kind, text in said["rows"]}
    assert kinds == ["snapshot", "step", "receipt", "snapshot", "run", "automatic", "snapshot"], said
    assert "labelled" in said["rows"][0][1], "a label makes no step"
    assert "claude-code, turn 1" in texts["step"] and "do it" in texts["step"], said
    assert "exit 0" in texts["run"] and "echo new > new" in texts["run"], said
    assert "promotion" in texts["receipt"] and "fix" in texts["receipt"], said
    assert said["without"] == ["snapshot", "snapshot", "snapshot"], said
    assert said["opened"] == f"runs/{run}", said


@test
def a_long_history_keeps_the_page_small(w):
    """10,000 snapshots of 500 clones and 2,000 runs, as the server would tell them."""
    w.take()
    w.ok("clone", "-n", "one")
    with Server(w) as server:
        said = browse(server, "long", snapshots=10000, clones=500, runs=2000)
    assert 0 < said["most"] <= 150, said
    assert said["total"] == 12000 and said["last"] == "number 9999", said
    print(f"# first screen after {said['first']:.0f} ms, all of it after {said['all']:.0f} ms, "
          f"{said['heap'] / 2**20:.1f} MiB of heap, {said['most']} rows drawn at most")


@test
def the_files_of_a_diff_are_a_tree(w):
    needs_fuse()
    w.take()
    w.ok("clone", "-n", "fix")
    there = w.store / "clones" / "fix"
    (there / "a" / "b").mkdir(parents=True)
    for i in range(150):
        (there / "a" / "b" / f"{i:03}.txt").write_text(f"content {i}\n")
    with Server(w) as server:
        said = browse(server, "tree", clone="fix", file="149.txt")
    assert "a/b/" in said["tree"], said
    assert "content 149" in said["file"] and said["drawn"] <= 100, said


@test
def an_arm_is_promoted_by_clicking(w):
    needs_fuse()
    w.take()
    w.ok("experiment", "-n", "faster", "--arm", "a=echo 1 > a.txt", "--arm", "b=false", "--check", "true",
         "--keep", "passed", "--first-pass")
    with Server(w) as server:
        said = browse(server, "promote_arm", experiment="faster")
    assert "A a.txt" in said["plan"], said
    assert (w.project / "a.txt").read_text() == "1\n"


@test
def an_experiment_is_watched_from_its_start_until_it_is_promoted(w):
    needs_fuse()
    w.take()
    hold = "until [ -e stop ]; do sleep 0.05; done; rm stop"

    def start():
        w.ok("experiment", "-n", "live", "--detach", "--jobs", "2", "--arm", f"a={hold}; echo 1 > a.txt", "--arm",
             f"b={hold}; false", "--check", "test -s a.txt", "--keep", "passed")

    def free(arm):
        (w.store / "clones" / f"live-{arm}" / "stop").touch()

    with Server(w) as server:
        said = browse(server, "watch_live", experiment="live",
                      when={"open": start, "running": lambda: free("b"), "one failed": lambda: free("a")})
    assert said["loads"] == 1, "the page was never loaded again"
    assert "A a.txt" in said["plan"] and not said["early"], said
    assert (w.project / "a.txt").read_text() == "1\n"
    show = w.ok("experiment", "show", "live", "--json").json("snap.experiment/1")
    assert show["promoted"] == ["a"], show


@test
def a_conflict_has_three_versions(w):
    needs_fuse()
    fill(w)
    with Server(w) as server:
        said = browse(server, "conflict", clone="fix")
    for version in ("float(sum(xs))", "sum(xs)", "sum(x for x in xs)"):
        assert version in said["conflict"], said


@test
def a_change_is_approved_by_clicking(w):
    needs_fuse()
    stages = w.home / ".config" / "snapcow" / "pipeline.yaml"
    stages.parent.mkdir(parents=True)
    stages.write_text("- stages: [{name: dev, target: ., approve: always}]\n")
    w.take()
    w.ok("clone", "-n", "fix")
    (w.store / "clones" / "fix" / "new").write_text("new\n")
    w.snap("ship", "fix").ends(14)
    with Server(w) as server:
        browse(server, "approve")
        w.snap("pipeline", "advance")
    assert (w.project / "new").read_text() == "new\n"


@test
def a_change_stands_where_it_is_and_not_where_it_goes(w):
    needs_fuse()
    file = w.home / ".config" / "snapcow" / "pipeline.yaml"
    file.parent.mkdir(parents=True)
    (w.top / "there").mkdir()
    w.take()
    for name, approve, status in (("done", "never", 0), ("fix", "always", 14)):
        file.write_text(f"- stages: [{{name: verified, target: ., approve: {approve}}}, "
                        f"{{name: staging, target: {w.top / 'there'}, approve: never}}]\n")
        w.ok("clone", "-n", name)
        (w.store / "clones" / name / name).write_text("new\n")
        w.snap("ship", name, "--to", "staging").ends(status)
    with Server(w) as server:
        said = browse(server, "board", changes=2)
    assert list(said["board"]) == ["stage verified", "stage staging"], said
    for stage, stands, elsewhere in (("stage verified", "fix", "done"), ("stage staging", "done", "fix")):
        names = said["board"][stage]
        assert stands in names and elsewhere not in names, said


@test
def a_client_of_agents_shows_an_experiment(w):
    needs_fuse()
    w.take()
    w.ok("experiment", "-n", "faster", "--arm", "a=echo 1 > a.txt", "--arm", "b=echo 2 > b.txt", "--check", "true",
         "--score", "lines", "--keep", "passed")
    show = w.ok("experiment", "show", "faster", "--json").json("snap.experiment/1")
    show["winner"] = "a"
    promote = w.ok("promote", "faster-a", "--dry-run", "--json").json("snap.promote/1")
    with Server(w) as server, Client(w) as agent:
        tools = {t["name"]: t for t in agent.ask("tools/list")["result"]["tools"]}
        address = tools["snap_experiment_show"]["_meta"]["ui"]["resourceUri"]
        page = agent.ask("resources/read", uri=address)["result"]["contents"][0]
        assert page["mimeType"] == "text/html;profile=mcp-app" and page["uri"] == address
        said = browse(server, "app", app=page["text"], show=show, promote=promote)
    asked = [c for c in said["calls"] if c[0] == "tools/call"]
    assert asked[0][1] == "snap_experiment_show", asked
    assert [c[1:] for c in asked if c[1] == "snap_promote"] == [["snap_promote", True], ["snap_promote", None]], asked


@test
def other_pages_and_other_tokens_get_nothing(w):
    w.take()
    with Server(w) as server:
        said = browse(server, "stranger", "wrong_token")
    assert said["stranger"][0] == "refused", said
    assert "Authorization" in said["wrong"], said


if __name__ == "__main__":
    sys.exit(main())
