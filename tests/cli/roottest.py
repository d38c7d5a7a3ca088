"""What the tests of root clones share: a small root file system, and a range of ids for a user.

With --range (which implies --user) the ordinary user has a range in /etc/subuid and /etc/subgid: files of this
test program's own are mounted over both, in its own mount namespace.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RANGE = "--range" in sys.argv or "SNAP_TEST_RANGE" in os.environ
if "--range" in sys.argv:
    sys.argv[sys.argv.index("--range")] = "--user"
    os.environ["SNAP_TEST_RANGE"] = "1"  # livetest starts this again, in a namespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

import livetest  # noqa: E402  (found through the line above)
import snaptest  # noqa: E402
from runtest import run  # noqa: E402

FIRST = 300000
PROGRAMS = ("sh", "cat", "chmod", "chown", "chroot", "env", "find", "grep", "head", "id", "ln", "ls", "mkdir",
            "mknod", "mkfifo", "mv", "readlink", "rm", "setpriv", "sleep", "stat", "touch", "true", "wc")
FOLDERS = ("bin", "dev", "etc", "home/ann", "lib", "proc", "root", "run", "tmp", "usr", "var/lib")


def give_range():
    """In the namespace that livetest.main() has entered, or is about to enter."""
    livetest.root_can_enter()
    if os.geteuid() != 0:
        return
    if not shutil.which("newuidmap") or livetest.INSIDE not in os.environ:
        livetest.skip_all("no uidmap, or no mount namespaces: nobody gets a range of ids here")
    with tempfile.NamedTemporaryFile("w", prefix="snap-subid-") as file:
        file.write(f"{livetest.ORDINARY}:{FIRST}:65536\n")
        file.flush()
        os.chmod(file.name, 0o644)
        for name in ("/etc/subuid", "/etc/subgid"):
            subprocess.run(["mount", "--bind", file.name, name], check=True)


def main():
    if RANGE:
        give_range()
    return livetest.main()


def libraries(program):
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=False).stdout.decode()
    return set(re.findall(r"(?:=> |\t)(/\S+) \(0x", said))


def plant(top, *more):
    """A root of the host's own programs: as few files as sh and friends need."""
    for name in FOLDERS:
        (top / name).mkdir(parents=True, exist_ok=True)
    programs = [shutil.which(name) for name in PROGRAMS] + [str(m) for m in more]
    needed = set().union(*(libraries(p) for p in programs))
    for path in sorted(needed):
        to = top / path[1:]
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    for path in programs:
        shutil.copy(path, top / "bin" / Path(path).name)
    (top / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n")
    (top / "etc/group").write_text("root:x:0:\nann:x:1000:\nweb:x:33:\n")
    (top / "tmp").chmod(0o1777)
    if os.geteuid() == 0:
        for name in (top, *top.rglob("*")):
            os.chown(name, 0, 0, follow_symlinks=False)
        os.chown(top / "home/ann", 1000, 1000)
    return top


def ids():
    """Those that runs have here, and what a run needs to be let off: no cgroup counts an ordinary user's."""
    return "all" if os.geteuid() == 0 else "range" if RANGE else "one"


def root_run(w, *words, status=0, **more):
    """What --json says of a run with --root."""
    got = run(w, "--root", "--allow-missing", "pids", *words, status=status, **more)
    assert got["root"] and got["isolation"]["ids"] == ids(), got
    return got


def root_sh(w, script, *words, status=0, **more):
    return root_run(w, *words, "--", "sh", "-c", script, status=status, **more)


def listing(top):
    """All that anybody can see of a tree from outside."""
    seen = {}
    for path in [top, *sorted(top.rglob("*"))]:
        st = path.lstat()
        seen[str(path.relative_to(top))] = (st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns,
                                            st.st_ino, os.readlink(path) if path.is_symlink() else None)
    return seen


DPKG_PROGRAMS = ("dpkg", "dpkg-deb", "dpkg-query", "dpkg-split", "diff", "ldconfig", "rm", "start-stop-daemon", "tar")
DEB_SCRIPTS = {
    "postinst": "mkdir -p /var/log; echo $1 $2 >> /var/log/posts\nchown 1000:33 /var/lib/hello-deb; chmod 750 /var/lib/hello-deb",
    "prerm": "echo $1 >> /var/log/posts",
    "postrm": "if [ $1 = purge ]; then rm -rf /var/lib/hello-deb; fi",
}
# Installed, used, upgraded over an edited setting, removed and purged; what dpkg finds wrong of its files is said.
DPKG = r"""
set -e
i() { dpkg --force-confold -i "$1" > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }; }
i /debs/1.deb; hello-deb; dpkg --audit; dpkg -V hello-deb
echo mine >> /etc/hello-deb.conf
i /debs/2.deb; hello-again; dpkg --audit; dpkg -V hello-deb; tail -n 1 /etc/hello-deb.conf
cat /var/log/posts; stat -c %a /usr/bin/hello-deb /var/lib/hello-deb
"""
DPKG_SAID = ["deb 1", "deb 2", "??5?????? c /etc/hello-deb.conf", "mine", "configure", "upgrade", "configure 1", "4755", "750"]
DPKG_PURGE = "dpkg -r hello-deb > /dev/null; test ! -e /usr/bin/hello-deb; test -e /etc/hello-deb.conf; dpkg -P hello-deb > /dev/null; " \
             "test ! -e /etc/hello-deb.conf; test ! -e /var/lib/hello-deb; dpkg --audit"


def make_debs(folder):
    """1.deb and 2.deb of one package: a set-id program with two names, a setting, a directory of its own, scripts."""
    folder.mkdir()
    for version in "12":
        top = folder / version
        files = {"usr/bin/hello-deb": f"#!/bin/sh\necho deb {version}\n", "etc/hello-deb.conf": f"setting {version}\n"}
        control = {"control": f"Package: hello-deb\nVersion: {version}\nArchitecture: all\nMaintainer: t <t@example.org>\n"
                              "Description: a test\n", "conffiles": "/etc/hello-deb.conf\n"}
        control["md5sums"] = "".join(f"{hashlib.md5(text.encode()).hexdigest()}  {name}\n" for name, text in files.items()
                                     if not name.startswith("etc/"))
        control.update({name: f"#!/bin/sh\nset -e\n{text}\n" for name, text in DEB_SCRIPTS.items()})
        for name, text in {**files, **{f"DEBIAN/{name}": text for name, text in control.items()}}.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(text)
            (top / name).chmod(0o755 if text.startswith("#!") else 0o644)
        (top / "usr/bin/hello-deb").chmod(0o4755)
        os.link(top / "usr/bin/hello-deb", top / "usr/bin/hello-again")
        (top / "var/lib/hello-deb").mkdir(parents=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", top, folder / f"{version}.deb"], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(top)
    return folder


# Directories that a machine changes by itself, and where tests, stores and others work meanwhile; skopeo has a cache.
RESTLESS = ("/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp", "/var/log", "/var/run", "/var/lib/containers/cache",
            "/work", "/mnt", "/media")


def machine(*more):
    """The host's root as find lists it: names, modes, owners, sizes and times of change, without RESTLESS and `more`."""
    pruned = [word for path in (*RESTLESS, *more) for word in ("-o", "-path", path)][1:]
    said = subprocess.run(["find", "/", "-xdev", "(", *pruned, ")", "-prune", "-o",
                           "(", "-type", "d", "-printf", r"%p\0%y %m %U:%G %T@\0", "-o", "-printf", r"%p\0%y %m %U:%G %s %T@ %l\0", ")"],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split(b"\0")
    return dict(zip(said[0::2], said[1::2]))


def differ(before, now):
    return sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
