"""pull into a project with nothing in it: killed, or out of room, it is finished or taken back."""

import os
import random
import signal
import subprocess
import time

from depots import Other, depot
from promotetest import picture, same
from snaptest import SNAP, Skip, World, main, test


def furnish(top, folders=60):
    """New directories within each other, with files that have other names elsewhere."""
    dice = random.Random(11)
    for i in range(folders):
        path = top / f"dir{i % 5}" / f"sub{i}" / "deep"
        path.mkdir(parents=True)
        for n in range(8):
            (path / f"file{n}").write_bytes(dice.randbytes(dice.randrange(1, 9000)))
        (path / "link").symlink_to("file1")
        os.link(path / "file2", top / f"dir{(i + 1) % 5}.{i}")
    (top / "dir0" / "sub0").chmod(0o555)
    (top / "dir1").chmod(0o755)
    os.utime(top / "dir2" / "sub2", ns=(1, 1_234_567_890_123_456_789))


def stages(o):
    return [name for name in os.listdir(o.project) if name.startswith(".snapcow-stage-")]


def killed_while_it_writes(o, after):
    """Kill cowfsd so many seconds after the project has a stage; False if it had ended by then."""
    o.ok("snapshot", "--json")
    pid = o.ok("version", "--json").json("snap.version/1")["daemon"]["pid"]
    with subprocess.Popen([SNAP, "-q", "pull", depot(o.world)], cwd=o.project,
                          env={**o.world.env, "SNAPCOW_STORE": str(o.store)},
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while p.poll() is None and not stages(o):
            pass
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
        return p.wait(60) != 0


@test
def a_pull_that_is_killed_is_finished_or_taken_back(w: World):
    furnish(w.project)
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    o.ok("init")
    nothing, all_of_it = picture(o.project), picture(w.project)
    died = 0
    for i in range(12):
        died += killed_while_it_writes(o, i * 0.008)
        o.ok("status")  # whoever comes next ends it
        now = picture(o.project)
        assert now in (nothing, all_of_it) and not stages(o), i
        if now == all_of_it:
            o.ok("undo")
            same(picture(o.project), nothing)
    assert died > 2, died
    o.ok("pull", depot(w))
    same(picture(o.project), all_of_it)
    assert "no damage" in o.ok("check").out.decode()
    o.end()


@test
def a_pull_into_a_full_disk_is_taken_back_and_succeeds_with_more_room(w: World):
    if os.geteuid() != 0:
        raise Skip("mounting a small file system needs root")
    furnish(w.project)
    w.ok("init")
    w.ok("push", depot(w))
    o = Other(w)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", o.project], check=False,
                      capture_output=True).returncode:
        raise Skip("no file system can be mounted here")
    try:
        o.ok("init")
        nothing = picture(o.project)
        o.snap("pull", depot(w)).fails(1, "is as it was, for lack of room for the change", "No space left on device")
        same(picture(o.project), nothing)
        assert "no damage" in o.ok("check").out.decode()
        subprocess.run(["mount", "-o", "remount,size=64m", o.project], check=True)
        o.ok("pull", depot(w))
        assert (o.project / "dir4" / "sub4" / "deep" / "link").is_symlink()
        o.ok("undo")
        same(picture(o.project), nothing)
        o.end()
    finally:
        subprocess.run(["umount", "-l", o.project], check=True)


main()
