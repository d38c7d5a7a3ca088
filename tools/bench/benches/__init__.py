"""What is measured: groups of parts, each part a function that adds its rows to a session."""

from benches import (agents, experiment, first_clone, fs_large, fs_read, fs_write, git, growth, neighbour, remote, root, runs,
                     scaling, see, states, store, tickets, watch)
from place import BARE, BINDFS, EXT4, FUSE_OVERLAY, OVERLAY


class Group:
    """Parts that share a disk, and the contestants that have a column of their own.

    `named`: it runs only if somebody names it or one of its parts.
    """

    def __init__(self, title, parts, columns=(), named=False):
        self.title, self.parts, self.columns, self.named = title, parts, columns, named


GROUPS = {
    "store": Group("The store", store.PARTS),
    "snapshot": Group("States", states.PARTS),
    "fs": Group("A clone as a place to work in",
                {**fs_read.PARTS, **fs_write.PARTS, **fs_large.PARTS},
                [EXT4, OVERLAY, FUSE_OVERLAY, BINDFS, BARE]),
    "run-start": Group("Runs", runs.PARTS, [runs.EXEC, runs.UNSHARE, runs.BUBBLEWRAP]),
    "experiment": Group("Experiments", experiment.PARTS, [experiment.COPY, experiment.WORKTREE, experiment.EXT4],
                        named=True),
    "first-clone": Group("The first clone of a tree", first_clone.PARTS,
                         [first_clone.WALK, first_clone.COPY, first_clone.REFLINK, first_clone.OVERLAY,
                          first_clone.CAPTURE], named=True),
    "git-status": Group("git in a clone", git.PARTS, [git.EXT4], named=True),
    "see": Group("Metrics", see.METRICS),
    "history": Group("Histories", see.BLAME, named=True),
    "mcp": Group("Agents", agents.PARTS),
    "watch": Group("Watch", watch.PARTS, named=True),
    "remote": Group("Other machines", {**remote.PARTS, **tickets.PARTS, **scaling.PARTS},
                    [remote.TAR, remote.RSYNC, remote.RESTIC, remote.CASYNC, tickets.SSH, scaling.XARGS], named=True),
    "root": Group("Root clones", root.PARTS, [root.CHROOT, root.COPY], named=True),
    "growth": Group("Growth", growth.PARTS),
    "neighbour": Group("A hostile neighbour", neighbour.PARTS, [neighbour.HONEST],
                       named=True),
}
