"""Images: archives become states and states archives, with all that a file has, and nothing else."""

import gzip
import hashlib
import io
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from roottest import plant
from snaptest import SNAP, Skip, World, main, needs_fuse, test

OLD = 1_600_000_000


def image(w, *args):
    return w.ok("import", *args, "--json").json("snap.import/1")


def entry(name, data=None, **attr):
    """A member of a tar archive and its bytes."""
    info = tarfile.TarInfo(name)
    info.mtime = OLD
    info.mode = 0o644
    for key, value in attr.items():
        setattr(info, key, value)
    info.size = len(data or b"")
    return info, data


def directory(name, mode=0o755, **attr):
    return entry(name, type=tarfile.DIRTYPE, mode=mode, **attr)


def link(name, to, kind=tarfile.SYMTYPE):
    return entry(name, type=kind, linkname=to)


def archive(path, *entries, how="w", form=tarfile.PAX_FORMAT):
    with tarfile.open(path, how, format=form) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data) if data is not None else None)
    return str(path)


def listing(w, state):
    """Every name of a state with all that an archive says of it."""
    raw = w.ok("export", state, "--tar", "-").out
    got = {}
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        for m in tar:
            data = tar.extractfile(m).read() if m.isreg() else None
            pax = {k: v for k, v in m.pax_headers.items() if k.startswith("SCHILY.xattr.") or k == "mtime"}
            got[m.name] = (m.type, oct(m.mode), m.uid, m.gid, m.linkname, m.devmajor, m.devminor, data, pax)
    return got


def contents(w, state):
    return {name: e[7] for name, e in listing(w, state).items() if e[0] == tarfile.REGTYPE}


FULL = (
    directory("./", 0o711, uid=5),
    directory("etc", 0o750, uid=0, gid=42),
    entry("etc/shadow", b"root:*\n", mode=0o640, uid=0, gid=42, mtime=1234.5,
          pax_headers={"SCHILY.xattr.user.note": "kept", "mtime": "1234.123456789"}),
    entry("bin/su", b"#!", mode=0o4755, uid=0),
    entry("dev/null", type=tarfile.CHRTYPE, devmajor=1, devminor=3, mode=0o666),
    entry("dev/sda", type=tarfile.BLKTYPE, devmajor=8, devminor=0, mode=0o660, gid=6),
    entry("run/fifo", type=tarfile.FIFOTYPE),
    entry("lib/one", b"shared", uid=1000, gid=100_000),
    link("lib/two", "lib/one", tarfile.LNKTYPE),
    link("sbin", "usr/sbin"),
    link("lib/dangling", "../../../../etc/passwd"),
    entry("naïve", b"utf-8"),
)


@test
def an_archive_keeps_all_that_its_files_have(w: World):
    got = image(w, archive(w.top / "full.tar", *FULL))
    assert got["image"] == "full" and got["files"] == 10 and not got["replaced"], got
    names = listing(w, "full")
    assert names["etc/shadow"][1:4] == ("0o640", 0, 42), names["etc/shadow"]
    assert names["etc/shadow"][8] == {"SCHILY.xattr.user.note": "kept", "mtime": "1234.123456789"}, names["etc/shadow"]
    assert names["bin/su"][1] == "0o4755" and names["dev/sda"][0] == tarfile.BLKTYPE and names["dev/sda"][5:7] == (8, 0)
    assert names["dev/null"][0] == tarfile.CHRTYPE and names["run/fifo"][0] == tarfile.FIFOTYPE
    assert names["lib/one"][2:4] == (1000, 100_000) and names["lib/two"][0] == tarfile.LNKTYPE
    assert names["lib/two"][4] == "lib/one" and names["lib/dangling"][4] == "../../../../etc/passwd"
    assert names["."][1:3] == ("0o711", 5) and names["naïve"][7] == b"utf-8"
    w.ok("check")


@test
def what_was_exported_comes_back_the_same(w: World):
    image(w, archive(w.top / "full.tar", *FULL))
    for end in ("tar", "tar.gz", "tar.zst"):
        out = w.top / f"out.{end}"
        w.ok("export", "full", "--tar", str(out))
        first = out.read_bytes()
        image(w, str(out), "-n", "again", "--replace") if end != "tar" else image(w, str(out), "-n", "again")
        assert listing(w, "again") == listing(w, "full"), end
        w.ok("export", "again", "--tar", str(out))
        assert out.read_bytes() == first, f"{end}: the same state gives the same bytes"
    assert w.ok("diff", "full", "again").out == b""
    assert not [p for p in w.top.iterdir() if ".tmp-" in p.name], "nothing is left beside it"


@test
def gzip_says_nothing_of_the_moment_or_the_machine(w: World):
    image(w, archive(w.top / "full.tar", *FULL))
    w.ok("export", "full", "--tar", str(w.top / "out.tar.gz"))
    w.ok("export", "full", "--oci", str(w.top / "layout"))
    packed = [(w.top / "out.tar.gz").read_bytes()] + [p.read_bytes() for p in (w.top / "layout/blobs/sha256").iterdir()]
    packed = [p for p in packed if p[:2] == b"\x1f\x8b"]
    assert len(packed) == 2, "an archive and a layer"
    for p in packed:
        assert p[3] == 0 and p[4:8] == bytes(4), "no name, no time"


@test
def the_order_of_an_archive_does_not_matter(w: World):
    image(w, archive(w.top / "a.tar", *FULL))
    image(w, archive(w.top / "b.tar", *sorted((e for e in FULL if e[0].type != tarfile.LNKTYPE),
                                              key=lambda e: e[0].name, reverse=True),
                     *(e for e in FULL if e[0].type == tarfile.LNKTYPE)))
    a, b = (w.ok("export", name, "--tar", "-").out for name in "ab")
    assert a == b


@test
def images_of_the_same_content_are_one_root(w: World):
    image(w, archive(w.top / "a.tar", *FULL))
    before = w.ok("check", "--json").json("snap.check/1")["objects"]
    image(w, archive(w.top / "b.tar", *sorted((e for e in FULL if e[0].type != tarfile.LNKTYPE),
                                              key=lambda e: e[0].name, reverse=True),
                     *(e for e in FULL if e[0].type == tarfile.LNKTYPE)))
    assert w.ok("check", "--json").json("snap.check/1")["objects"] == before, "no directory is stored twice"
    image(w, archive(w.top / "c.tar", *FULL, entry("more", b"1")))
    assert w.ok("check", "--json").json("snap.check/1")["objects"] > before


def zeros(mib):
    """Members of gzip that stand for so many MiB each take a thousandth of that."""
    return gzip.compress(bytes(1 << 20), 9) * mib


@test
def what_follows_the_end_of_an_archive_is_bounded(w: World):
    raw = Path(archive(w.top / "a.tar", *FULL)).read_bytes()
    for name, tail, code in (("small", 1, 0), ("bomb", 20000, None)):
        (w.top / f"{name}.tar.gz").write_bytes(gzip.compress(raw) + zeros(tail))
        began = time.monotonic()
        got = w.snap("import", str(w.top / f"{name}.tar.gz"), "-n", name, timeout=600)
        if code == 0:
            got.ends(0)
            continue
        got.fails(2, "follow the end of the archive")
        assert time.monotonic() - began < 10, "it was read to its end"
    assert "bomb" not in w.ok("image").out.decode()


@test
def an_archive_cannot_keep_its_reader_busy_for_ever(w: World):
    """Nobody can wait for the limit that it sets itself: that one is looked at, and then made lower."""
    info = tarfile.TarInfo("zeros")
    info.size = 64 << 30
    path = w.top / "long.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf()) + zeros(64 << 10))
    seconds = 60 + (path.stat().st_size >> 20)
    p = subprocess.Popen([SNAP, "--store", str(w.store), "import", str(path), "-n", "long"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=w.env)
    try:
        parser = confined_child(p)
        assert resource.prlimit(parser, resource.RLIMIT_CPU) == (seconds, seconds + 1)
        resource.prlimit(parser, resource.RLIMIT_CPU, (1, seconds + 1))
        err = p.communicate(timeout=120)[1]
    finally:
        p.kill()
        p.wait()
    assert p.returncode == 2 and b"took more processor time than its size can need" in err, (p.returncode, err)
    assert "long" not in w.ok("image").out.decode()


@test
def the_parser_of_an_import_is_confined(w: World):
    """Seen from outside, while it waits for the rest of an archive."""
    raw = Path(archive(w.top / "full.tar", *FULL)).read_bytes()
    secret = os.open(w.top / "full.tar", os.O_RDONLY)
    os.set_inheritable(secret, True)
    p = subprocess.Popen([SNAP, "--store", str(w.store), "import", "-", "-n", "slow"], stdin=subprocess.PIPE,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=w.env, pass_fds=[secret])
    try:
        p.stdin.write(raw[:1024])
        p.stdin.flush()
        parser = confined_child(p)
        status = dict(line.split(":", 1) for line in Path(f"/proc/{parser}/status").read_text().splitlines() if ":" in line)
        assert int(status["NoNewPrivs"]) == 1, status
        fds = {os.readlink(f"/proc/{parser}/fd/{n}") for n in os.listdir(f"/proc/{parser}/fd")}
        assert not [f for f in fds if f.startswith(("/", "socket:")) and f != "/dev/null"], fds
        limits = Path(f"/proc/{parser}/limits").read_text()
        assert re.search(r"Max cpu time +14400 +14401 ", limits), limits
        # The sanitizer reserves terabytes.
        assert re.search(r"Max address space +2147483648 ", limits) or b"__asan_init" in SNAP.read_bytes(), limits
        p.stdin.write(raw[1024:])
        p.stdin.close()
        assert p.wait(60) == 0
    finally:
        p.kill()
        p.wait()
        os.close(secret)
    assert contents(w, "slow")["bin/su"] == b"#!"


def confined_child(p):
    """The child of a process that has entered a list of system calls."""
    end = time.monotonic() + 60
    while time.monotonic() < end and p.poll() is None:
        for pid in Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split():
            try:
                if "\nSeccomp:\t2\n" in Path(f"/proc/{pid}/status").read_text():
                    return int(pid)
            except OSError:
                continue
        time.sleep(0.02)
    raise AssertionError("no child of the import is behind a list of system calls")


@test
def an_image_of_too_many_names_is_refused(w: World):
    many = [entry(f"d/{n}", b"") for n in range(50)]
    path = archive(w.top / "many.tar", *many)
    w.snap("import", path, "--max-names", "51").fails(9, "more than 51 entries")
    image(w, path, "--max-names", "60")
    long = archive(w.top / "long.tar", *(entry(f"{n:03}" + "x" * 200, b"") for n in range(50)))
    w.snap("import", long, "--max-names", "60").fails(9, "its names have more than 7680 bytes")


@test
def the_last_entry_of_a_name_wins(w: World):
    image(w, archive(w.top / "twice.tar", entry("d/in", b"stays"), entry("f", b"old"), directory("d", 0o700),
                     entry("f", b"new"), entry("g", b"file"), directory("g"), entry("g/x", b"in it"),
                     directory("h"), entry("h/x", b"goes"), link("h", "d")))
    assert contents(w, "twice") == {"d/in": b"stays", "f": b"new", "g/x": b"in it"}
    names = listing(w, "twice")
    assert names["d"][1] == "0o700" and names["h"][0] == tarfile.SYMTYPE


HOSTILE = {
    "a_way_up": ((entry("../out", b"x"),), "has '..' in its path"),
    "a_way_up_inside": ((entry("a/../../out", b"x"),), "has '..' in its path"),
    "through_a_link": ((link("a", "/tmp"), entry("a/out", b"x")), "leads through a symbolic link"),
    "through_a_file": ((entry("a", b"x"), entry("a/b", b"x")), "leads through what is no directory"),
    "a_link_out": ((link("a", "../../etc/passwd", tarfile.LNKTYPE),), "has '..' in its path"),
    "a_link_to_nothing": ((link("a", "b", tarfile.LNKTYPE),), "is not in the archive"),
    "a_link_to_a_directory": ((directory("d"), link("a", "d", tarfile.LNKTYPE)), "hard link to a directory"),
    "a_long_name": ((entry("x" * 256, b"x"),), "too long"),
    "a_deep_one": ((entry("d/" * 1100 + "f", b"x"),), "lies too deep"),
    "a_top_that_is_a_link": ((link(".", "d"),), "is the top and no directory"),
    "a_huge_file": ((entry("f", b"x" * 5000),), "more than 4.0 KiB in all"),
    "a_huge_attribute": ((entry("f", b"x", pax_headers={"SCHILY.xattr.user.a": "y" * 5000}),),
                         "more than 4.0 KiB in all"),
}


@test
def hostile_archives_are_refused_and_leave_nothing(w: World):
    for name, (entries, why) in HOSTILE.items():
        path = archive(w.top / f"{name}.tar", entry("good", b"fine"), *entries)
        w.snap("import", path, "--max-size", "4K").fails(9 if "huge" in name else 2, why)
    assert w.ok("image", "-q").out == b""
    before = w.ok("gc", "--json").json("snap.gc/1")
    assert before["kept"] == 0, "what was put has no name"
    w.ok("check")
    image(w, archive(w.top / "absolute.tar", entry("/etc/passwd", b"inside")))
    assert contents(w, "absolute") == {"etc/passwd": b"inside"}


@test
def damaged_archives_are_refused(w: World):
    whole = (w.top / "whole.tar.gz")
    archive(whole, *FULL, entry("big", os.urandom(300_000)), how="w:gz")
    raw = whole.read_bytes()
    cases = {"cut": raw[:len(raw) // 2], "text": b"this is no archive\n" * 100, "empty": b"",
             "flipped": raw[:1000] + bytes([raw[1000] ^ 0xff]) + raw[1001:]}
    for name, data in cases.items():
        (w.top / name).write_bytes(data)
        done = w.snap("import", str(w.top / name))
        if name != "empty":  # libarchive takes nothing for an archive with nothing in it
            done.fails(2, name)
    w.snap("import", str(w.top / "none.tar")).fails(4, "none.tar")
    assert set(w.ok("image", "-q").out.split()) <= {b"empty"}


@test
def names_are_checked_and_kept_apart(w: World):
    path = archive(w.top / "one.tar", entry("f", b"1"))
    image(w, path)
    w.snap("import", path).fails(1, "there is an image 'one' already", "--replace", "--name")
    w.snap("import", path, "-n", "../x").fails(2, "an image: the name '../x'")
    w.snap("import", "-").fails(2, "needs --name")
    read, write = os.pipe()  # from which nothing comes: it must not be waited for
    try:
        w.snap("import", "-", "-n", "one", stdin=read, timeout=60).fails(1, "there is an image 'one' already")
    finally:
        os.close(read)
        os.close(write)
    with open(path, "rb") as f:
        w.ok("import", "-", "-n", "piped", stdin=f)
    assert w.ok("image", "-q").out == b"one\npiped\n"
    assert image(w, archive(w.top / "one.tar", entry("f", b"2")), "--replace")["replaced"]
    assert contents(w, "one") == {"f": b"2"}
    shown = w.ok("image", "show", "one", "--json").json("snap.image/1")["images"][0]
    assert shown["about"]["source"].endswith("one.tar"), shown
    w.ok("image", "rm", "piped")
    w.snap("image", "rm", "piped").fails(4, "there is no image 'piped'")
    w.snap("show", "piped").fails(4, "there is no")


@test
def a_clone_of_an_image_is_a_clone(w: World):
    needs_fuse()
    image(w, archive(w.top / "base.tar", *FULL))
    w.ok("clone", "--from", "base", "-n", "try")
    top = w.store / "clones" / "try"
    assert (top / "naïve").read_bytes() == b"utf-8"
    (top / "naïve").unlink()
    (top / "lib" / "one").write_bytes(b"changed")
    diff = w.ok("diff", "try", "--json").json("snap.diff/1")
    assert {f["path"]: f["status"] for f in diff["files"]} == {"naïve": "deleted", "lib/one": "modified", "lib/two": "modified"}, diff
    w.snap("image", "rm", "base").fails(11, "'try' among them")
    w.snap("promote", "try").fails(7, "image")
    w.ok("status", "try")
    w.ok("snapshot", "try", "-m", "kept")
    changed = contents(w, "try")
    assert changed["lib/one"] == b"changed" and "naïve" not in changed
    raw = w.ok("export", "try", "--tar", "-", "--base", "base").out
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        assert {".wh.naïve", "lib/one", "lib/two"} <= set(tar.getnames()), tar.getnames()
        assert "etc/shadow" not in tar.getnames()
    w.ok("image", "rm", "-f", "base")
    w.snap("status", "try").fails(4, "try")


def status(*packages):
    return b"".join(f"Package: {name}\nStatus: install ok {state}\nVersion: {version}\nDescription: x\n y\n\n".encode()
                    for name, version, state in packages)


@test
def a_diff_speaks_of_packages(w: World):
    before = status(("libc6", "2.36-9", "installed"), ("nginx", "1.22", "installed"), ("old", "1", "installed"))
    after = status(("libc6", "2.36-9", "installed"), ("nginx", "1.24", "installed"), ("new", "7", "installed"),
                   ("old", "1", "deinstall ok config-files"))
    image(w, archive(w.top / "a.tar", entry("var/lib/dpkg/status", before), entry("etc/x", b"1")))
    image(w, archive(w.top / "b.tar", entry("var/lib/dpkg/status", after), entry("etc/x", b"1"),
                     entry("var/lib/dpkg/status.d/base", b"Package: base-files\nVersion: 12\n")))
    got = w.ok("diff", "a", "b", "--json").json("snap.diff/1")["packages"]
    assert got == {"added": [{"package": "base-files", "before": None, "after": "12"}, {"package": "new", "before": None, "after": "7"}],
                   "changed": [{"package": "nginx", "before": "1.22", "after": "1.24"}],
                   "removed": [{"package": "old", "before": "1", "after": None}]}, got
    for more in ((), ("--stat",)):
        text = w.ok("diff", "a", "b", *more).out.decode()
        assert "# packages: +2 ~1 -1\n" in text and "# package changed: nginx 1.22 -> 1.24\n" in text, text
    image(w, archive(w.top / "c.tar", entry("etc/x", b"2"), entry("var/lib/dpkg/status", before)))
    assert "packages" not in w.ok("diff", "a", "c", "--json").json("snap.diff/1"), "nothing was installed"


PASSWD = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n"
GROUP = "root:x:0:\nann:x:1000:\nadm:x:4:ann\n"
SHIPPED = b"listen 80\n"


def conffiles(name, version, *files):
    lines = "".join(f" /{path} {hashlib.md5(data).hexdigest()}\n" for path, data in files)
    return f"Package: {name}\nStatus: install ok installed\nVersion: {version}\nConffiles:\n{lines}Description: x\n\n".encode()


def systems(w):
    """A root of a distribution before and after an installation, an edit and a file that nobody accounts for."""
    same = [entry("usr/bin/true", b"1"), entry("etc/motd", b"hello\n"), entry("etc/gone", b"x\n")]
    image(w, archive(w.top / "a.tar", *same, entry("etc/passwd", PASSWD.encode()), entry("etc/group", GROUP.encode()),
                     entry("var/lib/dpkg/status", conffiles("base", "1", ("etc/gone", b"x\n")))))
    more = "web:x:33:33:it's a server:/var/o'x:/usr/sbin/nologin\nbad name;rm -rf /:x:44:44::/:/bin/sh\n"
    image(w, archive(
        w.top / "b.tar", *same[:1], entry("etc/motd", b"hello\nworld\n"),
        entry("etc/passwd", (PASSWD + more).encode()), entry("etc/group", (GROUP.replace(":ann\n", ":ann,web\n") + "web:x:33:\n").encode()),
        entry("etc/nginx/nginx.conf", SHIPPED), entry("etc/nginx/sites", b"mine\n", mode=0o640), entry("etc/nginx/blob", b"\0\1"),
        entry("etc/alternatives/vi", b"derived"), entry("lib/systemd/system/nginx.service", b"[Unit]\n"),
        entry("etc/systemd/system/own.service", b"[Unit]\n"), entry("usr/sbin/nginx", b"elf"), entry("usr/local/bin/tool", b"t"),
        entry("var/lib/nginx/body", b"b"), entry("usr/lib/python3/__pycache__/a.pyc", b"c"),
        entry("var/lib/dpkg/info/nginx.list", b"/.\n/usr/sbin/nginx\n/lib/systemd/system/nginx.service\n"),
        entry("var/lib/apt/extended_states", b"Package: libweb\nArchitecture: all\nAuto-Installed: 1\n\n"),
        entry("var/lib/dpkg/status", conffiles("base", "1") + conffiles("evil$(id)", "1") + conffiles("libweb", "2") + conffiles(
            "nginx", "1.22-9", ("etc/nginx/nginx.conf", SHIPPED), ("etc/nginx/sites", b"theirs\n")))))


@test
def a_diff_of_two_systems_tells_users_services_and_configuration(w: World):
    systems(w)
    got = w.ok("diff", "a", "b", "--json").json("snap.diff/1")["system"]
    assert [(u["name"], u["status"], u["id"], u["home"]) for u in got["users"]] == [
        ("bad name;rm -rf /", "added", 44, "/"), ("web", "added", 33, "/var/o'x")], got
    assert [(g["name"], g["status"], g["members"]) for g in got["groups"]] == [
        ("adm", "changed", "ann,web"), ("web", "added", "")], got
    assert [(s["name"], s["status"]) for s in got["services"]] == [("own.service", "added"), ("nginx.service", "added")], got
    assert [(c["path"], c["status"], c["package"], c["shipped"]) for c in got["configuration"]] == [
        ("etc/gone", "removed", "base", False), ("etc/motd", "changed", None, False),
        ("etc/nginx/blob", "added", None, False), ("etc/nginx/nginx.conf", "added", "nginx", True),
        ("etc/nginx/sites", "added", "nginx", False), ("etc/systemd/system/own.service", "added", None, False)], got
    assert got["others"] == [{"path": "usr/local/bin/tool", "status": "added"}], got
    assert got["files"] == {"package": 2, "configuration": 6, "derived": 4, "state": 4, "other": 1}, got
    text = w.ok("diff", "a", "b").out.decode()
    assert "# user added: web (uid 33, home /var/o'x, shell /usr/sbin/nologin)\n" in text, text
    assert "# service added: nginx.service\n" in text and "# configuration added: etc/nginx/sites (of nginx)\n" in text, text
    assert "configuration added: etc/nginx/nginx.conf" not in text and "# files: 2 of packages, 6 conf" in text, text
    rows = [line.split("|")[0].strip() for line in w.ok("diff", "a", "b", "--stat").out.decode().splitlines() if "|" in line]
    assert [r.split()[0] for r in rows] == ["etc", "lib/systemd/system/nginx.service", "usr", "var"], rows
    assert "etc/motd" in w.ok("diff", "a", "b", "--stat", "--", "etc/motd").out.decode(), "one that was asked for"


@test
def the_script_of_a_diff_does_the_same(w: World):
    systems(w)
    script = w.ok("diff", "a", "b", "--script").out.decode()
    assert script == w.ok("diff", "a", "b", "--script", "--json").json("snap.diff/1")["script"], script
    subprocess.run(["sh", "-n"], input=script.encode(), check=True)
    lines = script.splitlines()
    assert "    nginx=1.22-9" in lines and "    libweb=2 \\" in lines and "    libweb" in lines, script
    code = [line for line in lines if not line.startswith("#")]
    assert not any("evil" in line or "bad name" in line for line in code), script
    assert "#   package evil$(id)" in lines and "#   file usr/local/bin/tool" in lines and "#   file etc/nginx/blob" in lines, script
    assert any(line.startswith("getent group web > /dev/null || groupadd --system --gid 33 web") for line in lines), script
    assert lines.index("gpasswd --add web adm > /dev/null") > [n for n, l in enumerate(lines) if "useradd" in l][0], script
    assert "--home-dir '/var/o'\\''x'" in script and "systemctl daemon-reload" in lines, script
    # Run with commands that only write down what they were called with, and a directory for /.
    top, tools = w.top / "machine", w.top / "tools"
    (top / "etc/nginx").mkdir(parents=True)
    (top / "etc/motd").write_text("hello\n")
    (top / "etc/nginx/sites").write_text("theirs\n")
    tools.mkdir()
    for name in ("apt-get", "apt-mark", "getent", "useradd", "groupadd", "gpasswd", "systemctl"):
        (tools / name).write_text(f'#!/bin/sh\nfor a in {name} "$@"; do printf "[%s]" "$a"; done >> {w.top}/called\n'
                                  f'echo >> {w.top}/called\n[ {name} != getent ]\n')
        (tools / name).chmod(0o755)
    if not shutil.which("patch"):
        return
    (top / "etc/nginx/sites").unlink()
    env = {"PATH": f"{tools}:/usr/bin:/bin"}
    subprocess.run(["sh", "-c", script.replace("patch -d / ", f"patch -d {top} ").replace("-- '/", f"-- '{top}/")], check=True, env=env, stdout=subprocess.PIPE)
    called = (w.top / "called").read_text()
    assert "[apt-get][install][-y][--allow-downgrades][-o][APT::Cmd::Pattern-Only=true][libweb=2][nginx=1.22-9]" in called, called
    assert stat.S_IMODE((top / "etc/nginx/sites").stat().st_mode) == 0o640, "a secret stays one"
    assert (top / "etc/systemd/system/own.service").stat().st_mode & 0o777 == 0o644
    assert "[--home-dir][/var/o'x][--shell][/usr/sbin/nologin][web]" in called, called
    assert (top / "etc/motd").read_text() == "hello\nworld\n" and (top / "etc/nginx/sites").read_text() == "mine\n"
    w.snap("diff", "a", "b", "--script", "--stat").fails(2, "--script")


@test
def the_script_has_the_patches_of_configuration_alone(w: World):
    systems(w)
    both = w.ok("diff", "a", "b", "--script", "--patch", "--json").json("snap.diff/1")
    assert "usr/local/bin/tool" in both["patch"], both["patch"]
    assert both["script"] == w.ok("diff", "a", "b", "--script").out.decode(), both["script"]


@test
def the_script_names_modes_and_owners_that_it_does_not_set(w: World):
    root = [entry("usr/bin/true", b"1"), entry("etc/passwd", PASSWD.encode()), entry("etc/group", GROUP.encode())]
    image(w, archive(w.top / "a.tar", *root, entry("etc/key", b"k"), directory("srv")))
    image(w, archive(w.top / "b.tar", *root, entry("etc/key", b"k", mode=0o600, uid=7), directory("srv"), directory("srv/new")))
    lines = w.ok("diff", "a", "b", "--script").out.decode().splitlines()
    assert "#   mode or owner of etc/key" in lines and "#   directory srv/new" in lines, lines


@test
def the_script_has_no_word_that_apt_reads_otherwise(w: World):
    root = [entry("usr/bin/true", b"1"), entry("etc/passwd", PASSWD.encode()), entry("etc/group", GROUP.encode())]
    bad = [("openssh-server", "installed-"), ("one", "installed"), ("two", "candidate"), ("three", "1-"), (".", "1"), ("x", "1"),
           ("four-", "1"), (".*", "1"), ("Big", "1"), ("five:", "1"), ("six:a.c", "1"), ("-o", "1")]
    good = [("g++", "4:12.2.0-3"), ("libstdc++6", "12.2.0-14+deb12u1"), ("python3.11", "3.11.2-6~x"), ("zlib1g:amd64", "1:1")]
    installed = [(name, version, "installed") for name, version in bad + good]
    image(w, archive(w.top / "a.tar", *root, entry("var/lib/dpkg/status", status(("base", "1", "installed"), ("old+", "1", "installed")))))
    image(w, archive(w.top / "b.tar", *root, entry("var/lib/dpkg/status", status(("base", "1", "installed"), *installed))))
    lines = w.ok("diff", "a", "b", "--script").out.decode().splitlines()
    words = [line.strip(" \\") for line in lines if line.startswith("    ")]
    assert sorted(words) == sorted(f"{name}={version}" for name, version in good), lines
    for name in [name for name, _ in bad] + ["old+"]:
        assert f"#   package {name}" in lines, (name, lines)


@test
def a_package_database_that_is_gone_is_no_removal_of_packages(w: World):
    root = [entry("usr/bin/true", b"1"), entry("etc/passwd", PASSWD.encode()), entry("etc/group", GROUP.encode())]
    image(w, archive(w.top / "a.tar", *root, entry("var/lib/dpkg/status", status(("base", "1", "installed")))))
    gone = {"none": [], "empty": [entry("var/lib/dpkg/status", b"")], "folder": [directory("var/lib/dpkg/status")],
            "linked": [link("var/lib/dpkg/status", "/dev/null")]}
    for name, entries in gone.items():
        image(w, archive(w.top / f"{name}.tar", *root, *entries))
        got = w.ok("diff", "a", name, "--json", "--script").json("snap.diff/1")
        assert got["packages"] == {"database": "removed", "added": [], "changed": [], "removed": []}, (name, got)
        assert "apt-get" not in got["script"] and "#   any package: the dpkg database is gone\n" in got["script"], got["script"]
        text = w.ok("diff", "a", name).out.decode()
        assert "# package database removed\n" in text and "# packages:" not in text, text
        assert w.ok("diff", name, "a", "--json").json("snap.diff/1")["packages"]["database"] == "added"


@test
def a_run_cannot_say_what_its_packages_ship(w: World):
    root = [entry("usr/bin/true", b"1"), entry("etc/passwd", PASSWD.encode()), entry("etc/group", GROUP.encode())]
    before = conffiles("sudo", "1", ("etc/sudoers", b"old\n")) + conffiles("web", "1", ("etc/web", b"old\n"))
    after = conffiles("sudo", "1", ("etc/sudoers", b"evil\n"), ("etc/cron", b"evil\n")) + conffiles("web", "2", ("etc/web", b"new\n"))
    image(w, archive(w.top / "a.tar", *root, entry("etc/sudoers", b"old\n"), entry("etc/web", b"old\n"), entry("var/lib/dpkg/status", before)))
    image(w, archive(w.top / "b.tar", *root, entry("etc/sudoers", b"evil\n"), entry("etc/web", b"new\n"), entry("etc/cron", b"evil\n"),
                     entry("var/lib/dpkg/status", after)))
    got = w.ok("diff", "a", "b", "--json").json("snap.diff/1")["system"]["configuration"]
    assert [(c["path"], c["package"], c["shipped"]) for c in got] == [
        ("etc/cron", None, False), ("etc/sudoers", "sudo", False), ("etc/web", "web", True)], got


# --- OCI ------------------------------------------------------------------------------------------

def blob(top, data):
    name = hashlib.sha256(data).hexdigest()
    (top / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
    (top / "blobs" / "sha256" / name).write_bytes(data)
    return {"digest": f"sha256:{name}", "size": len(data)}


def layout(top, *images, plain=lambda ids: ids):
    """Each is a tag, a platform and its layers, as lists of entries; `plain` may spoil what they unpack to."""
    index = []
    for tag, platform, layers in images:
        os_, arch = platform.split("/")
        made, ids = [], []
        for n, entries in enumerate(layers):
            raw = io.BytesIO()
            with tarfile.open(fileobj=raw, mode="w:gz" if n % 2 == 0 else "w", format=tarfile.PAX_FORMAT) as tar:
                for info, data in entries:
                    tar.addfile(info, io.BytesIO(data) if data is not None else None)
            bare = gzip.decompress(raw.getvalue()) if n % 2 == 0 else raw.getvalue()
            ids.append("sha256:" + hashlib.sha256(bare).hexdigest())
            made.append({"mediaType": "application/vnd.oci.image.layer.v1.tar" + ("+gzip" if n % 2 == 0 else ""),
                         **blob(top, raw.getvalue())})
        config = blob(top, json.dumps({"os": os_, "architecture": arch, "config": {
            "Env": ["PATH=/bin"], "Cmd": ["sh"], "WorkingDir": "/srv", "User": "7:8"}, "rootfs": {"type": "layers", "diff_ids": plain(ids)}}).encode())
        manifest = blob(top, json.dumps({"schemaVersion": 2, "config": config, "layers": made}).encode())
        index.append({**manifest, "platform": {"os": os_, "architecture": arch},
                      "annotations": {"org.opencontainers.image.ref.name": tag}})
    (top / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": index}))
    return top


LAYERS = (
    (entry("a/one", b"1"), entry("a/two", b"2"), entry("b/x", b"x"), entry("b/y", b"y"), entry("c", b"c"), entry("d/in", b"d")),
    (entry("b/new", b"n"), entry("b/.wh..wh..opq", b""), entry("a/.wh.one", b""), entry("c", b"C"),
     entry(".wh.d", b""), entry(".wh.nothing", b""), link("a/three", "a/two", tarfile.LNKTYPE)),
)
MERGED = {"a/three": b"2", "b/new": b"n", "c": b"C"}


@test
def layers_lie_over_each_other_with_their_whiteouts(w: World):
    top = layout(w.top / "layout", ("v1", "linux/amd64", LAYERS), ("v2", "linux/s390x", LAYERS[:1]))
    got = image(w, f"{top}:v1", "-n", "v1")
    assert got["layers"] == 2 and got["about"]["platform"] == "linux/amd64", got
    assert got["about"]["config"] == {"Env": ["PATH=/bin"], "Cmd": ["sh"], "WorkingDir": "/srv", "User": "7:8"}, got
    assert contents(w, "v1") == MERGED and listing(w, "v1")["a/two"][4] == "a/three", contents(w, "v1")
    assert image(w, str(top), "--platform", "linux/s390x", "-n", "z")["about"]["layers"] == got["about"]["layers"][:1]
    w.snap("import", f"{top}:none", "-n", "x").fails(4, "no image with the tag none")
    w.snap("import", str(top), "--platform", "linux/mips", "-n", "x").fails(4, "no image for linux/mips")
    out = w.top / "out"
    first = w.ok("export", "v1", "--oci", str(out), "--tag", "again", "--json").json("snap.export/1")
    assert w.ok("export", "v1", "--oci", str(out), "--tag", "again", "--json").json("snap.export/1")["digest"] == first["digest"]
    back = image(w, f"{out}:again", "-n", "back")
    assert back["about"]["config"] == got["about"]["config"] and back["about"]["platform"] == "linux/amd64", back
    assert listing(w, "back") == listing(w, "v1")
    w.ok("export", "v1", "--oci", str(out), "--tag", "over", "--base", "z", "--compress", "zstd")
    assert image(w, f"{out}:over", "-n", "over")["layers"] == 2
    assert listing(w, "over") == listing(w, "v1"), "the difference over its base is the same"
    assert not [p for p in (out / "blobs" / "sha256").iterdir() if len(p.name) != 64], "nothing is left there"


@test
def a_layer_that_unpacks_to_something_else_is_refused(w: World):
    """Its own digest is right: somebody packed other bytes, or wrote another configuration."""
    wrong = "sha256:" + "0" * 64
    for name, plain, why in (("first", lambda ids: [wrong, ids[1]], f"and the image says {wrong}"),
                             ("second", lambda ids: [ids[0], wrong], f"and the image says {wrong}"),
                             ("few", lambda ids: ids[:1], "has 2 layers, and says that it has 1"),
                             ("odd", lambda ids: [ids[0], "md5:1"], "no known kind")):
        top = layout(w.top / name, ("v1", "linux/amd64", LAYERS), plain=plain)
        w.snap("import", str(top), "-n", "x").fails(12, why)
    assert w.ok("image", "-q").out == b""
    # What zstd unpacks to is looked at as well.
    image(w, archive(w.top / "a.tar", *FULL))
    out = w.top / "out"
    w.ok("export", "a", "--oci", str(out), "--compress", "zstd")
    image(w, str(out), "-n", "good")
    index = json.loads((out / "index.json").read_text())
    named = out / "blobs/sha256"
    manifest = json.loads((named / index["manifests"][0]["digest"][7:]).read_text())
    config = json.loads((named / manifest["config"]["digest"][7:]).read_text())
    config["rootfs"]["diff_ids"] = [wrong]
    manifest["config"].update(blob(out, json.dumps(config).encode()))
    index["manifests"][0].update(blob(out, json.dumps(manifest).encode()))
    (out / "index.json").write_text(json.dumps(index))
    w.snap("import", str(out), "-n", "bad").fails(12, wrong)


@test
def a_digest_that_does_not_fit_stores_nothing(w: World):
    top = layout(w.top / "layout", ("v1", "linux/amd64", LAYERS))
    blobs = sorted((top / "blobs" / "sha256").iterdir())
    for path in blobs:
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        w.snap("import", str(top)).fails(12, "digest")
        path.write_bytes(whole[:-1])
        w.snap("import", str(top)).fails(12, "bytes, not")
        path.unlink()
        path.symlink_to("/etc/passwd")
        assert w.snap("import", str(top)).status not in (0, 99)
        path.unlink()
        path.write_bytes(whole)
    for text in ("", "[]", "{}", '{"manifests":[{"digest":"sha256:../../../etc/passwd","size":1}]}', '{"manifests":[1]}'):
        (top / "index.json").write_text(text)
        assert w.snap("import", str(top)).status in (1, 2, 4), text
    assert w.ok("image", "-q").out == b""


@test
def skopeo_and_umoci_read_and_write_the_same(w: World):
    missing = [t for t in ("skopeo", "umoci") if not shutil.which(t)]
    if missing:
        raise Skip(f"{' and '.join(missing)} not installed")
    if os.geteuid() != 0:
        raise Skip("only root can unpack owners and devices")
    image(w, archive(w.top / "full.tar", *FULL))
    ours = w.top / "ours"
    w.ok("export", "full", "--oci", str(ours), "--tag", "one")
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", f"oci:{ours}:one", f"oci:{w.top / 'theirs'}:one"], check=True)
    image(w, f"{w.top / 'theirs'}:one", "-n", "theirs")
    assert listing(w, "theirs") == listing(w, "full")
    subprocess.run(["umoci", "unpack", "--image", f"{ours}:one", w.top / "bundle"], check=True, capture_output=True)
    root = w.top / "bundle" / "rootfs"
    assert os.path.samefile(root / "lib" / "one", root / "lib" / "two") and os.lstat(root / "lib" / "one").st_gid == 100_000
    assert os.getxattr(root / "etc" / "shadow", b"user.note") == b"kept" and os.lstat(root / "bin" / "su").st_mode & 0o7777 == 0o4755
    (root / "naïve").unlink()
    (root / "etc" / "added").write_bytes(b"by umoci")
    subprocess.run(["umoci", "repack", "--image", f"{ours}:two", w.top / "bundle"], check=True, capture_output=True)
    image(w, f"{ours}:two", "-n", "two")
    want, got = contents(w, "full"), contents(w, "two")
    assert got == {**{k: v for k, v in want.items() if k != "naïve"}, "etc/added": b"by umoci"}, got.keys() ^ want.keys()


# What a run does to an image, and a plain chroot to a copy of it; owners by number, as both systems have no names for them.
CHANGES = r"""
set -e
cd /srv
chown 1000:60000 own; chown -h 7:8 link
ln own/first own/again; ln set-id second
echo more >> own/first; mv shared moved; rm gone; rm -r old
mkdir -m 2750 new; chown 33:33 new; echo x > new/file; chmod 4711 new/file
ln -s /srv/new new/link; mkfifo new/fifo
"""


def layout_of_local_files(w):
    """A system that umoci puts into a layout and skopeo copies, with all that an image says of a file."""
    ours, theirs, bundle = w.top / "by-umoci", w.top / "by-skopeo", w.top / "bundle"
    for words in (["init", "--layout", ours], ["new", "--image", f"{ours}:empty"],
                  ["unpack", "--image", f"{ours}:empty", bundle]):
        subprocess.run(["umoci", *words], check=True, capture_output=True)
    root = plant(bundle / "rootfs")
    for name in ("own", "old"):
        (root / "srv" / name).mkdir(parents=True)
    for name in ("own/first", "old/a", "shared", "gone", "set-id"):
        (root / "srv" / name).write_text(name)
    (root / "srv/link").symlink_to("own")
    os.link(root / "srv/shared", root / "srv/old/b")
    os.chown(root / "srv/shared", 12, 345)
    os.setxattr(root / "srv/own/first", b"user.note", b"kept\x00\xff")
    os.setxattr(root / "srv/own", b"user.folder", b"too")
    os.chmod(root / "srv/set-id", 0o4755)
    subprocess.run(["umoci", "repack", "--image", f"{ours}:one", bundle], check=True, capture_output=True)
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", f"oci:{ours}:one", f"oci:{theirs}:one"], check=True)
    return theirs, root


def on_disk(root):
    """All that an image says of each file: kind and mode, owners, size and bytes, attributes, links; not directories' sizes."""
    first, seen = {}, {}
    for path in [root, *sorted(root.rglob("*"))]:
        st, name = path.lstat(), str(path.relative_to(root))
        kind = stat.S_IFMT(st.st_mode)
        data = path.read_bytes() if kind == stat.S_IFREG else os.readlink(path) if kind == stat.S_IFLNK else None
        attrs = {a: os.getxattr(path, a, follow_symlinks=False) for a in os.listxattr(path, follow_symlinks=False)}
        seen[name] = (oct(st.st_mode), st.st_uid, st.st_gid, st.st_rdev, data, attrs,
                      kind == stat.S_IFDIR or st.st_nlink, first.setdefault(st.st_ino, name))
    return seen


@test
def what_runs_on_an_image_of_theirs_goes_back_to_them(w: World):
    """umoci and skopeo make a layout; run --root changes a clone of it; both read the export, and it is as a chroot makes it."""
    missing = [t for t in ("skopeo", "umoci", "chroot") if not shutil.which(t)]
    if missing:
        raise Skip(f"{' and '.join(missing)} not installed")
    if os.geteuid() != 0:
        raise Skip("only root can unpack owners")
    needs_fuse()
    theirs, root = layout_of_local_files(w)
    image(w, f"{theirs}:one", "-n", "img")
    w.ok("clone", "--from", "img", "-n", "box")
    w.ok("run", "--root", "--allow-missing", "pids", "box", "--", "sh", "-c", CHANGES, timeout=300)
    before = on_disk(root)
    subprocess.run([shutil.which("chroot"), root, "/bin/sh", "-c", CHANGES], check=True, env={"PATH": "/bin"})
    want = on_disk(root)
    changed = {name for name in want.keys() | before.keys() if want.get(name) != before.get(name)}
    assert {"srv/own", "srv/own/again", "srv/second", "srv/moved", "srv/gone", "srv/old/b", "srv/new/fifo"} <= changed, changed
    for how in ((), ("--base", "img")):
        out = w.top / f"out{len(how)}"
        w.ok("export", "box", "--oci", str(out), "--tag", "two", *how)
        copied = w.top / f"copied{len(how)}"
        subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", f"oci:{out}:two", f"oci:{copied}:two"], check=True)
        for layout in (out, copied):
            bundle = w.top / f"{layout.name}-bundle"
            subprocess.run(["umoci", "unpack", "--image", f"{layout}:two", bundle], check=True, capture_output=True)
            got = on_disk(bundle / "rootfs")
            wrong = {name: (got.get(name), want.get(name)) for name in got.keys() | want.keys() if got.get(name) != want.get(name)}
            assert not wrong, (layout.name, wrong)


@test
def an_import_that_is_killed_leaves_a_clean_store(w: World):
    w.take()
    for victim in ("command", "cowfsd"):
        read, write = os.pipe()
        p = subprocess.Popen([SNAP, "import", "-", "-n", "half"], env=w.env, cwd=w.project, stdin=read,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.close(read)
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w") as tar:
            for n in range(40):
                tar.addfile(entry(f"f{n}", os.urandom(1 << 20))[0], io.BytesIO(os.urandom(1 << 20)))
        with os.fdopen(write, "wb", buffering=0) as f:
            f.write(raw.getvalue()[:len(raw.getvalue()) // 2])  # returns when most of it was taken
            os.kill(p.pid if victim == "command" else w.daemons()[0], signal.SIGKILL)
        p.communicate(timeout=60)
        assert p.returncode != 0, victim
        assert w.ok("image", "-q").out == b"", victim
        w.ok("gc")
        w.ok("check")


@test
def other_programs_read_and_write_the_same(w: World):
    """GNU tar, and bsdtar where it is: from the disk into an image, out again and onto the disk."""
    if os.geteuid() != 0:
        raise Skip("only root can unpack owners and devices")
    tools = [t for t in ("tar", "bsdtar") if shutil.which(t)]
    print(f"# with {', '.join(tools)}; missing: {', '.join({'tar', 'bsdtar'} - set(tools)) or 'none'}")
    src = w.top / "src"
    (src / "d").mkdir(parents=True)
    (src / "d" / "f").write_bytes(b"x" * 70_000)
    os.chown(src / "d" / "f", 12, 345)
    os.link(src / "d" / "f", src / "again")
    os.setxattr(src / "d" / "f", b"user.k", b"v\x00\xff")
    os.utime(src / "d" / "f", ns=(1, 1_234_567_890_123_456_789))
    with open(src / "holes", "wb") as f:
        f.truncate(1 << 24)
        f.seek(1 << 23)
        f.write(b"middle")
    os.mknod(src / "null", 0o20666, os.makedev(1, 3))
    os.chmod(src / "d", 0o2751)
    for tool in tools:
        more = ["--xattrs", "--format=pax", "-S"] if tool == "tar" else ["--xattrs", "--format=pax", "--read-sparse"]
        path = w.top / f"by-{tool}.tar"
        subprocess.run([tool, *more, "-cf", path, "-C", src, "."], check=True)
        image(w, str(path))
        out = w.top / f"out-{tool}"
        out.mkdir()
        w.ok("export", f"by-{tool}", "--tar", str(w.top / "out.tar"))
        subprocess.run([tool, "--xattrs", *(["--xattrs-include=*", "--numeric-owner"] if tool == "tar" else ["-p"]),
                        "-xf", w.top / "out.tar", "-C", out], check=True)
        for name in ("d", "d/f", "again", "holes", "null"):
            a, b = os.lstat(src / name), os.lstat(out / name)
            assert (a.st_mode, a.st_uid, a.st_gid, a.st_size, a.st_rdev, a.st_mtime_ns, a.st_nlink) == \
                   (b.st_mode, b.st_uid, b.st_gid, b.st_size, b.st_rdev, b.st_mtime_ns, b.st_nlink), (tool, name, a, b)
        assert os.getxattr(out / "d" / "f", b"user.k") == b"v\x00\xff" and os.path.samefile(out / "d" / "f", out / "again")
        assert (out / "holes").read_bytes() == (src / "holes").read_bytes()
        assert (out / "holes").stat().st_blocks * 512 < 1 << 20, "holes stay holes"


if __name__ == "__main__":
    sys.exit(main())
