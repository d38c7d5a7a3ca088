"""Real projects, built and tested by runs without a network."""

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
from livetest import live_test  # noqa: E402
from runtest import clone, run, sh  # noqa: E402
from snaptest import Skip  # noqa: E402


@live_test
def a_c_project_is_built_and_tested(w):
    if not shutil.which("make") or not Path("/usr/bin/cc").exists():
        raise Skip("make or cc is not installed")
    (w.project / "src" / "main.c").write_text("int main(void)\n{\n\treturn 0;\n}\n")
    (w.project / "Makefile").write_text("prog: src/main.c\n\tcc -o $@ $<\n"
                                        "test: prog\n\t./prog && echo passed\n")
    got = run(w, "--", "make", "test")
    assert got["stdout"].endswith("passed\n") and got["changed"]["added"] == 1, got


@live_test
def python_is_tested_in_a_virtual_environment(w):
    if subprocess.run(["/usr/bin/python3", "-c", "import venv, ensurepip"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("python3-venv is not installed")
    (w.project / "test_it.py").write_text("import unittest, sys\n\n\n"
                                          "class T(unittest.TestCase):\n"
                                          "    def test_it(self):\n"
                                          "        self.assertIn('venv', sys.prefix)\n")
    sh(w, "/usr/bin/python3 -m venv venv && venv/bin/python -m unittest -v && venv/bin/pip --version")


@live_test
def node_runs_its_tests(w):
    if not Path("/usr/bin/node").exists():
        raise Skip("node is not installed")
    (w.project / "it.test.js").write_text(
        "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "test('it', () => assert.strictEqual(1 + 1, 2));\n")
    got = run(w, "--mem", "2G", "--allow-missing", "memory", "--", "/usr/bin/node", "--test")
    assert "pass 1" in got["stdout"], got


@live_test
def git_commits_inside(w):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", "."], cwd=w.project, check=True, env=w.env)
    path = clone(w)
    got = run(w, "try", "--", *git, "commit", "-q", "--allow-empty", "-m", "inside")
    assert got["exit_code"] == 0, got
    assert run(w, "try", "--", "git", "log", "--format=%s")["stdout"] == "inside\n"
    assert (path / ".git" / "logs" / "HEAD").exists()
    assert not (w.project / ".git" / "logs" / "HEAD").exists()


if __name__ == "__main__":
    sys.exit(livetest.main())
