"""experiment show: how arms stand to each other, to the project and to the rules; and the page."""

import html.parser
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from experimenttest import arm, experiment  # noqa: E402
from livetest import live_test  # noqa: E402


def overlaps(got, name):
    return {o["with"]: (o["paths"], o["conflicts"], o["path"]) for o in arm(got, name)["overlaps"]}


def three(w, *more):
    (w.project / "text").write_text("".join(f"{i}\n" for i in range(40)))
    return experiment(w, "-n", "t", "--arm", "top=sed -i 's/^1$/one/' text", "--arm",
                      "same=sed -i 's/^1$/uno/' text; echo x > .envrc", "--arm", "end=sed -i 's/^38$/last/' text",
                      "--arm", "none=true", "--score", "lines", *more)


@live_test
def arms_are_merged_with_each_other_and_with_the_project(w):
    three(w, "--keep", "all")
    got = experiment(w, "show", "t")
    assert overlaps(got, "top") == {".": (0, 0, None), "same": (1, 1, "text"), "end": (1, 0, "text")}, got
    assert overlaps(got, "none") == {} and arm(got, "none")["risk"] is None, "it has nothing to promote"
    assert arm(got, "top")["risk"] == "low" and arm(got, "same")["risk"] == "high", got
    assert [r["path"] for r in arm(got, "same")["reasons"] if r["risk"] == "high"] == [".envrc"], got
    shown = w.ok("experiment", "show", "t").out.decode()
    for line in ("  conflicts with same in text", "  merges with end, which changed text",
                 "  applies to the project as it is", "  high: .envrc"):
        assert line in shown, shown
    # The project moves on; the answer is what is true now.
    text = w.project / "text"
    text.write_text(text.read_text().replace("\n1\n", "\neins\n"))
    got = experiment(w, "show", "t")
    assert overlaps(got, "top")["."] == (1, 1, "text") and overlaps(got, "end")["."] == (1, 0, "text"), got
    assert "  conflicts with the project in text" in w.ok("experiment", "show", "t").out.decode()


@live_test
def of_arms_whose_clones_are_gone_the_paths_are_compared(w):
    three(w, "--keep", "none")
    got = experiment(w, "show", "t")
    assert overlaps(got, "top") == {"same": (1, None, "text"), "end": (1, None, "text")}, got
    assert arm(got, "same")["risk"] is None and arm(got, "same")["warnings"][0]["kind"] == "guard", got
    assert b"  shares changed paths with same: text (a clone is gone, so nothing was merged)" \
        in w.ok("experiment", "show", "t").out
    other = w.top / "elsewhere"
    other.mkdir()
    w.ok("-C", str(other), "experiment", "show", "t")


@live_test
def one_that_was_told_elsewhere_is_told_of_its_own_project(w):
    three(w, "--keep", "all")
    other = w.top / "elsewhere"
    other.mkdir()
    got = w.ok("-C", str(other), "--json", "experiment", "show", "t").json("snap.experiment/1", "arms")
    assert overlaps(got, "top")["."] == (0, 0, None), got


class Page(html.parser.HTMLParser):
    """What the page says, and all that it would load or run."""

    def __init__(self, text):
        super().__init__()
        self.words, self.tags, self.wanted = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.wanted += [(tag, k, v) for k, v in attrs if k in ("src", "href", "action") or k.startswith("on")]

    def handle_data(self, data):
        self.words.append(data)


@live_test
def the_page_is_one_file_with_table_chart_and_diffs(w):
    file = w.top / "page.html"
    (w.project / "text").write_text("one\n")
    experiment(w, "-n", "h", "--arm", "a=echo '<script>alert(1)</script>' > text", "--arm", "b=echo two > text; exit 3",
               "--arm", "c=seq 50 > text", "--score", "wc -c < text", "--html", str(file))
    page = Page(file.read_text())
    assert "script" not in page.tags and not page.wanted, (page.tags, page.wanted)
    said = " ".join(" ".join(page.words).split())
    for words in ("experiment h", "'a' wins", "the command ended with 3", "wins", "Side by side", "alert(1)"):
        assert words in said, (words, said)
    assert page.tags.count("rect") == 2, "a bar for each score"
    w.ok("experiment", "show", "h", "--html", str(file))
    assert "'a' wins" in " ".join(Page(file.read_text()).words)
    # Nothing that could be compared is no reason for no page.
    experiment(w, "-n", "n", "--arm", "a=true", "--arm", "b=false", "--html", str(file))
    assert "it is the only arm that passed" in " ".join(Page(file.read_text()).words)
    w.snap("experiment", "show", "h", "--html", str(w.top / "no" / "where.html")).fails(2, "where.html")


@live_test
def steps_and_results_of_a_run_have_no_standings(w):
    got = three(w)
    assert "overlaps" not in arm(got, "top"), got
    lines = w.ok("experiment", "--json", "--steps", "--arm", "a=true").out.splitlines()
    assert all("risk" not in json.loads(line).get("step", {}) for line in lines)


@live_test
def arms_that_do_not_pass_have_their_figures(w):
    (w.project / "text").write_text("1\n")
    page = w.top / "page.html"
    got = experiment(w, "-n", "f", "--arm", "bad=echo 2 >> text; exit 1", "--arm", "late=echo 3 >> text; sleep 609",
                     "--arm", "never=true", "--jobs", "1", "--all-time", "3s", "--html", page, status=15)
    bad, late, never = (arm(got, name) for name in ("bad", "late", "never"))
    assert (bad["state"], late["state"], never["state"]) == ("failed", "stopped", "stopped"), got
    for one in (bad, late):
        assert one["changed"]["lines_added"] == 1 and one["changed"]["modified"] == 1, one
        assert one["changed"]["paths"] == [{"path": "text", "status": "modified"}] and one["run"], one
    assert 500 <= late["duration_ms"] <= 20000 and never["run"] is None, got
    shown = {line.split()[0]: line for line in w.ok("experiment", "show", "f").out.decode().splitlines()[2:5]}
    assert "+1 -0" in shown["bad"] and "+1 -0" in shown["late"] and " 0ms " not in shown["late"], shown
    assert shown["never"].split()[1:3] == ["stopped", "-"] and "+0" not in shown["never"], shown
    cells = page.read_text().split("<td>never</td>")[1].split("</tr>")[0]
    assert "0ms" not in cells and "+0" not in cells, cells


@live_test
def the_page_can_go_to_standard_output(w):
    made = w.ok("experiment", "-n", "s", "--arm", "a=echo a > a", "--arm", "b=echo b > a", "--keep", "all", "--html",
                "-")
    assert made.out.startswith(b"<!DOCTYPE html>") and made.out.endswith(b"</html>\n"), made
    assert b"experiment s" in made.err and not (w.project / "-").exists(), made
    for words in (("experiment", "show", "s"), ("compare", "s-a", "s-b")):
        shown = w.ok(*words, "--html", "-")
        assert shown.out.startswith(b"<!DOCTYPE html>") and shown.out.endswith(b"</html>\n") and shown.err, shown
        w.snap(*words, "--html", "-", "--json").fails_json(2, "E_USAGE")
    w.snap("experiment", "--arm", "a=true", "--detach", "--html", "-").fails(2, "'--detach'")


@live_test
def arms_that_are_not_compatible_name_where_they_conflict(w):
    for name in "abcdefg":
        (w.project / name).write_text("base\n")
    got = experiment(w, "-n", "c", "--arm", "one=echo 1 | tee a b c d e f g > /dev/null", "--arm", "two=echo 2 > b",
                     "--arm", "all=echo 3 | tee a b c d e f g > /dev/null", "--promote-all-compatible")
    assert got["promoted"] == ["one"], got
    assert arm(got, "two")["why"] == "not promoted: it conflicts with the project in b", got
    assert arm(got, "all")["why"] == "not promoted: it conflicts with the project in a, b, c, d, e and 2 more", got


# --- why an arm did not pass -----------------------------------------------------------------

BAD = "for i in $(seq 30); do echo line $i; done; printf 'red \\033[31m<b>\\000end\\n' >&2; exit 3"


@live_test
def what_arms_printed_that_did_not_pass_is_shown(w):
    page = w.top / "page.html"
    made = w.snap("experiment", "-n", "p", "--arm", f"bad={BAD}", "--arm", "checked=true", "--arm", "quiet=exit 4",
                  "--check", "echo no such luck; exit 5", "--html", page).ends(15)
    got = experiment(w, "show", "p")
    runs = {"bad": arm(got, "bad")["run"], "checked": arm(got, "checked")["checks"][0]["run"],
            "quiet": arm(got, "quiet")["run"]}
    shown = w.ok("experiment", "show", "p").out.decode()
    for name, run in runs.items():
        hint = f"logs {run}\n"
        assert f"what {name} printed: " in made.out.decode() and hint in made.out.decode(), made
        assert f"what {name} printed" in shown and hint in shown and run in page.read_text(), shown
        command = next(line for line in shown.splitlines() if line.endswith(hint[:-1])).split(": ", 1)[1].split()
        assert w.ok(*command[1:]).out is not None
    assert b"line 30" not in made.out, "the table stays short"
    assert "  ...\n  line 22\n" in shown and "line 21\n" not in shown and "  line 30\n" in shown, shown
    assert "\033" not in shown and "red \\x1b[31m<b>\\x00end\n" in shown, shown
    assert "  no such luck\n" in shown and "  nothing\n" in shown, shown
    text = page.read_text()
    assert "line 22" in text and "line 21\n" not in text and "&lt;b&gt;" in text and "\033" not in text, text
    assert "no such luck" in text and "check 'echo no such luck; exit 5' ended with 5" in text.replace("&#39;", "'")


@live_test
def of_runs_whose_record_is_gone_the_hint_stays(w):
    w.snap("experiment", "-n", "p", "--arm", "bad=echo gone; exit 3").ends(15)
    for file in (w.store / "runs").rglob("*"):
        if file.is_file():
            file.unlink()
    shown = w.ok("experiment", "show", "p").out.decode()
    assert "what bad printed: " in shown and "gone\n" not in shown, shown


if __name__ == "__main__":
    sys.exit(livetest.main())
