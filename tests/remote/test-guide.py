#!/usr/bin/env python3
"""docs/guide/teams.md: a registry, a queue and two workers, as somebody would type them."""

import sys

import remotetest
from natstest import needs
from pagetest import type_page
from servers import free_port
from snaptest import SNAP, main, needs_fuse, test

VARY = ((r"\b(one|two)\b", "WORKER"), (r"^[ab]: ", None), (r"[\d.]+ (B|KiB)", "SIZE"),
        (r"\S+@\S+", "WHO"), (r" +$", ""), (r"  #+", "  BAR"),
        # One worker may take all tickets, and the other one needs no cowfsd then.
        (r"^cowfsd (stopped, process \w+|was not running)$", "cowfsd ended"))


@test
def a_registry_a_queue_and_two_workers_as_the_guide_has_them(w):
    needs_fuse()
    needs()
    remotetest.needs()
    type_page(w, "teams", "/tmp/team", section="Try it on one machine", least=17, vary=VARY,
              # `snap` is a function there, and a job that is one is another process.
              instead=[("5000", str(free_port())), ("4222", str(free_port())), ("snap worker --queue", f"{SNAP} worker --queue")])


if __name__ == "__main__":
    sys.exit(main())
