#!/usr/bin/env python3
"""Dozens of things a run must not be able to do, each tried inside and outside."""

import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandboxtest import (  # noqa: E402
    EACCES, ENOENT, ENOSYS, EPERM, SETID, main, note, parse_attempts, test)

EAFNOSUPPORT, ESRCH, ECONNREFUSED, E2BIG, ENOTTY = 97, 3, 111, 7, 25
HIDDEN = {ENOENT}
CLOSED = {EACCES}

# How each ends inside. Those that only root may do outside are in ROOT_ONLY.
FAMILIES = {
    "the_init_is_out_of_reach": {
        name: HIDDEN for name in ("init_exe", "init_exe_link", "init_root", "init_cwd", "init_fd",
                                  "init_mem", "init_environ", "init_cmdline", "init_maps")},
    "secrets_of_the_host_are_not_there": {"shadow": CLOSED, "host_file": HIDDEN},
    "the_kernel_s_settings_are_closed": {
        name: CLOSED for name in ("core_pattern", "net_sysctl", "hostname_sysctl",
                                  "proc_kallsyms", "proc_kmsg", "proc_keys", "proc_timer_list",
                                  "proc_interrupts", "proc_slabinfo")}
        | {"pressure": CLOSED | HIDDEN},  # not every kernel has it
    "there_are_no_devices_but_harmless_ones": {
        **{name: HIDDEN for name in ("sys", "dev_kmsg", "dev_fuse", "dev_console", "dev_loop",
                                     "dev_userfaultfd")},
        "make_device": {EPERM}},
    "there_are_no_further_namespaces": {
        **{name: {EPERM} for name in ("unshare_user", "unshare_time", "clone_user",
                                      "clone_user_net", "setns")},
        "clone3_user": {ENOSYS}},
    "nothing_can_be_mounted": {
        name: {EPERM} for name in ("mount", "umount", "pivot_root", "chroot", "fsopen", "fspick",
                                   "open_tree", "move_mount", "mount_setattr",
                                   "open_by_handle")},
    "other_processes_cannot_be_entered": {
        name: {EPERM} for name in ("attach", "seize", "vm_read", "getfd", "kcmp")},
    "keys_are_not_for_runs": {name: {EPERM} for name in ("keyctl", "add_key", "request_key")},
    "the_kernel_s_engines_are_closed": {
        name: {EPERM} for name in ("bpf", "perf", "userfaultfd", "io_uring", "vmsplice",
                                   "fanotify", "mbind", "move_pages", "migrate_pages",
                                   "set_mempolicy", "personality", "sched_core", "kernel_tls",
                                   "core_limit")}
        | {name: {ENOSYS} for name in ("io_setup", "memfd_secret")},
    "no_module_of_the_kernel_is_loaded_by_asking": {
        **{name: {EAFNOSUPPORT} for name in ("sctp", "sctp_packets", "dccp", "l2tp", "smc", "packet_old")},
        **{name: {EPERM} for name in ("bridges", "bridges_old", "vlans", "line_discipline")}},
    "attributes_of_files_are_not_the_kernel_s": {
        **{name: {EPERM} for name in ("xattr_trusted", "xattr_security", "xattr_caps")},
        "xattr_large": {E2BIG}},
    "the_machine_cannot_be_commanded": {
        name: {EPERM} for name in ("syslog", "acct", "swapon", "swapoff", "quotactl", "reboot",
                                   "sethostname", "setdomainname", "clock_set", "adjtimex")},
    "only_listed_families_of_sockets_exist": {
        **{name: {EAFNOSUPPORT} for name in ("vsock", "packet", "netlink_uevent",
                                             "netlink_netfilter", "netlink_audit")},
        "raw_ip": {EPERM}},
    "a_terminal_takes_no_pushed_input": {
        name: {EPERM} for name in ("push_input", "push_input_high", "console_tricks")},
    "the_host_s_processes_and_sockets_are_not_there": {
        **{name: HIDDEN for name in ("roots", "inherited", "host_socket")},
        "host_pid": {ESRCH}, "fuse_clone": {ENOTTY}, "abstract": {ECONNREFUSED, EPERM}, "port": {ECONNREFUSED}},
    "nobody_outside_waits_for_a_lease": {"lease": {EPERM}},
    "no_capability_can_come_back": {"bounding_set": {EPERM}},
    "nothing_becomes_set_id": {
        **{name: {EPERM} for name in SETID},
        "setid_openat2": {ENOSYS}},
}

# Not even tried outside, where they would do harm or the kernel here lacks them.
NO_CONTROL = {"modprobe_path", "proc_pageflags", "kexec", "init_module", "delete_module", "alg",
              "xdp", "init_stop", "init_kill", "memfd_secret", "sched_core"}

# Where the control is one of the weaker sandboxes rather than the host itself.
IN_WEAK_SANDBOX = {"init_exe", "init_exe_link", "init_root", "init_cwd", "init_fd", "init_mem",
                   "init_environ", "init_cmdline", "init_maps"}

ROOT_ONLY = {"shadow", "core_pattern", "net_sysctl", "hostname_sysctl", "proc_kmsg",
             "proc_timer_list", "proc_slabinfo", "dev_kmsg", "dev_fuse", "dev_console", "dev_loop",
             "dev_userfaultfd", "make_device", "unshare_time", "setns", "mount", "umount",
             "pivot_root", "chroot", "fsopen", "fspick", "open_tree", "move_mount",
             "mount_setattr", "open_by_handle", "bpf", "perf", "userfaultfd", "fanotify",
             "syslog", "acct", "swapon", "swapoff", "quotactl", "reboot", "sethostname",
             "setdomainname", "clock_set", "adjtimex", "packet", "netlink_netfilter",
             "netlink_audit", "raw_ip", "push_input", "push_input_high", "bounding_set",
             "proc_keys", "host_pid", "packet_old", "bridges", "bridges_old", "vlans", "roots",
             "xattr_trusted", "xattr_security", "xattr_caps"}


class Host:
    """Something outside that could be reached: a process, two sockets, a file."""

    def __init__(self, box):
        self.file = box.top / "host-file"
        self.file.write_text("of the host\n")
        self.abstract = socket.socket(socket.AF_UNIX)
        name = f"snap-attempt-{os.getpid()}"
        self.abstract.bind("\0" + name)
        self.abstract.listen()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(box.top / "host-socket"))
        self.socket.listen()
        self.tcp = socket.socket()
        self.tcp.bind(("127.0.0.1", 0))
        self.tcp.listen()
        self.vars = {"HOST_PID": str(os.getpid()), "HOST_ABSTRACT": name,
                     "HOST_PORT": str(self.tcp.getsockname()[1]), "HOST_FILE": str(self.file),
                     "HOST_SOCKET": str(box.top / "host-socket")}

    def options(self):
        return [word for k, v in self.vars.items() for word in ("--env", f"{k}={v}")]


def control(box, host, names):
    """How they end outside: all must get through, or fail for another reason than permission."""
    weak = [n for n in names if n in IN_WEAK_SANDBOX]
    plain = [n for n in names if n not in IN_WEAK_SANDBOX | NO_CONTROL
             and (os.geteuid() == 0 or n not in ROOT_ONLY)]
    env = {**os.environ, **host.vars}
    got = {}
    if weak:
        done = box.outside("unshare", "-Urmpf", "--mount-proc", "./attempts", *weak, env=env)
        got.update(parse_attempts(done.stdout.decode()))
    if plain:
        # What it mounts is to be gone with it.
        own = ["unshare", "-m"] if os.geteuid() == 0 else []
        done = box.outside(*own, "./attempts", *plain, env=env)
        got.update(parse_attempts(done.stdout.decode()))
    assert set(got) == set(weak + plain), got
    stopped = {n: c for n, c in got.items() if c in (EPERM, ENOSYS, EACCES)}
    assert not stopped, f"the control itself was stopped: {stopped}"
    return got


def family(title, wanted):
    def run(box):
        host = Host(box)
        names = list(wanted)
        control(box, host, names)
        got = parse_attempts(box.run("./attempts", *names,
                                     options=host.options()).ends(0).out.decode())
        assert set(got) == set(names), got
        open_ = {n: got[n] for n in names if got[n] not in wanted[n]}
        assert not open_, f"not as it should be: {open_}"
    run.__name__ = title
    return test(run)


for title, wanted in FAMILIES.items():
    family(title, wanted)


@test
def what_is_refused_is_told_and_refused_all_the_same(box):
    host = Host(box)
    plain = box.run("./attempts", options=[*host.options(), "--untold"]).ends(0)
    told = box.run("./attempts", options=host.options()).ends(0)
    assert plain.report["refused"] == "" and len(told.report["refused"].split()) > 30, str(told)
    seen = {word.partition("(")[0] for word in told.report["refused"].split()}
    assert {"mount", "keyctl", "bpf", "unshare", "socket", "ptrace"} <= seen, seen
    assert "clone3" not in seen, "what libc only tries is not worth a word"
    # A process id is another one each time.
    differ = {n for n, c in parse_attempts(told.out.decode()).items()
              if parse_attempts(plain.out.decode())[n] != c}
    assert not differ, differ


@test
def where_somebody_listens_already_the_list_is_the_same(box):
    host = Host(box)
    heard = ["--lack", "acct=heard", *host.options()]
    plain = box.run("./attempts", options=[*host.options(), "--untold"]).ends(0)
    got = box.run("./attempts", options=heard).ends(0)
    assert got.report["refused"] == "" and "seccomp" in got.report["walls"], str(got)
    assert parse_attempts(got.out.decode()) == parse_attempts(plain.out.decode()), str(got)


@test
def after_a_thousand_refusals_the_answer_is_the_same(box):
    act = ("import ctypes, collections\nlibc = ctypes.CDLL(None, use_errno=True)\n"
           "seen = collections.Counter()\n"
           "for i in range(1500):\n"
           "    assert libc.mount(0, 0, 0, 0, 0) == -1\n"
           "    seen[ctypes.get_errno()] += 1\n"
           "print(dict(seen))")
    got = box.python(act).ends(0)
    assert eval(got.out) == {EPERM: 1500}, str(got)
    assert eval(box.python(act, options=["--untold"]).ends(0).out) == {EPERM: 1500}


@test
def each_wall_hides_the_init_alone(box):
    """Landlock keeps a run from looking into it; so does its not being dumpable."""
    names = list(FAMILIES["the_init_is_out_of_reach"])
    host = Host(box)
    control(box, host, names)
    got = parse_attempts(box.run("./attempts", *names, options=[
        "--lack", "landlock_create_ruleset", "--allow-missing", "landlock"]).ends(0).out.decode())
    assert set(got.values()) == HIDDEN, got


# What the list of a usual run allows and that of a strict one refuses: harmless by itself, of use
# to debuggers, and to programs that attack the kernel or hide another program.
ALLOWED = {"no_randomize", "trace_me", "memfd"}


@test
def nothing_that_the_program_knows_gets_through(box):
    host = Host(box)
    for options, allowed in ((), ALLOWED), (("--strict",), set()):
        got = parse_attempts(box.run("./attempts", options=[*options, *host.options()])
                             .ends(0).out.decode())
        assert len(got) > 80, got
        through = {n for n, c in got.items() if c in (0, 253, 254, 255)}
        note(f"{len(got)} attempts {' '.join(options)}: {len(through)} got through")
        assert through == allowed, through
    assert {got[n] for n in ALLOWED} == {EPERM}, got


@test
def the_network_of_the_host_does_not_open_its_abstract_sockets(box):
    host = Host(box)
    got = parse_attempts(box.run("./attempts", "abstract", "port", "host_pid",
                                 options=["--net-host", *host.options()]).ends(0).out.decode())
    # Its ports are what was asked for; the abstract names are Landlock's to close.
    assert got["port"] == 0 and got["abstract"] == EPERM and got["host_pid"] == ESRCH, got


@test
def a_run_s_own_binary_is_not_ours(box):
    """The trick of CVE-2019-5736: a script whose interpreter is who execs it."""
    script = box.project / "trick"
    script.write_text("#!/proc/self/exe\n")
    script.chmod(0o755)
    # A shell that becomes itself again finds only a comment to obey.
    done = box.outside("sh", "-c", "exec ./trick")
    assert done.returncode == 0, done
    got = box.run("./trick")
    assert got.report["exec_failed"] and got.status == 126, str(got)
    assert b"Permission denied" in got.err, str(got)


if __name__ == "__main__":
    sys.exit(main())
