#!/usr/bin/env python3
"""Who a run is, what it sees, what it holds: rule by rule of docs/design/sandbox.md."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandboxtest import INSIDE, Skip, is_root, main, test  # noqa: E402

DEVICES = {"fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
           "urandom", "zero"}


def status(text):
    """The fields of /proc/self/status."""
    return {k: v.strip() for k, _, v in (line.partition(":") for line in text.splitlines())}


# --- R1: descriptors and the working directory --------------------------------------------------

@test
def no_descriptor_of_the_caller_is_handed_in(box):
    with open(box.top / "secret", "w+") as secret:
        os.set_inheritable(secret.fileno(), True)
        # The one that lists has one more, for listing.
        seen = f"ls -l /proc/self/fd/{secret.fileno()}"
        assert box.outside("sh", "-c", seen, pass_fds=[secret.fileno()]).returncode == 0
        got = box.sh("ls /proc/self/fd", pass_fds=[secret.fileno()]).ends(0)
    assert got.lines() == ["0", "1", "2", "3"], str(got)


@test
def a_working_directory_is_below_the_root(box):
    assert box.sh("pwd", options=["--cwd", "/usr/lib"]).ends(0).lines() == ["/usr/lib"]
    box.sh("pwd", options=["--cwd", "/no/such"]).refused("'/no/such'", "No such file")
    box.sh("pwd", options=["--cwd", "/proc/1/root"]).refused("'/proc/1/root'")


# --- R2: identity ---------------------------------------------------------------------------------

@test
def a_run_has_no_capability_and_can_get_none(box):
    got = status(box.sh("cat /proc/self/status").ends(0).out.decode())
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(got[name], 16) == 0, (name, got[name])
    assert got["NoNewPrivs"] == "1" and got["Seccomp"] == "2", got
    outside = status(Path("/proc/self/status").read_text())
    assert int(outside["CapBnd"], 16) != 0 and outside["NoNewPrivs"] == "0", outside


@test
def a_run_keeps_its_number_and_is_no_one_s_root(box):
    got = box.sh("id -u; id -g; cat /proc/self/uid_map; sleep 0").ends(0).lines()
    assert got[0] == str(os.geteuid()) and got[1] == str(os.getegid()), got
    inside, outside, count = map(int, got[2].split())
    assert outside != 0 and outside + count <= 1 << 31, got
    assert outside > 65535 or not is_root(), got


@test
def a_run_by_root_is_no_root_outside(box):
    if not is_root():
        raise Skip("only root can be anybody")
    got = box.start("sh", "-c", "echo up; sleep 60", bufsize=0)
    with got:
        assert got.stdout.readline() == b"up\n"
        (pid,) = Path(f"/proc/{got.pid}/task/{got.pid}/children").read_text().split()
        seen = status(Path(f"/proc/{pid}/status").read_text())
        assert all(int(n) >= 65536 for n in seen["Uid"].split() + seen["Gid"].split()), seen
        assert seen["Groups"] == "", seen
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        seen = status(Path(f"/proc/{child}/status").read_text())
        assert all(int(n) >= 65536 for n in seen["Uid"].split() + seen["Gid"].split()), seen
        got.kill()


@test
def supplementary_groups_are_dropped(box):
    if not is_root():
        raise Skip("an ordinary user cannot drop them, which docs/design/sandbox.md says")
    _, words = box.words([], ["sh", "-c", "grep Groups: /proc/self/status"])
    with_groups = ["setpriv", "--groups", "4,24,27"]
    control = box.outside(*with_groups, "grep", "Groups:", "/proc/self/status")
    assert control.stdout.split()[1:] == [b"4", b"24", b"27"], control
    got = box.outside(*with_groups, *words, env=box.env)
    assert got.returncode == 0 and got.stdout.split() == [b"Groups:"], got


@test
def files_of_root_stay_root_s_on_disk(box):
    if not is_root():
        raise Skip("only root has files of root")
    (box.project / "old").write_text("of root\n")
    (box.project / "old").chmod(0o600)
    got = box.sh("stat -c %u:%g old; cat old; echo more >> old; touch new; stat -c %u new")
    assert got.ends(0).lines() == ["0:0", "of root", "0"], str(got)
    assert "idmap" in got.report["walls"], got.report
    st = (box.project / "new").stat()
    assert (st.st_uid, st.st_gid) == (0, 0), st
    assert (box.project / "old").read_text() == "of root\nmore\n"


@test
def files_of_root_elsewhere_are_a_stranger_s(box):
    """Only what is granted as one's own is; a mode of 0600 holds for a run by root."""
    if not is_root():
        raise Skip("only root has files of root")
    other = box.top / "other"
    other.mkdir()
    (other / "private").write_text("of root\n")
    (other / "private").chmod(0o600)
    got = box.sh("cat /other/private; echo x > /other/new", options=["--rw", f"{other}:/other"])
    assert got.err.count(b"ermission denied") == 2 and got.out == b"", str(got)
    assert (other / "private").read_text() == "of root\n"  # the control


@test
def root_can_run_as_another(box):
    if not is_root():
        box.sh("id", options=["--uid", "0"]).refused("only root can run a command as user 0")
        return
    os.chown(box.project, 1234, 1234)
    got = box.sh("id -u; id -g; touch mine", options=["--uid", "1234", "--gid", "1234"]).ends(0)
    assert got.lines() == ["1234", "1234"], str(got)
    assert (box.project / "mine").stat().st_uid == 1234


@test
def a_setuid_program_gives_nothing(box):
    if not is_root():
        raise Skip("only root can make one of another")
    program = box.project / "suid"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    program.chmod(0o4755)
    box.project.chmod(0o755)
    control = box.outside("setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", program, "-u")
    assert control.stdout == b"0\n", control
    got = box.run("./suid", "-u", options=["--uid", "1234", "--gid", "1234"]).ends(0)
    assert got.lines() == ["1234"], str(got)


@test
def a_run_has_a_session_and_no_terminal_of_the_caller(box):
    """Started from a terminal, outside /dev/tty opens and inside it does not."""
    _, words = box.words([], ["sh", "-c", "(exec 3<>/dev/tty) && echo opened || echo none"])
    for command, want in ((["sh", "-c", "(exec 3<>/dev/tty) && echo opened"], b"opened"),
                          (words, b"none")):
        pid, master = pty.fork()
        if pid == 0:
            os.execvpe(command[0], command, box.env)
        said = b""
        while select.select([master], [], [], 60)[0]:
            try:
                more = os.read(master, 4096)
            except OSError:
                break
            if not more:
                break
            said += more
        os.waitpid(pid, 0)
        os.close(master)
        assert want in said, (command, said)
    assert b"opened" not in said, said


@test
def a_terminal_of_its_own_is_one_inside(box):
    got = box.sh("tty; test -t 0 && test -t 1 && test -t 2 && echo all; stty size; ps -o tty= -p $$",
                 options=["--tty"]).ends(0)
    assert got.lines()[:2] == ["/dev/pts/0", "all"] and got.lines()[3] == "pts/0", str(got)


@test
def a_terminal_of_its_own_takes_input_and_size(box):
    _, words = box.words(["--tty", "--stdin"], ["sh", "-c", "stty size; read x; echo got $x"])
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(words[0], words, box.env)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    os.write(master, b"word\n")
    said = b""
    while b"got word" not in said:
        said += os.read(master, 4096)
    os.waitpid(pid, 0)
    os.close(master)


# --- R4: mounts -----------------------------------------------------------------------------------

@test
def a_run_sees_what_it_was_shown(box):
    got = set(box.sh("ls /").ends(0).lines())
    assert got <= {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin",
                   "tmp", "usr", "var", "srv", "nix", "gnu"}, got
    assert set(box.sh("ls /dev").ends(0).lines()) == DEVICES
    assert box.sh(f"ls -A /tmp /var/tmp; ls {box.top}").ends(2)


@test
def no_mount_can_hold_a_device_or_a_setuid_program(box):
    lines = [line.split() for line in box.sh("cat /proc/self/mountinfo").ends(0).lines()]
    for line in lines:
        options = line[5].split(",")
        assert "nosuid" in options, line
        assert "nodev" in options or line[4].startswith("/dev/"), line
        shown = line[4]
        writable = shown in (INSIDE, "/tmp", "/var/tmp", "/proc") or shown.startswith("/dev/")
        assert ("rw" in options) == writable, line
    points = [line[4] for line in lines]
    assert "/proc/sys" in points and "/" in points, points


@test
def what_is_shown_read_only_stays_so_with_all_below(box):
    shown = box.top / "shown"
    (shown / "below").mkdir(parents=True)
    (shown / "file").write_text("old\n")
    if is_root():
        subprocess.run(["mount", "-t", "tmpfs", "none", shown / "below"], check=True)
        os.chown(shown, 524288, 524288)  # the run owns it, and still cannot
    try:
        act = "echo x > file; echo x > new; echo x > below/new; rm -f file; mkdir below/d"
        got = box.sh(f"cd /shown && {act}; ls", options=["--ro", f"{shown}:/shown"]).ends(0)
        assert got.lines() == ["below", "file"] and got.err.count(b"Read-only") == 5, str(got)
        box.outside("sh", "-c", f"cd {shown} && echo x > below/new")
        assert (shown / "below" / "new").exists()  # the control
    finally:
        if is_root():
            subprocess.run(["umount", shown / "below"], check=True)


@test
def what_is_hidden_is_empty_and_closed(box):
    (box.project / "dir").mkdir()
    (box.project / "dir" / "inner").write_text("secret\n")
    (box.project / "file").write_text("secret\n")
    hide = [w for n in ("dir", "file", "missing") for w in ("--hide", f"{INSIDE}/{n}")]
    got = box.sh("cat dir/inner file; chmod 777 dir file; ls dir; rm file; umount file", options=hide)
    assert b"secret" not in got.out + got.err, str(got)
    assert (box.project / "file").read_text() == "secret\n"  # the control


@test
def symlinks_lead_nowhere_but_inside(box):
    secret = box.top / "secret"
    secret.write_text("of the host\n")
    (box.project / "link").symlink_to(secret)
    (box.project / "up").symlink_to("../../../../../../" + str(secret).lstrip("/"))
    assert box.outside("cat", "link", "up").stdout == b"of the host\n" * 2
    got = box.sh("cat link up")
    assert got.out == b"" and got.err.count(b"No such file") == 2, str(got)


@test
def a_source_with_a_symlink_in_it_is_refused(box):
    (box.top / "way").symlink_to(box.project)
    box.sh("true", options=["--ro", f"{box.top}/way:/way"]).refused("symlink", "/way")
    box.sh("true", options=["--ro", f"{box.top}/way/attempts:/way"]).refused("symlink")
    box.sh("true", options=["--ro", f"{box.top}/gone:/way"]).refused("/gone", "No such file")


@test
def a_target_behind_a_symlink_is_refused(box):
    """A symlink that an earlier run left must not turn a mount to elsewhere."""
    (box.project / "out").symlink_to("/etc")
    got = box.sh("true", options=["--ro", f"{box.project}:{INSIDE}/out/here"])
    got.refused(f"{INSIDE}/out/here")


@test
def a_fresh_folder_ends_with_its_run(box):
    opts = ["--fresh", "/home/someone"]
    assert box.sh("touch /home/someone/x /tmp/x /var/tmp/x /dev/shm/x; ls /home/someone /tmp /dev/shm",
                  options=opts).ends(0).lines().count("x") == 3
    got = box.sh("ls -A /home/someone /tmp /var/tmp /dev/shm", options=opts).ends(0)
    assert "x" not in got.lines(), str(got)


@test
def a_fresh_folder_never_is_one_of_the_host(box):
    """A home in /opt, say, is there already when it is to be made."""
    sub = box.project / "sub"
    sub.mkdir()
    (sub / "mine").write_text("mine")
    sub.chmod(0o700)
    opts = ["--ro", f"{box.project}:/data", "--fresh", "/data/sub"]
    got = box.sh("ls -A /data/sub; touch /data/sub/x && echo written", options=opts).ends(0)
    assert got.lines() == ["written"], str(got)
    assert [p.name for p in sub.iterdir()] == ["mine"] and sub.stat().st_mode & 0o777 == 0o700


@test
def fresh_folders_have_a_size(box):
    got = box.sh("head -c 4M /dev/zero > /tmp/x || echo full; head -c 4M /dev/zero > x && echo fits",
                 options=["--tmp", "1M"]).ends(0)
    assert got.lines() == ["full", "fits"], str(got)


@test
def nothing_is_mounted_at_proc_dev_or_the_root(box):
    for place in ("/", "/proc/x", "/dev/shm/x", "/sys", "/a/../b", "a"):
        box.sh("true", options=["--ro", f"{box.project}:{place}"]).refused("mount")


@test
def proc_has_the_processes_of_the_run_only(box):
    got = box.sh("ls /proc | grep -E '^[0-9]+$'; readlink /proc/self").ends(0).lines()
    assert "1" not in got and all(int(n) < 100 for n in got), got
    assert str(os.getpid()) in os.listdir("/proc")  # the control


# --- the rest --------------------------------------------------------------------------------------

@test
def a_run_has_a_name_queues_and_loopback_of_its_own(box):
    got = box.sh("hostname; ls /sys 2>&1; cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '",
                 options=["--hostname", "inside"]).ends(0).lines()
    assert got[0] == "inside" and got[2:] == ["lo"], got
    server = ("import socket, os; s = socket.create_server(('127.0.0.1', 0)); "
              "c = socket.create_connection(s.getsockname()); print('loopback')")
    assert box.python(server).ends(0).lines() == ["loopback"]


@test
def a_text_of_ours_stands_in_a_file_that_nobody_changes(box):
    (box.project / "covered").write_text("of the project")
    got = box.sh(f"cat /new/file {INSIDE}/covered; ls -A /; echo x > /new/file; echo x > covered; "
                 f"rm covered", options=["--text", "ours:/new/file",
                                         "--text", f"too:{INSIDE}/covered"])
    assert got.out.startswith(b"ourstoo") and b".text" not in got.out, str(got)
    assert got.err.count(b"Read-only file system") == 2 and b"busy" in got.err, str(got)
    assert (box.project / "covered").read_text() == "of the project"
    box.run("true", options=["--text", f"x:{INSIDE}"]).refused("no file to mount on")


@test
def low_ports_of_its_loopback_are_opened_on_request(box):
    act = "import socket; socket.create_server(('127.0.0.1', 53))"
    box.python(act, options=["--net-helper"]).ends(0)
    if not is_root():  # the control: elsewhere they are not
        assert b"Permission" in box.outside("/usr/bin/python3", "-I", "-c", act).stderr
    assert b"Permission" in box.python(act).ends(1).err
    got = box.sh("cut -d: -f1 /proc/net/dev | tail -n +3", options=["--net-helper"])
    assert got.out.split() == [b"lo"] and "net" in got.report["walls"], str(got)


@test
def the_environment_is_exactly_what_was_given(box):
    got = box.run("env", options=["--env", "A=b"], system=True)
    assert set(got.ends(0).lines()) == {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "A=b"}, str(got)


@test
def the_walls_in_force_are_listed(box):
    walls = set(box.sh("true").ends(0).report["walls"])
    want = {"user", "mount", "pid", "net", "ipc", "uts", "cgroupns", "caps", "seccomp", "landlock",
            "rlimits"} | ({"idmap"} if is_root() else set())
    if is_root() or not os.getgroups():  # an ordinary user cannot drop those that it has
        want.add("groups")
    assert walls == want, walls
    assert "net" not in box.sh("true", options=["--net-host"]).ends(0).report["walls"]


@test
def input_comes_through_and_ends(box):
    with tempfile.TemporaryFile() as f:
        f.write(b"x" * 300000)
        f.seek(0)
        got = box.run("wc", "-c", options=["--stdin"], stdin=f).ends(0)
    assert got.lines() == ["300000"], str(got)
    assert box.run("cat").ends(0).out == b""
    # One that does not read all of it is no failure.
    got = box.run("true", options=["--stdin"], stdin=subprocess.DEVNULL).ends(0)


@test
def both_streams_come_out_apart(box):
    got = box.sh("echo out; echo err >&2; echo again > /dev/stdout; echo more > /dev/stderr").ends(0)
    assert got.out == b"out\nagain\n" and got.err == b"err\nmore\n", str(got)


@test
def the_command_s_own_end_is_told(box):
    assert box.sh("exit 7").ends(7).report["exit_code"] == 7
    got = box.sh("kill -SEGV $$").ends(139)
    assert got.report["signal"] == 11, got.report
    got = box.run("no-such-program").ends(127)
    assert got.report["exec_failed"] and b"'no-such-program': No such file" in got.err, str(got)
    (box.project / "plain").write_text("text\n")
    got = box.run("./plain").ends(126)
    assert got.report["exec_failed"] and b"Permission denied" in got.err, str(got)


@test
def ordinary_work_goes_on(box):
    script = """set -e
    git init -q . && git config user.email a@b && git config user.name n
    echo 'int main(void) { return 0; }' > main.c
    cc main.c -o main && ./main
    git add main.c && git commit -qm first && git log --oneline | wc -l
    python3 -I -c 'import subprocess, threading, multiprocessing, tempfile, sqlite3; print("python")'
    perl -e 'print "perl\\n"'
    mkfifo pipe; (echo through > pipe &) ; cat pipe
    ln main.c hard; ln -s main.c soft; mv hard sub 2>/dev/null; rm -rf .git"""
    got = box.sh(script, options=["--env", "HOME=/tmp"]).ends(0)
    assert got.lines() == ["1", "python", "perl", "through"], str(got)


@test
def orphans_are_reaped_and_end_with_the_command(box):
    got = box.sh("for i in 1 2 3; do (sleep 0.01 &) ; done; sleep 0.2; ps -A -o stat= | grep -c Z")
    assert got.lines() == ["0"], str(got)


if __name__ == "__main__":
    sys.exit(main())
