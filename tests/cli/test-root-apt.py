"""run --root with a real distribution: install a set of packages, use it, purge it; the host stays as it is.

In the long lane, where debootstrap is and a mirror can be reached: about a gigabyte, and some minutes.
"""

import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from roottest import DPKG, DPKG_PURGE, DPKG_SAID, RANGE, differ, give_range, ids, listing, machine, make_debs, root_sh
import livetest
from livetest import live_test, skip_all
from snaptest import LONG

MIRROR = os.environ.get("SNAP_TEST_MIRROR", "deb.debian.org")
PACKAGES = "cron man-db sudo nginx-light python3-venv postgresql"
DNF = "dnf createrepo-c rpm"
ROOT = Path(os.environ.get("SNAP_TEST_ROOT", "/nonexistent"))
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
# As the user that it insists on: with one id, too.
QUERY = r"""
set -e
export PGDATA=/var/lib/postgresql/own PATH=$PATH:/usr/lib/postgresql/15/bin
initdb > /dev/null; pg_ctl -s -w -o '-k /tmp' -l /tmp/log start
psql -h /tmp -tAc 'create table t as select 6*7 as n' postgres > /dev/null; psql -h /tmp -tAc 'select n from t' postgres
pg_ctl -s -w stop; id -un
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


def what_it_did(w):
    """A diff says it in the words of an administrator, and a script says how to do it again."""
    got = w.ok("diff", "box", "--json", "--script", timeout=900).json("snap.diff/1")
    assert {"cron", "nginx", "postgresql", "sudo"} <= {p["package"] for p in got["packages"]["added"]}, got["packages"]
    assert {u["name"] for u in got["system"]["users"]} == {"postgres"}, got["system"]["users"]
    assert {"crontab", "postgres", "ssl-cert"} <= {g["name"] for g in got["system"]["groups"]}, got["system"]["groups"]
    assert {"cron.service", "nginx.service", "nginx"} <= {s["name"] for s in got["system"]["services"]}
    assert {"package": "sudo", "path": "etc/sudoers", "shipped": True, "status": "added"} in got["system"]["configuration"]
    assert got["system"]["files"]["package"] > 1000, got["system"]["files"]
    assert "apt-get install -y" in got["script"] and "getent passwd postgres > /dev/null || useradd" in got["script"]
    subprocess.run(["sh", "-n"], input=got["script"].encode(), check=True)
    # Set-id bits and owners of groups, whatever ids this run has.
    raw = w.ok("export", "box", "--tar", "-", timeout=900).out
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        found = {m.name: m for m in tar if m.name in ("usr/bin/crontab", "usr/bin/sudo", "var/lib/postgresql/15/main", "etc/gshadow")}
    groups = dict(line.split(":")[0::2][:2] for line in w.ok("show", "box:etc/group").out.decode().splitlines())
    users = dict(line.split(":")[0::2][:2] for line in w.ok("show", "box:etc/passwd").out.decode().splitlines())
    assert found["usr/bin/sudo"].mode & 0o4000, found
    assert (found["usr/bin/crontab"].mode & 0o2000, found["usr/bin/crontab"].gid) == (0o2000, int(groups["crontab"]))
    # Where owners are not shown, groupadd gives the file that it writes anew the owner it sees: root.
    if ids() != "one":
        assert found["etc/gshadow"].gid == int(groups["shadow"]), found["etc/gshadow"].gid
        assert found["var/lib/postgresql/15/main"].uid == int(users["postgres"])


@live_test
def packages_are_installed_used_and_purged(w):
    before, source = machine(str(w.top)), listing(ROOT)
    w.ok("-q", "-C", str(ROOT), "clone", "-n", "box", "--skip-unreadable")
    script(w, "apt-get update -q", "box", network=True)
    got = script(w, f"apt-get install -q -y --no-install-recommends {PACKAGES}", "box", network=True)
    assert "Setting up postgresql" in got["stdout"], got
    # Just as the packages bring them: modes, links and bytes of every file, and owners as they are stored.
    assert script(w, "dpkg --audit; dpkg -V", "box")["stdout"] == "", "dpkg finds files that are not as shipped"
    what_it_did(w)
    got = script(w, USE.replace('"$1"', ids()), "box")
    want = ["venv", "200", "man"] + ([] if ids() == "one" else ["42", "0"])
    assert got["stdout"].split() == want, got
    assert script(w, QUERY, "--as", "postgres", "box")["stdout"].split() == ["42", "postgres"]
    # Where nginx-light is but a list of other packages, the program is in nginx.
    script(w, "apt-get purge -q -y nginx-light nginx cron 'postgresql*' && dpkg --audit && test ! -e /usr/sbin/nginx", "box")
    changed = [line for line in script(w, "dpkg -V || :", "box")["stdout"].splitlines() if " c /" not in line]
    assert changed == [], changed
    got = script(w, "rm -rf --no-preserve-root /; echo done", "box")
    w.ok("rollback", "box", got["before"], "--yes")
    assert script(w, "dpkg --audit && dpkg -s sudo | grep Status", "box")["stdout"].startswith("Status: install ok")
    assert listing(ROOT) == source, ("the root that was captured changed", differ(source, listing(ROOT)))
    changed = differ(before, machine(str(w.top)))
    assert not changed, ("the host changed", changed)


@live_test
def a_package_of_a_file_is_installed_upgraded_and_purged(w):
    debs = make_debs(w.top / "debs")
    w.ok("-q", "-C", str(ROOT), "clone", "-n", "box", "--skip-unreadable")
    script(w, "mkdir /debs && cp " + str(debs) + "/*.deb /debs", "--ro", str(debs), "box")
    assert script(w, DPKG, "box")["stdout"].splitlines() == DPKG_SAID
    script(w, DPKG_PURGE, "box")


# rpm's own database is empty on Debian, so one package has to provide what scripts are run by.
RPMS = r"""
set -e
mkdir -p /rpms && cd /rpms
spec() {
    cat > hello-$1.spec <<END
Name: hello
Version: $1
Release: 1
Summary: a greeting
License: MIT
BuildArch: noarch
AutoReqProv: no
%description
A greeting.
%pre
getent passwd greeter > /dev/null || useradd -r -d /nonexistent -s /usr/sbin/nologin greeter
%post
echo \$1 >> /var/log/hello.post
%install
mkdir -p %{buildroot}/usr/bin %{buildroot}/etc %{buildroot}/var/lib/hello
printf '#!/bin/sh\necho hello $1\n' > %{buildroot}/usr/bin/hello-rpm
echo setting > %{buildroot}/etc/hello.conf
ln %{buildroot}/usr/bin/hello-rpm %{buildroot}/usr/bin/hello-again
%files
%attr(4755,root,root) /usr/bin/hello-rpm
%attr(4755,root,root) /usr/bin/hello-again
%config(noreplace) /etc/hello.conf
%attr(700,greeter,greeter) %dir /var/lib/hello
END
    rpmbuild -bb --define '_topdir /rpms' hello-$1.spec > build.log 2>&1 || { tail -5 build.log; exit 1; }
}
cat > shell.spec <<END
Name: shell
Version: 1
Release: 1
Summary: what scripts are run by
License: MIT
BuildArch: noarch
Provides: /bin/sh
%description
None of its own files.
%files
END
rpmbuild -bb --define '_topdir /rpms' shell.spec > build.log 2>&1 || { tail -5 build.log; exit 1; }
d() { dnf -q -y --disablerepo='*' --setopt=reposdir=/none --setopt=cachedir=/rpms/cache --repofrompath=local,/rpms/RPMS --setopt=local.gpgcheck=0 --setopt=local.metadata_expire=0 "$@" > dnf.log 2>&1 || { tail -5 dnf.log; exit 1; }; }
spec 1; createrepo_c -q RPMS; d install hello; hello-rpm; rpm -q hello shell
spec 2; createrepo_c -q RPMS; d upgrade hello; hello-again; rpm -q hello
cat /var/log/hello.post; stat -c '%a %n' /usr/bin/hello-rpm
[ "$1" = one ] || rpm -V hello && echo as shipped
"""


@live_test
def rpms_are_installed_upgraded_and_removed_by_dnf(w):
    w.ok("-q", "-C", str(ROOT), "clone", "-n", "box", "--skip-unreadable")
    script(w, f"apt-get install -q -y --no-download --no-install-recommends {DNF}", "box")
    got = script(w, RPMS.replace('"$1" = one', f"{ids()} = one"), "box", status=None)
    assert got["stdout"].splitlines() == [
        "hello 1", "hello-1-1.noarch", "shell-1-1.noarch", "hello 2", "hello-2-1.noarch", "1", "2", "4755 /usr/bin/hello-rpm",
        "as shipped"], (got["stdout"], got["stderr"])
    with tarfile.open(fileobj=io.BytesIO(w.ok("export", "box", "--tar", "-", timeout=900).out)) as tar:
        found = {m.name.rstrip("/"): m for m in tar if m.name.rstrip("/") in ("var/lib/hello", "usr/bin/hello-rpm")}
    users = dict(line.split(":")[0::2][:2] for line in w.ok("show", "box:etc/passwd").out.decode().splitlines())
    assert found["var/lib/hello"].uid == int(users["greeter"]), found
    script(w, "rpm -e hello && test ! -e /usr/bin/hello-rpm && test ! -e /var/lib/hello", "box")


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
    # Packages are fetched once, for all runs; the lists of them each run fetches itself, through its proxy.
    shutil.copy("/etc/resolv.conf", f"{top}/root/etc/resolv.conf")
    subprocess.run(["chroot", f"{top}/root", "sh", "-c", f"apt-get update -q && apt-get install -q -y -d --no-install-recommends {PACKAGES} {DNF}"],
                   stdout=subprocess.DEVNULL, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
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
