"""The situations in which the program is probed, and how each is entered.

Shared by both sides: the host lists them, the guest enters them. `enter` is put in front of the
probe's command line by root, who is a system service in the guest; with `login` it is put there by
the shell of a getty login of that user.
"""

from dataclasses import dataclass, field

UID = {"root": 0, "u": 1000, "v": 1001}
CONTAINER_TMP = "/var/tmp/guest"  # on the guest's disk


@dataclass
class Situation:
    name: str
    what: str
    user: str
    enter: list = field(default_factory=list)
    login: str = ""  # whose terminal, if it begins with a login
    tests: bool = False  # --tests runs the test programs here, too
    measured: bool = False  # the cost of a run is measured here
    container: bool = False
    fuse: bool = True
    refusal: str = ""  # no run can start here: an expression for the documented message
    manager: bool = True  # a systemd that this user can ask for a scope
    unit: bool = False  # cowfsd is started by the socket that is installed


def _service(*more):
    return ["systemd-run", "-q", "--wait", "--pipe", "--collect", *more]


def _user_service(*more):
    return ["runuser", "-u", "u", "--", "env", "-C", "/home/u", "HOME=/home/u", "USER=u",
            "XDG_RUNTIME_DIR=/run/user/1000", "systemd-run", "--user", "-q", "--wait", "--pipe", "--collect", *more]


def _container(*more):
    # The system's own files below a layer of their own: nothing to install a second time. They are at /mnt,
    # too, because nspawn refuses "/". It covers parts of /proc, so no run can start. The tests make their projects
    # in /tmp, which would be a tmpfs: Linux 6.1 can neither map it for root's runs nor keep attributes of users there.
    return ["systemd-nspawn", "-q", "--directory=/mnt", "--volatile=overlay", "--register=no", "--as-pid2",
            "--bind=/run/guest", f"--bind={CONTAINER_TMP}:/tmp", *more]


_DELEGATE = ["-p", "Delegate=yes"]
# Root of the container may take the covers off again.
_UNCOVER = ["sh", "-c", "for i in 1 2 3; do while read -r _ at _; do case $at in /proc/*) umount -l $at;; esac; done "
            "</proc/self/mounts; done; exec \"$@\"", "sh"]
# As far as 252, systemd-nspawn's filter does not know these calls.
_LANDLOCK = ["--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self"]
_FUSE = ["--bind=/dev/fuse", "--property=DeviceAllow=/dev/fuse rwm"]
# systemd-nspawn has given every container the device since version 257.
_NO_FUSE = ["sh", "-c", "umount -l /dev/fuse 2>/dev/null; rm -f /dev/fuse; exec \"$@\"", "sh"]

ALL = [
    Situation("root-service", "root, system service", "root", _service(), tests=True, measured=True),
    Situation("root-service-delegate", "root, system service with Delegate=yes", "root", _service(*_DELEGATE)),
    Situation("root-scope", "root, transient scope", "root", ["systemd-run", "-q", "--scope"]),
    Situation("root-scope-delegate", "root, transient scope with Delegate=yes", "root",
              ["systemd-run", "-q", "--scope", *_DELEGATE]),
    Situation("root-login", "root, login", "root", login="root", tests=True),
    Situation("sudo", "root, sudo in a user's login", "root", ["sudo"], login="u"),
    Situation("user-login", "user, login", "u", login="u", tests=True, measured=True),
    Situation("user-unit", "user, login, with snapcow.socket started", "u", login="u", unit=True),
    Situation("user-su", "user, su -l by root", "u", ["su", "-l", "u", "-c"]),
    Situation("user-scope", "user, systemd-run --user --scope", "u", ["systemd-run", "--user", "-q", "--scope"],
              login="u", tests=True),
    Situation("user-scope-delegate", "user, systemd-run --user --scope with Delegate=yes", "u",
              ["systemd-run", "--user", "-q", "--scope", *_DELEGATE], login="u"),
    Situation("user-service", "user, service of the user's manager", "u", _user_service()),
    Situation("user-service-delegate", "user, service of the user's manager with Delegate=yes", "u",
              _user_service(*_DELEGATE)),
    Situation("user-system-service", "user, system service with User=", "u", _service("--uid=u")),
    Situation("user-system-service-delegate", "user, system service with User= and Delegate=yes", "u",
              _service("--uid=u", *_DELEGATE)),
    Situation("user-alone", "user without a manager, system service with User=", "v", _service("--uid=v"),
              manager=False),
    Situation("container-fuse", "root, container with /dev/fuse", "root", _container(*_FUSE), container=True,
              manager=False, refusal="the /proc here has parts covered|a filter of system calls refuses Landlock"),
    Situation("container-whole", "root, container with /dev/fuse, a whole /proc and Landlock", "root",
              [*_container(*_FUSE, *_LANDLOCK), *_UNCOVER], container=True, manager=False, tests=True),
    Situation("container", "root, container without /dev/fuse, with a whole /proc", "root",
              [*_container(*_LANDLOCK), *_UNCOVER, *_NO_FUSE], container=True,
              manager=False, fuse=False, refusal="/dev/fuse", tests=True),
]
BY_NAME = {s.name: s for s in ALL}
