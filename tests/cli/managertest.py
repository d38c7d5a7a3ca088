"""A systemd that is started for a test, in namespaces of its own.

It has cgroup version 2 for itself, with whatever controllers this machine has left there.
"""

import os
import shutil
import subprocess

from snaptest import Skip

SYSTEMD = next((p for p in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
                if os.path.exists(p)), None)
# The manager of a user, in the place where root looks for that of the system.
BEGIN = r"""
group=$1 home=$2 log=$3; shift 3
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup || exit 77
mkdir "/sys/fs/cgroup/$group" || exit 77
end() { # the manager first, then its groups
    [ -z "$manager" ] || kill "$manager" 2>/dev/null
    wait
    echo $$ >/sys/fs/cgroup/cgroup.procs
    find "/sys/fs/cgroup/$group" -depth -type d -exec rmdir {} \;
}
manager=
trap end EXIT
echo $$ >"/sys/fs/cgroup/$group/cgroup.procs" || exit 77
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/mine
chmod 700 /run/mine
export XDG_RUNTIME_DIR=/run/mine HOME="$home"
"$SYSTEMD" --user --unit=basic.target >"$log" 2>&1 &
manager=$!
for i in $(seq 600); do
    [ ! -S /run/mine/systemd/private ] || break
    kill -0 "$manager" 2>/dev/null || exit 77
    sleep 0.05
done
ln -s /run/mine/systemd/private /run/systemd/private
"$@"
"""


def with_manager(world, home, *command):
    """Run a command that can ask such a manager; its home is where the manager looks for units."""
    if os.geteuid() != 0:
        raise Skip("a manager of its own takes root")
    if not SYSTEMD or not shutil.which("unshare"):
        raise Skip("systemd is not installed here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", BEGIN, "sh", f"snap-test-{os.getpid()}", home,
         world.top / "systemd.log", *command],
        env={**world.env, "SYSTEMD": SYSTEMD, "SYSTEMD_LOG_TARGET": "console"}, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180)
    if done.returncode == 77:
        raise Skip(f"no manager can be started here: {done.stderr.decode()[-200:]!r}")
    return done
