"""A root clone: until the first prompt in it, the next one, an installation, and what ten of them take.

The root for prompts is a tree of the usual size with the host's own sh in it. The installation needs a root
of Debian in the directory that SNAP_BENCH_ROOT names, with the packages in /var/cache/apt/archives already
(apt-get install -d): so nothing is fetched, and all sides do the same work. Its peers are a chroot in a
copy of that root and, where podman and runc can be had, a container on overlayfs.
"""

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import trees
from arena import Store, run, timed
from row import OURS, at_most

CHROOT, COPY, PODMAN = "chroot in a copy", "cp -a", "podman, overlay"
PROGRAMS = ("sh", "true")
DPKG = ("dpkg", "dpkg-deb", "dpkg-query", "dpkg-split", "diff", "ldconfig", "rm", "start-stop-daemon", "tar")
PACKAGES = os.environ.get("SNAP_BENCH_PACKAGES", "cron man-db sudo nginx-light python3-venv")
TEN = 10


def plant(top, names=PROGRAMS):
    """The host's sh and what it needs, beside a tree; or other programs."""
    for name in ("bin", "dev", "etc", "proc", "root", "run", "tmp", "usr"):
        (top / name).mkdir(exist_ok=True)
    programs = [shutil.which(name) for name in names]
    for path in programs:
        said = subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=False).stdout
        for library in re.findall(r"(?:=> |\t)(/\S+) \(0x", said):
            to = top / library[1:]
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, to)
        shutil.copy(path, top / "bin" / Path(path).name)
    (top / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    # As every root has it; without, the loader asks for some sixty names that are not there.
    subprocess.run(["ldconfig", "-r", top], check=False)


def root_of(session):
    """A root with as many entries as the tree; made once."""
    top = session.arena.path / "root-source"
    if not top.exists():
        run("cp", "-a", session.tree(), top)
        plant(top)
    return top


def run_words(*words):
    return ["run", "--root", "--allow-missing", "pids", "--allow-missing", "memory", *words, "--", "/bin/sh", "-c", "true"]


def prompt(session):
    """`snap run --root DIR -- sh -c true` on a root that no store has seen, and in a clone that is there."""
    source = root_of(session)
    trees.warm(source)
    entries = f"{session.opts.entries:,}"
    first = session.row(f"first prompt in a root of {entries} entries, never captured", "ms", at_most(1000))
    again = session.row("first prompt in a new clone of a root that was captured and may have changed", "ms")
    another = session.row("first prompt in another clone of that snapshot", "ms", at_most(30))
    following = session.row("next prompt in a root clone", "ms", at_most(30))

    def ours(number):
        store = Store(session.arena, session.snapcow, f"root-store-{number}")
        first.add(OURS, store.timed(*run_words(str(source)), cwd="/"))
        # A throw-away run leaves no capture behind; this one reads all files.
        snapshot = store.snap("init", str(source), cwd="/")["snapshot"]
        again.add(OURS, store.timed(*run_words(str(source)), cwd="/"))
        another.add(OURS, store.timed(*run_words(snapshot), cwd=source))
        store.snap("clone", "-n", "box", cwd=source)
        store.snap(*run_words("box"), cwd=source)
        following.add(OURS, store.timed(*run_words("box"), cwd=source))
        store.end()
        shutil.rmtree(store.path, ignore_errors=True)

    def copy(number):
        to = session.arena.path / f"root-copy-{number}"
        first.add(COPY, timed("cp", "-a", source, to))
        trees.remove(to)
    session.rounds("root prompt", {OURS: ours, COPY: copy}, [first, again, another, following])


class Podman:
    """Containers of one image, in a storage and in control groups of their own."""

    def __init__(self, session, source):
        top = session.arena.fresh_dir("podman")
        # crun refuses a machine with both versions of cgroups
        self.words = ["podman", "--runtime", "runc", "--storage-driver", "overlay",
                      "--root", str(top / "storage"), "--runroot", str(top / "run")]
        self.group = f"snap-bench-{os.getpid()}"
        tar = subprocess.Popen(["tar", "-C", source, "-c", "."], stdout=subprocess.PIPE)
        with tar:
            subprocess.run([*self.words, "import", "-q", "-", "snap-bench:1"], stdin=tar.stdout,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def timed(self, line, env):
        """Without raising any limit, which root may not do everywhere."""
        given = [f"--env={key}={value}" for key, value in env.items()]
        return timed(*self.words, "run", "--rm", "--network=none", f"--cgroup-parent=/{self.group}",
                     "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096", *given, "snap-bench:1", "sh", "-c", line)

    def end(self):
        subprocess.run([*self.words, "rmi", "-f", "snap-bench:1"], stdout=subprocess.DEVNULL, check=False)
        for group in sorted(Path("/sys/fs/cgroup").glob(f"*/{self.group}")) + [Path("/sys/fs/cgroup") / self.group]:
            with contextlib.suppress(OSError):
                group.rmdir()


def podman_of(session, source, row):
    """None, and a note that says why, where there is none."""
    if not shutil.which("podman") or not shutil.which("runc"):
        row.notes.append("without podman: podman and runc are not both installed")
        return None
    podman = Podman(session, source)
    try:
        podman.timed("true", {})
    except SystemExit as e:
        row.notes.append("without podman: " + str(e).splitlines()[-1])
        podman.end()
        return None
    return podman


def install(session):
    """Packages that are there already: unpacked, and their scripts run."""
    what = f"apt-get install of {len(PACKAGES.split())} packages in a root"
    row = session.row(what, "ms", at_most(1.3, CHROOT))
    passing = session.row(f"{what}, throw-away clone", "ms", at_most(1.3, CHROOT))
    given = os.environ.get("SNAP_BENCH_ROOT")
    if not given or os.geteuid() != 0:
        for one in (row, passing):
            one.skip("needs root, and SNAP_BENCH_ROOT: a directory with a root of Debian and the packages")
        return
    source = session.arena.path / "debian"
    run("cp", "-a", given, source)
    line = f"apt-get install -q -y --no-download --no-install-recommends {PACKAGES}"
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    store = session.store
    store.snap("init", str(source), cwd="/")

    def installed_in(word):
        return timed(session.snapcow, "run", "--root", "--allow-missing", "pids", "--allow-missing", "memory", "--mem", "0", "--time", "1h",
                     "--pass-env", "DEBIAN_FRONTEND", word, "--", "sh", "-c", line, cwd=source, env={**store.env, **env})

    def ours(number):
        name = f"debian-{number}"
        store.snap("clone", "-n", name, cwd=source)
        row.add(OURS, installed_in(name))
        store.snap("rm", "--force", name, cwd=source)
        passing.add(OURS, installed_in(str(source)))

    def chroot(number):
        to = session.arena.path / f"chroot-{number}"
        run("cp", "-a", source, to)
        took = timed("chroot", to, "sh", "-c", line, env=env)
        for one in (row, passing):
            one.add(CHROOT, took)
        trees.remove(to)
    acts = {OURS: ours, CHROOT: chroot}
    podman = podman_of(session, source, row)
    if podman:
        acts[PODMAN] = lambda _: row.add(PODMAN, podman.timed(line, env))
    session.rounds("root install", acts, [row, passing], count=min(session.opts.rounds, 3))
    if podman:
        podman.end()


def with_dpkg(session):
    """The root with the host's own dpkg, and what that starts; None where there is none."""
    missing = [name for name in DPKG if not shutil.which(name)]
    if missing:
        return None
    top = session.arena.path / "root-dpkg"
    run("cp", "-a", root_of(session), top)
    plant(top, DPKG)
    for name in ("alternatives", "info", "parts", "triggers", "updates"):
        (top / "var/lib/dpkg" / name).mkdir(parents=True)
    for name in ("available", "status"):
        (top / "var/lib/dpkg" / name).touch()
    return top


def make_deb(folder, name):
    """A package of 100 files of 8 KiB that do not shrink."""
    top = folder / name
    (top / "usr/share" / name).mkdir(parents=True)
    for n in range(100):
        (top / "usr/share" / name / f"file-{n}").write_bytes(os.urandom(8192))
    (top / "DEBIAN").mkdir()
    (top / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1\nArchitecture: all\n"
                                        "Maintainer: bench <bench@example.org>\nDescription: a bench\n")
    run("dpkg-deb", "--root-owner-group", "-Znone", "-b", top, folder / f"{name}.deb")
    shutil.rmtree(top / "DEBIAN")
    return trees.disk_bytes(top)


def disk(session):
    """Ten clones of one root, in each of which dpkg installs another package."""
    row = session.row(f"disk of {TEN} root clones with a package more each", "MiB", at_most(0.2, COPY))
    source, store = with_dpkg(session), session.store
    if not source:
        row.skip("needs dpkg")
        return
    store.snap("init", str(source), cwd="/")
    debs = session.arena.fresh_dir("debs")
    names = [session.number("disk") for _ in range(TEN)]
    unpacked = sum(make_deb(debs, name) for name in names)
    before = store.stored(source)
    for name in names:
        session.clone_of(source, name)
        store.snap("run", "--root", "--allow-missing", "pids", "--allow-missing", "memory", "--ro", str(debs), name, "--",
                   "dpkg", "-i", str(debs / f"{name}.deb"), cwd=source)
        store.snap("snapshot", name, cwd=source)
    row.add(OURS, (store.stored(source) - before) / 2**20)
    row.add(COPY, (TEN * trees.disk_bytes(source) + unpacked) / 2**20)


PARTS = {"root-prompt": prompt, "root-install": install, "root-disk": disk}
