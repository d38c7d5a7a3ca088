"""Programs that others wrote, from npm, for tests."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from snaptest import Skip

NPM = Path(os.environ.get("SNAP_NPM_DIR") or "/nonexistent")
SECONDS = 240


def npm_install(package, name, fetch=True):
    """The directory with what `package`, a package.json, asks for; it stays in the build.

    Without `fetch` only if it is there already.
    """
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("node and npm are not installed")
    if not NPM.parent.is_dir():
        raise Skip("SNAP_NPM_DIR names no directory to install into")
    at = NPM.with_name(name)
    mark, wanted = at / "installed", package.read_text()
    if mark.exists() and mark.read_text() == wanted:
        return at
    if not fetch:
        raise Skip("its packages are not there; SNAP_TESTS_LONG=1 fetches them from npm")
    at.mkdir(exist_ok=True)
    shutil.copy(package, at / "package.json")
    try:
        done = subprocess.run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund",
                               "--ignore-scripts", "--silent"], cwd=at, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except subprocess.TimeoutExpired as e:
        raise Skip(f"npm did not bring the packages in {SECONDS} s") from e
    if done.returncode:
        raise Skip(f"npm cannot bring the packages: {done.stderr.decode()[-200:]!r}")
    mark.write_text(wanted)
    return at


def node_of(at):
    """The node that the packages brought with them."""
    arch = {"aarch64": "arm64", "x86_64": "x64"}.get(platform.machine())
    node = at / "node_modules" / f"node-linux-{arch}" / "bin" / "node"
    if not node.is_file():
        raise Skip(f"npm has no node for {platform.machine()}")
    return node
