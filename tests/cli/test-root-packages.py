"""run --root: dpkg, rpm, apk, pip, npm and make install, with scripts, owners, set-id programs and device nodes.

Packages are made in the run itself, in a small root of the host's own programs.  apk is in no package of
Debian: SNAP_TEST_APK names one, else the tests of it are skipped.
"""

import gzip  # noqa: F401  (now: an ordinary user may not read all of this Python)
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from roottest import DPKG, DPKG_PROGRAMS, DPKG_PURGE, DPKG_SAID, ids, libraries, listing, main, make_debs, plant, root_sh
from livetest import live_test
from snaptest import Skip

APK = os.environ.get("SNAP_TEST_APK") or shutil.which("apk")
RPM_FOLDER = Path("/usr/lib/rpm")
# Also what rpmbuild starts.
RPM_PROGRAMS = ("rpm", "rpmbuild", "rpmkeys", "bash", "cp", "dirname", "gzip", "rmdir", "sed", "tar", "uname", "xargs", "zstd")


def boxed(w, top):
    w.ok("-q", "init", str(top))
    w.ok("-q", "-C", str(top), "clone", "-n", "box", "--skip-unreadable")


def exported(w):
    with tarfile.open(fileobj=io.BytesIO(w.ok("export", "box", "--tar", "-").out)) as tar:
        return {m.name.rstrip("/"): m for m in tar}


def check_files(w, folder, owner=(1000, 33), nodes=True):
    """As they are stored, whatever ids the run had: owners, the set-id bit, hard links, and nodes as nodes."""
    found = exported(w)
    assert (found[f"{folder}/own"].uid, found[f"{folder}/own"].gid) == owner, (found[f"{folder}/own"].uid, owner)
    assert found[f"{folder}/program"].mode == 0o4755, oct(found[f"{folder}/program"].mode)
    assert {found[f"{folder}/program"].islnk(), found[f"{folder}/again"].islnk()} == {True, False}, "one file with two names"
    seen = {name: (m.devmajor, m.devminor, oct(m.mode)) for name, m in found.items() if m.ischr() or m.isblk()}
    assert seen == ({f"{folder}/dev/null": (1, 3, "0o666"), f"{folder}/dev/urandom": (1, 9, "0o644")} if nodes else {}), seen


# --- dpkg -------------------------------------------------------------------------------------


@live_test
def dpkg_installs_upgrades_and_purges_a_package_of_a_file(w):
    missing = [name for name in DPKG_PROGRAMS if not shutil.which(name)]
    if missing:
        raise Skip(f"not installed: {' '.join(missing)}")
    top = plant(w.top / "root", *(shutil.which(name) for name in (*DPKG_PROGRAMS, "tail")))
    for name in ("alternatives", "info", "parts", "triggers", "updates"):
        (top / "var/lib/dpkg" / name).mkdir(parents=True)
    for name in ("available", "info/base.md5sums"):
        (top / "var/lib/dpkg" / name).touch()
    (top / "var/lib/dpkg/info/base.list").write_text("/.\n")
    (top / "var/lib/dpkg/status").write_text("Package: base\nStatus: install ok installed\nMaintainer: t <t@example.org>\n"
                                             "Architecture: all\nVersion: 1\nDescription: a test\n")
    make_debs(top / "debs")
    before = listing(top)
    boxed(w, top)
    got = root_sh(w, DPKG, "box")
    assert got["stdout"].splitlines() == DPKG_SAID, got["stdout"]
    found = exported(w)
    program, own = found["usr/bin/hello-deb"], found["var/lib/hello-deb"]
    assert (program.uid, program.gid, oct(program.mode)) == (0, 0, "0o4755"), program.get_info()
    assert {program.islnk(), found["usr/bin/hello-again"].islnk()} == {True, False}, "one file with two names"
    assert (own.uid, own.gid, oct(own.mode)) == (1000, 33, "0o750"), own.get_info()
    said = w.ok("diff", "box", "--json").json("snap.diff/1")
    assert [p["package"] for p in said["packages"]["added"]] == ["hello-deb"], said["packages"]
    root_sh(w, DPKG_PURGE, "box")
    assert listing(top) == before, "the directory that was captured changed"


# --- rpm --------------------------------------------------------------------------------------

SPEC = r"""
%%define _unpackaged_files_terminate_build 0
Name: %(name)s
Version: %(version)s
Release: 1
Summary: a test
License: MIT
BuildArch: noarch
AutoReqProv: no
%%description
A test.
%%post
echo %(name)s %(version)s $1 >> /var/log/posts
%%install
mkdir -p %%{buildroot}/srv/jail/dev %%{buildroot}/srv/jail/own
printf '#!/bin/sh\necho program %(version)s\n' > %%{buildroot}/srv/jail/program
ln %%{buildroot}/srv/jail/program %%{buildroot}/srv/jail/again
%%files
%(files)s
"""
PLAIN = """%attr(4755,root,root) /srv/jail/program
%attr(4755,root,root) /srv/jail/again
%attr(750,ann,web) %dir /srv/jail/own"""
NODES = """
%attr(666,root,root) %dev(c,1,3) /srv/jail/dev/null
%attr(644,root,root) %dev(c,1,9) /srv/jail/dev/urandom"""
# On Debian 12 rpm wants to be asked twice.  From 4.20 on it would run scripts in namespaces of their own.
FORCE = "mkdir -p /etc/rpm; echo '%__transaction_unshare %{nil}' > /etc/rpm/macros; rpm --force-debian --version > /dev/null 2>&1 && F=--force-debian\n"
RPM = FORCE + r"""
export LC_ALL=C
build() { rpmbuild -bb --define '_topdir /b' --define '_build_id_links none' --define '__os_install_post %{nil}' "/$1.spec" > /b.log 2>&1 ||
    { cat /b.log; exit 1; }; }
i() { rpm $F --nosignature --nodeps "$@" 2>&1; }
mkdir -p /var/log /b
build jail1 && build jail2 && build nodes && build bad || exit 1
i -i /b/RPMS/noarch/jail-1-1.noarch.rpm && rpm -q jail && /srv/jail/program
i -U /b/RPMS/noarch/jail-2-1.noarch.rpm && rpm -q jail && /srv/jail/again
cat /var/log/posts
"""


def opens_nodes():
    """rpm 4.18.0, which is in Debian 12, opens a device before it sets its owner; no other release does."""
    said = subprocess.run(["rpm", "--version"], check=True, stdout=subprocess.PIPE).stdout.decode()
    return said.split()[-1] == "4.18.0"


def rpm_root(w):
    missing = [name for name in RPM_PROGRAMS if not shutil.which(name)]
    if missing or not RPM_FOLDER.is_dir():
        raise Skip(f"not installed: {' '.join(missing)}")
    top = plant(w.top / "root", *(shutil.which(name) for name in RPM_PROGRAMS))
    shutil.copytree(RPM_FOLDER, top / "usr/lib/rpm", symlinks=True)
    (top / "usr/bin").mkdir(exist_ok=True)
    for path in (top / "bin").iterdir():
        (top / "usr/bin" / path.name).symlink_to(f"/bin/{path.name}")
    (top / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\n")
    nodes = "" if opens_nodes() else NODES
    for name, fields in {"jail1": {"name": "jail", "version": 1, "files": PLAIN + nodes},
                         "jail2": {"name": "jail", "version": 2, "files": PLAIN + nodes},
                         "nodes": {"name": "nodes", "version": 1, "files": NODES},
                         "bad": {"name": "bad", "version": 1, "files": "%dev(c,1,1) /srv/bad/mem"}}.items():
        (top / f"{name}.spec").write_text(SPEC % fields)
    return top


@live_test
def rpm_installs_packages_with_device_nodes(w):
    boxed(w, rpm_root(w))
    got = root_sh(w, RPM, "box")
    assert got["stdout"].splitlines() == [
        "jail-1-1.noarch", "program 1", "jail-2-1.noarch", "program 2", "jail 1 1", "jail 2 2"], got["stdout"]
    check_files(w, "srv/jail", nodes=not opens_nodes())
    if ids() != "one":  # else all files seem to be root's
        assert root_sh(w, "rpm -V --nodeps jail && echo as shipped", "box")["stdout"] == "as shipped\n"
    # A device that could do harm is refused, and the package with it; so is any that rpm insists on opening.
    for name, why in [("bad", "mknod failed")] + [("nodes", "open failed")] * opens_nodes():
        got = root_sh(w, FORCE + f"rpm $F --nosignature --nodeps -i /b/RPMS/noarch/{name}-1-1.noarch.rpm 2>&1; rpm -q {name}; ls -R /srv",
                      "box", status=None)
        assert why in got["stdout"] and f"package {name} is not installed" in got["stdout"], got
        assert not {"mem", "null", "urandom"} & set(got["stdout"].splitlines()) or not opens_nodes(), got
        assert name != "bad" or any("mknod" in r["what"] for r in got["refusals"]), got["refusals"]
    root_sh(w, FORCE + "rpm $F -e --nodeps jail && test ! -e /srv/jail/dev/null && test ! -e /srv/jail/program", "box")


# --- apk --------------------------------------------------------------------------------------

APKS = r"""
set -e
mkdir -p /var/log /f/srv/jail/dev /f/srv/jail/own /repo /etc/apk
chown 1000:33 /f/srv/jail/own; chmod 750 /f/srv/jail/own
mknod -m 666 /f/srv/jail/dev/null c 1 3; mknod -m 644 /f/srv/jail/dev/urandom c 1 9
make() {
    printf '#!/bin/sh\necho program %s\n' $1 > /f/srv/jail/program; chmod 4755 /f/srv/jail/program
    ln -f /f/srv/jail/program /f/srv/jail/again
    printf '#!/bin/sh\necho post %s >> /var/log/posts\n' $1 > /post; chmod 755 /post
    apk mkpkg -I name:jail -I version:$1-r0 -I arch:noarch -I description:x -I license:MIT -F /f -s post-install:/post -s post-upgrade:/post -o /repo/jail-$1-r0.apk > /dev/null
    apk mkndx --allow-untrusted -o /repo/packages.adb /repo/*.apk > /dev/null
}
a() { apk -q --allow-untrusted --repository /repo/packages.adb "$@" 2>&1; }
make 1; a --initdb add jail; /srv/jail/program
make 2; a upgrade; /srv/jail/again
stat -c '%F %t:%T %a %n' /srv/jail/dev/*
cat /var/log/posts
"""


@live_test
def apk_installs_packages_with_device_nodes(w):
    if not APK:
        raise Skip("no apk here: Debian has no package of it, and SNAP_TEST_APK names none")
    boxed(w, plant(w.top / "root", APK))
    got = root_sh(w, APKS, "box", status=None)
    node = "character special file"
    assert got["stdout"].splitlines() == [
        "program 1", "program 2", f"{node} 1:3 666 /srv/jail/dev/null", f"{node} 1:9 644 /srv/jail/dev/urandom", "post 1", "post 2"], got
    root_sh(w, "rm -r /f", "box")
    # With one id every file seems to be root's, to the program that makes the package too.
    check_files(w, "srv/jail", owner=(0, 0) if ids() == "one" else (1000, 33))
    root_sh(w, "apk -q del jail && test ! -e /srv/jail/dev/null && test ! -e /srv/jail/program", "box")


# --- by hand ----------------------------------------------------------------------------------

MAKEFILE = """install:
	install -d /usr/local/bin
	install -o ann -g web -m 4755 hello.sh /usr/local/bin/hello
"""
BY_HAND = r"""
set -e
cd /src; make -s install; hello
useradd -m carol; id -nu carol; ls -d /home/carol
a() { update-alternatives --quiet "$@"; readlink -f /usr/bin/shown; }
a --install /usr/bin/shown shown /bin/cat 10; a --install /usr/bin/shown shown /bin/head 20; a --set shown /bin/cat
rm -f /etc/ld.so.cache; ldconfig; test -s /etc/ld.so.cache && echo cache
"""


def by_hand_root(w, *more):
    names = ("make", "install", "id", "useradd", "update-alternatives", "ldconfig")
    missing = [name for name in names if not shutil.which(name)]
    if missing:
        raise Skip(f"not installed: {' '.join(missing)}")
    top = plant(w.top / "root", *(shutil.which(name) for name in names), *more)
    for name in ("src", "etc/alternatives", "usr/bin", "var/lib/dpkg/alternatives", "var/log"):
        (top / name).mkdir(parents=True, exist_ok=True)
    (top / "usr/bin/env").symlink_to("/bin/env")
    (top / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\n")
    (top / "src/Makefile").write_text(MAKEFILE)
    (top / "src/hello.sh").write_text("#!/bin/sh\necho hello make\n")
    return top


@live_test
def what_administrators_type_works(w):
    """make install, useradd, update-alternatives and ldconfig; what they say of owners is stored."""
    top = by_hand_root(w)
    before = listing(top)
    boxed(w, top)
    got = root_sh(w, BY_HAND, "box")
    assert got["stdout"].splitlines() == ["hello make", "carol", "/home/carol", "/bin/cat", "/bin/head", "/bin/cat", "cache"], got
    found = exported(w)
    hello, home = found["usr/local/bin/hello"], found["home/carol"]
    assert (hello.uid, hello.gid, oct(hello.mode)) == (1000, 33, "0o4755"), hello.get_info()
    users = dict(line.split(":")[0::2][:2] for line in w.ok("show", "box:etc/passwd").out.decode().splitlines())
    assert home.uid == int(users["carol"]) > 0, (home.uid, users)
    assert {u["name"] for u in w.ok("diff", "box", "--json").json("snap.diff/1")["system"]["users"]} == {"carol"}
    assert listing(top) == before, "the directory that was captured changed"


def plant_python(top, python):
    version = os.path.realpath(python).rsplit("python", 1)[1]
    lib = Path(f"/usr/lib/python{version}")
    for path in (lib, Path("/usr/lib/python3/dist-packages/pip")):
        shutil.copytree(path, top / str(path)[1:], symlinks=True, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__", "test", "idlelib"))
    for path in sorted(set().union(*(libraries(p) for p in (lib / "lib-dynload").glob("*.so")))):
        (top / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, top / path[1:])


def make_wheel(path):
    files = {"hello_pip.py": "print('hello pip')\n",
             "hello_pip-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello-pip\nVersion: 1\n",
             "hello_pip-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files["hello_pip-1.dist-info/RECORD"] = "".join(f"{name},,\n" for name in [*files, "hello_pip-1.dist-info/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)


@live_test
def pip_installs_into_the_system(w):
    python = "/usr/bin/python3"
    if not Path(python).exists() or not Path("/usr/lib/python3/dist-packages/pip").is_dir():
        raise Skip("the distribution's Python has no pip")
    top = by_hand_root(w, python)
    plant_python(top, python)
    make_wheel(top / "src/hello_pip-1-py3-none-any.whl")
    boxed(w, top)
    got = root_sh(w, "cd / && python3 -m pip -q --disable-pip-version-check install --break-system-packages --root-user-action=ignore"
                  " --no-index /src/*.whl && python3 -c 'import hello_pip'", "box")
    assert got["stdout"] == "hello pip\n", got
    assert any(name.startswith("usr/local/lib/") and name.endswith("/hello_pip.py") for name in exported(w))


@live_test
def npm_installs_globally(w):
    node, npm = shutil.which("node"), shutil.which("npm")
    folder = Path(os.path.realpath(npm)).parent.parent if npm else None
    if not node or not npm or folder.name != "npm":
        raise Skip("node and npm are not installed")
    if os.environ.get("SNAP_SANITIZED", "none") != "none":
        raise Skip("a hundred megabytes of node, with sanitizers")
    top = by_hand_root(w, node)
    shutil.copytree(folder, top / "lib/node_modules/npm", symlinks=True)
    for name, text in {"package.json": '{"name":"hello-npm","version":"1.0.0","bin":{"hello-npm":"./hello.js"}}',
                       "hello.js": "#!/usr/bin/env node\nconsole.log('hello npm')\n"}.items():
        (top / "package").mkdir(exist_ok=True)
        (top / "package" / name).write_text(text)
    with tarfile.open(top / "src/hello-npm.tgz", "w:gz") as tar:
        tar.add(top / "package", "package")
    shutil.rmtree(top / "package")
    boxed(w, top)
    got = root_sh(w, "cd / && node /lib/node_modules/npm/bin/npm-cli.js i -g --offline --no-audit --no-fund /src/hello-npm.tgz > /dev/null"
                  " && hello-npm", "--mem", "0", "--pids", "0", "box")
    assert got["stdout"] == "hello npm\n", got


if __name__ == "__main__":
    sys.exit(main())
