"""Commands that need nothing but the processor, as arms of an experiment on one worker and on two.

A worker runs one ticket at a time, so two workers can be twice as fast where two processors are free.
`xargs -P` runs the same commands without snap, one and two at once: what this machine can give.
"""

import os
import shutil

from arena import run, timed
from fleet import Fleet
from row import OURS, at_least

ARMS, ROUNDS = 8, 3
XARGS = "xargs -P"
QUEUES = {1: "one", 2: "two"}  # workers: the queue that they serve


def command(session):
    """About two seconds of one processor."""
    return f"i=0; while [ $i -lt {100_000 if session.opts.quick else 2_000_000} ]; do i=$((i + 1)); done"


def scaling(session):
    rows = {n: session.row(f"{ARMS} CPU-bound arms on {word}", "ms")
            for n, word in ((1, "one worker"), (2, "two workers"))}
    gain = session.row("times as fast on two workers as on one", "x", at_least(0.9, XARGS), rate=True)
    gain.notes.append(f"{os.cpu_count()} processors; {XARGS} is the machine's own ratio, without snap")
    everything = [*rows.values(), gain]
    why = Fleet.missing()
    if why:
        for row in everything:
            row.skip(why)
        session.skipped["workers"] = why
        return
    top = session.arena.fresh_dir("scaling")
    fleet, line = Fleet(session, top), command(session)
    for n, queue in QUEUES.items():
        for i in range(n):
            fleet.worker(f"{queue}-{i}", queue, 1)

    def ours(n):
        told = []
        took = timed(lambda: told.append(fleet.experiment(QUEUES[n], [line] * ARMS)))
        used = {arm["machine"]["worker"] for arm in told[0]["arms"]}
        if len(used) != n:
            raise SystemExit(f"error: {n} workers should have run arms, not {sorted(used)}")
        return took

    def plain(n):
        words = " ".join(str(i) for i in range(ARMS))
        return timed(lambda: run("sh", "-c", f"echo {words} | xargs -n 1 -P {n} sh -c '{line}'"))

    def turn(who, act):
        def both(_):
            took = {n: act(n) for n in QUEUES}
            for n, row in rows.items():
                row.add(who, took[n])
            gain.add(who, took[1] / took[2])
        return both
    try:
        session.rounds("scaling", {XARGS: turn(XARGS, plain), OURS: turn(OURS, ours)}, everything,
                       count=min(session.opts.rounds, ROUNDS), sync=False)
    finally:
        fleet.end()
        shutil.rmtree(top, ignore_errors=True)


PARTS = {"scaling": scaling}
