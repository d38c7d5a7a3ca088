"""doctor: what it finds, where something is really missing."""

import contextlib
import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
from errno import ENOSYS, EPERM
from pathlib import Path

from runtest import CLONE3, LANDLOCK_CREATE_RULESET, lacking
from snaptest import SNAP, Skip, World, gone, main, test

NOBODY = 65534
MACHINE = {"fuse", "fusermount3", "allow_other", "namespaces", "cgroups", "landlock", "seccomp",
           "sandbox"}
MACHINE |= {"root"}
MACHINE |= {"idmap"} if os.geteuid() == 0 else set()
STORE = {"memory", "store", "space", "daemon", "name"}


def doctor(w, status=0, **more):
    """The findings by name."""
    got = w.snap("doctor", "--json", **more).json("snap.doctor/1", "ok", "checks", status=status)
    assert got["ok"] == (status == 0), got
    for one in got["checks"]:
        assert one["ok"] == (one["level"] == "ok"), one
        assert one["detail"] and (one["fix"] is None if one["ok"] else True), one
    return {one["name"]: one for one in got["checks"]}


def as_root():
    if os.geteuid() != 0:
        raise Skip("takes away devices and mounts, which takes root")


def elsewhere(w, prepare, *args, namespace="-m"):
    """The program in namespaces of its own, which `prepare` has changed."""
    as_root()
    program = w.top / "wrapped"
    program.write_text(f"#!/bin/sh\nexec unshare {namespace} sh -ec '{prepare}; exec \"$@\"' sh "
                       f"'{SNAP}' \"$@\"\n")
    program.chmod(0o755)
    return w.snap(*args, program=program)


def finding(result, name, status):
    got = result.json("snap.doctor/1", "checks", status=status)
    return next(one for one in got["checks"] if one["name"] == name)


@test
def everything_is_looked_at_and_nothing_is_changed(w: World):
    found = doctor(w, status=0 if os.geteuid() == 0 else doctor_status(w))
    assert MACHINE | STORE <= set(found), found
    assert not w.store.exists() and not w.daemons()
    for name, said in (("cgroups", "the memory, processes and cpu of a run can be limited, with "),
                       ("landlock", ", and runs need 1 or later"), ("sandbox", "a test command ran behind every wall; ")):
        assert not found[name]["ok"] or said in found[name]["detail"], found[name]


def doctor_status(w):
    return w.snap("doctor").status


@test
def people_see_a_mark_a_name_and_the_fix_below(w: World):
    env = {"PATH": "/nowhere"}
    lines = w.snap("doctor", env=env).out.decode().splitlines()
    assert any(line.startswith("✓  seccomp      ") for line in lines), lines
    at = next(i for i, line in enumerate(lines) if line[3:].startswith("name "))
    assert lines[at].startswith("!  name         'snapcow' is not on PATH"), lines
    assert lines[at + 1].startswith(" " * 16 + "fix: "), lines
    plain = w.snap("doctor", env={**env, "LC_ALL": "C"}).out
    assert b"ok  seccomp      " in plain and plain.isascii(), plain
    quiet = w.snap("-q", "doctor", env=env).out.decode()
    assert "✓" not in quiet and "!  name" in quiet, quiet


@test
def who_owns_the_short_name_is_told(w: World):
    bin_dir = w.top / "bin"
    bin_dir.mkdir()
    (bin_dir / "snapcow").symlink_to(SNAP)
    env = {"PATH": f"{bin_dir}:/usr/bin:/bin"}
    if not shutil.which("snap", path=env["PATH"]):
        assert "nobody" in doctor(w, env=env)["name"]["detail"]
    (bin_dir / "snap").symlink_to("snapcow")
    assert "'snap' and 'snapcow' are this program" in doctor(w, env=env)["name"]["detail"]
    (bin_dir / "snap").unlink()
    (bin_dir / "snap").write_text("#!/bin/sh\n")
    (bin_dir / "snap").chmod(0o755)
    found = doctor(w, env=env)["name"]
    assert found["ok"] and "another program" in found["detail"], found


# --- the machine ------------------------------------------------------------------------------

@test
def without_the_device_the_status_is_13(w: World):
    found = finding(elsewhere(w, "mount -t tmpfs none /dev", "doctor", "--json"), "fuse", 13)
    assert found["level"] == "error" and "modprobe fuse" in found["fix"], found
    result = elsewhere(w, "mount -t tmpfs none /dev", "doctor").ends(13)
    assert "✗  fuse         there is no '/dev/fuse'" in result.out.decode(), str(result)


@test
def a_device_that_does_not_mount_is_found_out_by_trying(w: World):
    found = finding(elsewhere(w, "mount --bind /dev/null /dev/fuse", "doctor", "--json"), "fuse", 13)
    assert found["level"] == "error" and "mounting" in found["detail"], found


@test
def namespaces_that_are_forbidden_are_told_with_the_setting(w: World):
    result = elsewhere(w, "echo 0 >/proc/sys/user/max_user_namespaces", "doctor", "--json",
                       namespace="-Ur")
    found = finding(result, "namespaces", 13)
    assert found["level"] == "error", found
    assert found["fix"] == "as root: sysctl -w user.max_user_namespaces=15000", found


@test
def where_no_run_can_start_the_status_is_13(w: World):
    as_root()
    # The cover counts once it is locked, which a further user namespace sees to.
    prepare = "mount -t tmpfs none /proc/fs; exec unshare -Urm \"$@\""
    result = elsewhere(w, prepare, "doctor", "--json")
    found = finding(result, "sandbox", 13)
    assert found["level"] == "error" and "parts covered" in found["detail"], found
    assert "systempaths=unconfined" in found["fix"], found
    found = finding(result, "cgroups", 13)
    assert found["level"] == "warning" and found["detail"].startswith("no run can start"), found
    for call, name in ((LANDLOCK_CREATE_RULESET, "landlock"), (CLONE3, "sandbox")):
        result = w.snap("doctor", "--json", preexec_fn=lacking(call, ENOSYS))
        found = finding(result, name, 13)
        assert found["level"] == "error" and found["fix"], found
        assert finding(result, "sandbox", 13)["level"] == "error"
    found = finding(w.snap("doctor", "--json", preexec_fn=lacking(LANDLOCK_CREATE_RULESET, EPERM)), "landlock", 13)
    assert "a filter of system calls refuses it" in found["detail"] and "filter" in found["fix"], found


@test
def the_ids_to_give_a_user_are_nobody_elses(w: World):
    files = {"subuid": "ann:100000:65536\n", "subgid": "bob:165536:65536\n"}
    for name, text in files.items():
        if not Path("/etc", name).exists():
            raise Skip(f"there is no /etc/{name} to cover")
        (w.top / name).write_text(text)
    prepare = "".join(f"mount --bind {w.top / name} /etc/{name}; " for name in files)
    result = elsewhere(w, prepare + "exec unshare -Ur \"$@\"", "doctor", "--json")
    found = finding(result, "root", result.status)
    assert "--add-subuids 231072-296607 --add-subgids 231072-296607 " in found["fix"], found


def cgroup_state():
    """Every directory of the caller's groups, with what version 2 says of itself."""
    found = {}
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        dirs[:] = [d for d in dirs if not d.startswith("snap-run-")]
        for name in ("cgroup.type", "cgroup.subtree_control"):
            with contextlib.suppress(OSError):
                found[top, name] = Path(top, name).read_text()
    return found


@test
def the_groups_of_the_caller_are_looked_at_and_left_alone(w: World):
    before = cgroup_state()
    found = w.snap("doctor", "--json").json("snap.doctor/1", "checks", status=doctor_status(w))
    cgroups = next(one for one in found["checks"] if one["name"] == "cgroups")
    assert cgroups["ok"] or cgroups["fix"], cgroups
    assert cgroup_state() == before


@test
def a_user_needs_the_helper_and_root_does_not(w: World):
    as_root()
    env = {"PATH": "/nowhere"}
    assert doctor(w, env=env)["fusermount3"]["level"] == "warning"
    program = w.top / "snapcow"
    shutil.copy(SNAP, program)
    w.top.chmod(0o755)
    who = {"program": program, "user": NOBODY, "group": NOBODY, "extra_groups": [], "env": env}
    found = doctor(w, status=13, **who)
    assert found["fusermount3"]["level"] == "error", found
    assert "apt-get install fuse3" in found["fusermount3"]["fix"], found
    # Root is never told to make somebody else's program set-user-id root.
    own = w.top / "bin" / "fusermount3"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    for owner, fix in ((NOBODY, "put its directory first in PATH"), (0, "--reinstall fuse3")):
        os.chown(own, owner, 0)
        found = doctor(w, status=13, **{**who, "env": {"PATH": str(own.parent)}})
        assert fix in found["fusermount3"]["fix"] and "chmod" not in found["fusermount3"]["fix"], found


# --- the store and the daemon -----------------------------------------------------------------

@test
def a_store_that_is_damaged_or_newer_is_ill(w: World):
    w.take()
    assert "read and written" in doctor(w)["store"]["detail"]
    w.stop()
    path = w.store / "meta.db"
    with open(path, "r+b") as f:  # user_version: four bytes at offset 60 of an SQLite header
        f.seek(60)
        f.write((99).to_bytes(4, "big"))
    assert "later version" in doctor(w, status=13)["store"]["detail"]
    path.write_bytes(b"no database" * 500)
    found = doctor(w, status=13)["store"]
    assert found["level"] == "error" and found["fix"] == "snapcow check", found


@test
def a_disk_that_is_nearly_full_is_told(w: World):
    result = elsewhere(w, f"mkdir {w.store}; mount -t tmpfs -o size=64m none {w.store}",
                       "doctor", "--json")
    found = finding(result, "space", 0)
    assert found["level"] == "warning" and "64.0 MiB" in found["detail"], found
    w.store.rmdir()
    result = elsewhere(w, f"mkdir {w.store}; mount -t tmpfs -o size=1m none {w.store}",
                       "doctor", "--json")
    assert finding(result, "space", 13)["level"] == "error"


@contextlib.contextmanager
def store_on(w, *features, kind="ext4"):
    """The store on a file system of its own."""
    as_root()
    if not shutil.which(f"mkfs.{kind}"):
        raise Skip(f"mkfs.{kind} is not installed")
    image, w.store = w.top / "image", w.top / "disk" / "store"
    with open(image, "wb") as f:
        f.truncate(160 << 20)
    w.store.parent.mkdir()
    w.env["SNAPCOW_STORE"] = str(w.store)
    if subprocess.run([f"mkfs.{kind}", "-q", *features, image], check=False, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0 or \
            subprocess.run(["mount", "-o", "loop", image, w.store.parent], check=False).returncode != 0:
        raise Skip(f"no {kind} in a file can be mounted here")
    try:
        yield w.store.parent
    finally:
        w.snap("stop", "--force")
        subprocess.run(["umount", w.store.parent], check=True)


def encrypt(disk, directory):
    """With a key that only the kernel has (fscrypt, policy 2)."""
    add_key, set_policy = 0xC0506617, 0x800C6613
    top = os.open(disk, os.O_RDONLY)
    arg = bytearray(struct.pack("<II32sII8I", 2, 0, b"", 64, 0, *[0] * 8) + os.urandom(64))
    try:
        fcntl.ioctl(top, add_key, arg)
        policy = struct.pack("<BBBB4s16s", 2, 1, 4, 2, b"", bytes(arg[8:24]))
        fd = os.open(directory, os.O_RDONLY)
        fcntl.ioctl(fd, set_policy, policy)
        os.close(fd)
    except OSError as e:
        raise Skip(f"no directory can be encrypted here: {e}") from None
    finally:
        os.close(top)


@test
def a_store_that_is_encrypted_on_its_disk_says_so(w: World):
    with store_on(w, "-O", "encrypt") as disk:
        w.store.mkdir(mode=0o700)
        encrypt(disk, w.store)
        w.ok("init")
        assert doctor(w)["encryption"]["detail"].endswith("is encrypted")


@test
def a_btrfs_is_looked_below(w: World):
    """Its files have a device number of their own."""
    with store_on(w, kind="btrfs"):
        w.ok("init")
        assert "can read it" in doctor(w)["encryption"]["detail"]


@test
def a_store_below_which_a_device_encrypts_says_so(w: World):
    """As LUKS below LVM looks in sysfs; a plain disk says that who has it can read it."""
    with store_on(w) as disk:
        w.ok("init")
        st = os.stat(disk)
        number = f"{os.major(st.st_dev)}:{os.minor(st.st_dev)}"
        assert "can read it" in doctor(w)["encryption"]["detail"]
        sysfs = w.top / "sysfs"
        (sysfs / number / "slaves" / "dm-1").mkdir(parents=True)
        (sysfs / number / "dm").mkdir()
        (sysfs / number / "dm" / "uuid").write_text("LVM-0123\n")
        (sysfs / number / "slaves" / "dm-1" / "dev").write_text("253:77\n")
        (sysfs / "253:77" / "dm").mkdir(parents=True)
        (sysfs / "253:77" / "dm" / "uuid").write_text("CRYPT-LUKS2-0123-disk\n")
        found = finding(elsewhere(w, f"mount --bind {sysfs} /sys/dev/block", "doctor", "--json"), "encryption", 0)
        assert found["detail"].endswith("is encrypted"), found
        # What only checks is made by the same library.
        (sysfs / "253:77" / "dm" / "uuid").write_text("CRYPT-VERITY-0123-disk\n")
        found = finding(elsewhere(w, f"mount --bind {sysfs} /sys/dev/block", "doctor", "--json"), "encryption", 0)
        assert "can read it" in found["detail"], found
        (sysfs / "253:77" / "dm" / "uuid").write_text("CRYPT-LUKS2-0123-disk\n")
        # One of two disks that is not makes all of it readable.
        (sysfs / number / "slaves" / "dm-2").mkdir()
        (sysfs / number / "slaves" / "dm-2" / "dev").write_text("253:78\n")
        (sysfs / "253:78").mkdir()
        found = finding(elsewhere(w, f"mount --bind {sysfs} /sys/dev/block", "doctor", "--json"), "encryption", 0)
        assert "can read it" in found["detail"], found


@test
def mounts_of_a_daemon_that_died_are_told_and_the_fix_mends_them(w: World):
    w.ok("clone", "-n", "try")
    found = doctor(w)
    assert found["mounts"]["ok"] and "1," in found["mounts"]["detail"], found
    assert "process" in found["daemon"]["detail"], found
    pid = w.kill_daemon()
    result = w.snap("doctor", "--json")
    assert f"process {pid}) ended unexpectedly".encode() in result.err, str(result)
    assert finding(result, "mounts", 0)["ok"], "it has brought them back"
    assert (w.store / "clones" / "try" / "README.md").read_text() == "first\n"
    # One that died while it started may have died of a mount: that is for a person to decide.
    pid = w.kill_daemon()
    (w.store / "run" / "cowfsd").write_text(f"{pid} 0 starting\n")
    found = doctor(w)["mounts"]
    assert found["level"] == "warning" and "clones/try" in found["detail"], found
    assert found["fix"] == "snapcow start", found
    w.ok(*found["fix"].split()[1:])
    w.ok("mount", "try")
    assert doctor(w)["mounts"]["ok"]


@test
def a_directory_that_is_gone_does_not_silence_it(w: World):
    lost = w.top / "lost"
    lost.mkdir()
    done = subprocess.run(["sh", "-c", f"cd '{lost}' && rmdir '{lost}' && exec '{SNAP}' doctor"],
                          env=w.env, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 13 and "No such file" in done.stdout.decode(), done


@test
def what_a_machine_lacks_leads_to_the_doctor(w: World):
    prepare = "mount -t tmpfs none /dev; mknod /dev/null c 1 3"
    elsewhere(w, prepare, "clone").fails(13, "/dev/fuse", "hint: snapcow doctor")


if __name__ == "__main__":
    sys.exit(main())
