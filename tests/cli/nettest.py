"""The internet of tests/net for tests of runs, in a network namespace of the test program's own."""

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "live"), str(HERE.parent / "net")]

import livetest  # noqa: E402  (found through the line above)
import world as internet  # noqa: E402


def main(begin=lambda net: None):
    """Run all tests, after `begin` with the internet they get."""
    if os.geteuid() != 0:
        livetest.skip_all("making network namespaces with a cable between them takes root")
    for tool in ("ip", "unshare", "nsenter", "openssl", "curl"):
        if not shutil.which(tool):
            livetest.skip_all(f"'{tool}' is not installed")
    if livetest.INSIDE not in os.environ:
        os.environ[livetest.INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private",
                              sys.executable, "-B", *sys.argv])
    net = internet.World()
    begin(net)
    os.chmod(net.dir, 0o755)
    if livetest.USER:
        shutil.chown(net.dir, livetest.ORDINARY)
    try:
        return livetest.main()
    finally:
        # The mounts go with the namespace.
        net.servers.stdin.close()
        net.servers.wait(20)
        shutil.rmtree(net.dir, ignore_errors=True)
