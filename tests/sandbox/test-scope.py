#!/usr/bin/env python3
"""Scopes from a real systemd: a manager that is started for the test, in namespaces of its own.

It has cgroup version 2 for itself, with whatever controllers this machine has left there: that the
limits hold is for a machine that runs on version 2 (tools/guest).
"""

import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sandboxtest import Skip, is_root, main, note, test  # noqa: E402

ASK = os.environ["SNAP_SCOPE_ASK"]
SYSTEMD = next((p for p in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")
                if os.path.exists(p)), None)
# The manager of a user, in the place where root looks for that of the system.
BEGIN = r"""
group=$1 runtime=$2 log=$3; shift 3
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
export XDG_RUNTIME_DIR=/run/mine HOME="$runtime"
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


def with_manager(box, *command):
    if not is_root():
        raise Skip("a manager of its own takes root")
    if not SYSTEMD or not shutil.which("unshare"):
        raise Skip("systemd is not installed here")
    log = box.top / "systemd.log"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", BEGIN, "sh", f"snap-test-{os.getpid()}", box.top, log,
         *command],
        env={**box.env, "SYSTEMD": SYSTEMD, "SYSTEMD_LOG_TARGET": "console"}, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180)
    if done.returncode == 77:
        raise Skip(f"no manager can be started here: {done.stderr.decode()[-200:]!r}")
    return done


@test
def a_process_gets_a_scope_of_its_own_and_nothing_stays(box):
    act = ('"$1" 5 || exit; left() { find /sys/fs/cgroup -name "snap-run-test*"; }; '
           'for i in $(seq 600); do [ -n "$(left)" ] || exit 0; sleep 0.05; done; left; exit 1')
    done = with_manager(box, "sh", "-c", act, "sh", ASK)
    assert done.returncode == 0, done
    lines = [line.rsplit(" ", 2) for line in done.stdout.decode().splitlines()]
    assert len(lines) == 5 and len({group for group, _, _ in lines}) == 5, lines
    for group, kind, _ in lines:
        assert Path(group).name.startswith("snap-run-test-") and group.endswith(".scope"), lines
        assert kind == "domain", lines
    took = statistics.median(int(us) for _, _, us in lines)
    note(f"a scope took {took / 1000:.1f} ms from the first connection on (median of 5)")


if __name__ == "__main__":
    sys.exit(main())
