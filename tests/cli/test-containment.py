"""The containment table of docs/design/sandbox.md: how many attempts get through a whole `snap run`.

With the profiles default and strict, each without and with --root; as root, and with --user as an
ordinary user. It is printed row by row, and tools/containment prints it alone.
"""

import os
import shutil
import socket
import sys
from pathlib import Path

from roottest import plant  # first: the next one is found through it
import livetest
from livetest import live_test, note
from runtest import clone, run

# What profiles ask for by name cannot be had everywhere; what is missing is then said.
MISSING = ("--allow-missing", "memory", "--allow-missing", "cpu")
PYTHON = Path("/usr/bin/python3")
# What the list of a usual run allows: harmless by itself, of use to debuggers and runtimes.
OWN = "what helps an attack on the kernel, or hides a program"
ROWS = {  # of tests/sandbox/attempts.c
    "the init, through /proc/1 and by signals":
        "init_exe init_exe_link init_root init_cwd init_fd init_mem init_environ init_cmdline init_maps init_stop "
        "init_kill",
    "files of the host, the kernel's settings, /proc, /sys, devices":
        "shadow host_file core_pattern modprobe_path net_sysctl hostname_sysctl proc_kallsyms proc_kmsg proc_keys "
        "proc_timer_list proc_interrupts proc_slabinfo proc_pageflags sys dev_kmsg dev_fuse dev_console dev_loop "
        "dev_userfaultfd make_device pressure",
    "namespaces, mounts, roots, file handles":
        "open_by_handle chroot unshare_user unshare_time clone_user clone_user_net clone3_user setns mount umount "
        "pivot_root fsopen fspick open_tree move_mount mount_setattr",
    "other processes, keys, engines of the kernel":
        "attach seize vm_read getfd kcmp keyctl add_key request_key bpf perf userfaultfd io_uring vmsplice fanotify "
        "mbind move_pages migrate_pages set_mempolicy personality io_setup memfd_secret sched_core core_limit",
    "commanding the machine":
        "syslog acct swapon swapoff quotactl reboot kexec init_module delete_module sethostname setdomainname "
        "clock_set adjtimex",
    "families of sockets, the terminal, the host's sockets and processes":
        "vsock alg packet xdp raw_ip netlink_uevent netlink_netfilter netlink_audit push_input push_input_high "
        "console_tricks host_pid abstract port roots inherited host_socket fuse_clone",
    "modules of the kernel, loaded by asking for a protocol or a line discipline":
        "sctp sctp_packets dccp l2tp smc packet_old kernel_tls bridges bridges_old vlans line_discipline",
    "capabilities, set-id bits, leases, attributes of files":
        "bounding_set lease xattr_trusted xattr_security xattr_caps xattr_large setid_fchmod setid_group setid_fchmodat setid_fchmodat2 setid_old setid_openat "
        "setid_tmpfile setid_openat2 setid_mknodat setid_folder setid_mkdirat",
    OWN: "no_randomize trace_me memfd",
}
# `default` grants so much that filling it takes minutes; strict's own limits are tried as they are.
SMALLER = {"default": ("--disk", "1G", "--fsize", "256M", "--mem", "512M", "--pids", "128"), "strict": ()}
FILL = """
import os, sys, time
def tries(what, act):
    try: act()
    except (OSError, MemoryError): return
    print(what)
def file_of(size, path):
    with open(path, 'wb') as f: os.posix_fallocate(f.fileno(), 0, size)
def forks():
    for i in range(200):
        if os.fork() == 0: time.sleep(60); os._exit(0)
tries('a file', lambda: file_of(257 << 20, 'big'))
tries('/tmp', lambda: [file_of(200 << 20, f'/tmp/f{i}') for i in range(3)])
tries('the clone', lambda: [file_of(250 << 20, f'g{i}') for i in range(5)])
tries('processes', forks)
"""


# What a run with a root of its own may do in it, and why that opens nothing outside: docs/design/sandbox.md.
EMPTY = {"proc_kallsyms": "kallsyms", "proc_kmsg": "kmsg", "proc_keys": "keys", "proc_timer_list": "timer_list",
         "proc_interrupts": "interrupts", "proc_slabinfo": "slabinfo", "proc_pageflags": "kpageflags"}
SETID = "setid_fchmod setid_group setid_fchmodat setid_fchmodat2 setid_old setid_openat setid_tmpfile setid_openat2 " \
        "setid_mknodat setid_folder setid_mkdirat"
BY_DESIGN = {
    "root of it may change its root: the second one is in the first": "chroot",
    "set-id programs of the root become users of the run": SETID,
    "capabilities of files count in the run's own user namespace": "xattr_caps",
    "an empty file covers it, which root of the run can open": " ".join(EMPTY),
}


def attempted(w, profile, *root):
    """Which of the attempts get through: {name: whether}."""
    secret = w.top / "host-file"
    secret.write_text("of the host")
    name = f"snap-test-{os.getpid()}"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        abstract.bind("\0" + name)
        abstract.listen()
        host = {"HOST_PID": str(os.getpid()), "HOST_ABSTRACT": name, "HOST_FILE": str(secret),
                "HOST_PORT": str(tcp.getsockname()[1]), "HOST_SOCKET": str(w.store / "run" / "cowfsd.sock")}
        words = [word for pair in host.items() for word in ("--env", "=".join(pair))]
        got = run(w, *MISSING, "--profile", profile, *words, *root, "--", "./attempts")
    assert Path(host["HOST_SOCKET"]).is_socket(), host
    ends = dict(line.split() for line in got["stdout"].splitlines())
    return {name: int(code) in (0, 253, 254, 255) for name, code in ends.items()}


def in_mountinfo(w, profile, *root):
    """Which of the store, another clone and the host's path of the clone a run reads there."""
    got = run(w, *MISSING, "--profile", profile, *root, "--", "cat", "/proc/self/mountinfo", "/proc/self/mounts",
              "/proc/1/mountinfo", status=None)
    seen = got["stdout"].replace(str(w.project), "")
    assert " / " in seen, got
    # Mounts of the store's clones are below it.
    words = {"the store": str(w.store), "another clone": "neighbour", "the clone's path": "/clones/"}
    return {what for what, word in words.items() if word in seen}


def filled(w, profile, *root):
    got = run(w, *MISSING, "--profile", profile, *SMALLER[profile], *root, "--", PYTHON, "-I", "-c", FILL, status=None)
    assert got["limit"] is not None, ("it did try", got)
    return set(got["stdout"].splitlines())


def containment(w, profile, *root):
    """[(row, attempts, those that got through)]"""
    ends = attempted(w, profile, *root)
    rows = [(row, names.split()) for row, names in ROWS.items()]
    assert sorted(ends) == sorted(name for _, names in rows for name in names), "each is in one row"
    table = [(row, len(names), {n for n in names if ends[n]}) for row, names in rows]
    table.append(("the store, another clone, or the host's path of the clone, in mountinfo", 3,
                  in_mountinfo(w, profile, *root)))
    table.append(("more than was granted: a file, the clone, /tmp, processes", 4, filled(w, profile, *root)))
    return table


def root_words(w):
    """A root for it, beside the project, which is a clone at its place there: what is tried is tried in that, too."""
    top = plant(w.top / "root", PYTHON)
    (top / "usr/bin").mkdir()
    (top / "usr/bin/python3").symlink_to("/bin/python3")
    version = os.path.realpath(PYTHON).rsplit("python", 1)[1]
    w.take()
    return ["--root", "--allow-missing", "pids", "--ro", f"/usr/lib/python{version}", str(top)]


def show(tables):
    for rows in zip(*tables):
        note(f"| {rows[0][0]} | {rows[0][1]} | " + " | ".join(str(len(row[2])) for row in rows) + " |")
    note(f"| all | {sum(row[1] for row in tables[0])} | " +
         " | ".join(str(sum(len(row[2]) for row in table)) for table in tables) + " |")
    return [{row: got for row, _, got in table if got} for table in tables]


@live_test
def the_containment_table(w):
    shutil.copy(os.environ["SNAP_SANDBOX_ATTEMPTS"], w.project / "attempts")
    clone(w, "neighbour")
    through = show([containment(w, profile) for profile in ("default", "strict")])
    assert through == [{OWN: {"no_randomize", "trace_me", "memfd"}}, {}], through


@live_test
def the_containment_table_with_a_root_of_its_own(w):
    """Nothing more gets through, but for what is the root's own and reaches nothing outside of it."""
    shutil.copy(os.environ["SNAP_SANDBOX_ATTEMPTS"], w.project / "attempts")
    clone(w, "neighbour")
    root = root_words(w)
    tables = [containment(w, profile, *root) for profile in ("default", "strict")]
    mine = {name for names in BY_DESIGN.values() for name in names.split()}
    seen = set().union(*(got for table in tables for _, _, got in table))
    through = show([[(row, tried, got - mine) for row, tried, got in table] for table in tables])
    assert through == [{OWN: {"no_randomize", "trace_me", "memfd"}}, {}], through
    assert seen >= mine, f"no difference any more: {mine - seen}"
    # What was covered has nothing in it, and the top of the root has the limits that the project's clone has.
    for profile in ("default", "strict"):
        read = run(w, *MISSING, "--profile", profile, *root, "--", "sh", "-c",
                   "".join(f"wc -c < /proc/{name};" for name in EMPTY.values()))["stdout"].split()
        assert read == ["0"] * len(EMPTY), read
        assert not filled(w, profile, "-w", "/", *root), profile


if __name__ == "__main__":
    sys.exit(livetest.main())
