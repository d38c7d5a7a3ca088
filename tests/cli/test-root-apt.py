"""run --root with a real distribution: install a set of packages, use it, purge it; the host stays as it is.

In the long lane, where debootstrap is and a mirror can be reached: about a gigabyte, and some minutes.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from roottest import RANGE, give_range, ids, listing, root_sh
import livetest
from livetest import live_test, skip_all
from snaptest import LONG

MIRROR = os.environ.get("SNAP_TEST_MIRROR", "deb.debian.org")
PACKAGES = "cron man-db sudo nginx-light python3-venv postgresql"
ROOT = Path(os.environ.get("SNAP_TEST_ROOT", "/nonexistent"))
WATCHED = [Path("/etc"), Path("/usr/bin"), Path("/usr/sbin"), Path("/var/lib/dpkg/info")]

# Postgres insists on a user of its own, and set-id programs need one to become; nginx has its workers become one.
USE = r"""
set -e
useradd -m bob
python3 -m venv /opt/v && /opt/v/bin/python -c 'print("venv")'
if [ "$1" = one ]; then sed -i 's/^user .*/user root;/' /etc/nginx/nginx.conf; fi
sed -i '/listen \[::\]/d' /etc/nginx/sites-available/default
nginx; sleep 1
python3 -c 'import urllib.request as u; print(u.build_opener(u.ProxyHandler({})).open("http://127.0.0.1/", None, 60).status)'
nginx -s stop
ldconfig
man --version > /dev/null && echo man
if [ "$1" != one ]; then
    pg_ctlcluster 15 main start; sleep 3
    su postgres -c "psql -tAc 'select 6*7'"
    pg_ctlcluster 15 main stop
    echo 'bob ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/bob
    su bob -c 'sudo id -u'
fi
dpkg --audit
"""


def net():
    """The name, and its address, which may be a special one, as of a mirror in the local network."""
    try:
        return f"{MIRROR}:80,{socket.gethostbyname(MIRROR)}:80"
    except OSError:
        return f"{MIRROR}:80"


NET = net() if LONG else None  # now: an ordinary user may not read all of this Python


def script(w, text, *words, network=False, **more):
    more = {"env": {"DEBIAN_FRONTEND": "noninteractive"}, "timeout": 3600, **more}
    return root_sh(w, text, "--mem", "0", "--time", "1h", *(["--net", NET] if network else []),
                   "--pass-env", "DEBIAN_FRONTEND", *words, **more)


@live_test
def packages_are_installed_used_and_purged(w):
    before = [listing(top) for top in WATCHED]
    w.ok("-q", "-C", str(ROOT), "clone", "-n", "box", "--skip-unreadable")
    script(w, "apt-get update -q", "box", network=True)
    got = script(w, f"apt-get install -q -y --no-install-recommends {PACKAGES}", "box", network=True)
    assert "Setting up postgresql" in got["stdout"], got
    got = script(w, USE.replace('"$1"', ids()), "box")
    want = ["venv", "200", "man"] + ([] if ids() == "one" else ["42", "0"])
    assert got["stdout"].split() == want, got
    # Where nginx-light is but a list of other packages, the program is in nginx.
    script(w, "apt-get purge -q -y nginx-light nginx cron && dpkg --audit && test ! -e /usr/sbin/nginx", "box")
    got = script(w, "rm -rf --no-preserve-root /; echo done", "box")
    w.ok("rollback", "box", got["before"], "--yes")
    assert script(w, "dpkg --audit && dpkg -s sudo | grep Status", "box")["stdout"].startswith("Status: install ok")
    assert [listing(top) for top in WATCHED] == before, "the host changed"


def make_root():
    """As root, once: readable for everybody, since an ordinary user is to capture it."""
    if not LONG:
        skip_all("only with SNAP_TESTS_LONG=1")
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        skip_all("only root, with debootstrap, makes a distribution to try it on")
    try:
        socket.create_connection((MIRROR, 80), 10).close()
    except OSError as e:
        skip_all(f"no mirror can be reached: {MIRROR}: {e}")
    top = tempfile.mkdtemp(prefix="snap-root-", dir="/var/tmp")
    os.chmod(top, 0o755)
    done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", f"{top}/root", f"http://{MIRROR}/debian"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        shutil.rmtree(top)
        skip_all(f"debootstrap: {done.stdout.decode().splitlines()[-1:]}")
    subprocess.run(["chmod", "-R", "a+rX", f"{top}/root"], check=True)
    return top


def main():
    """The process that makes the root stays, and removes it: the tests may run as another user."""
    if "SNAP_TEST_ROOT" not in os.environ:
        top = make_root()
        words = sys.argv[1:]
        if RANGE:
            words[words.index("--user")] = "--range"
        try:
            return subprocess.run([sys.executable, "-B", __file__, *words], check=False,
                                  env={**os.environ, "SNAP_TEST_ROOT": f"{top}/root"}).returncode
        finally:
            shutil.rmtree(top)
    if RANGE:
        give_range()
    return livetest.main()


if __name__ == "__main__":
    sys.exit(main())
