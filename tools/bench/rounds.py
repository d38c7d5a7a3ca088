"""Fair rounds: contestants take turns, forth and back, and a first round does not count."""

import os
import sys
import time

from row import OURS, PRIVATE

PATIENCE = 10  # seconds a turn, for what measures nothing


def say(text):
    print(text, file=sys.stderr, flush=True)


def take_turns(label, count, acts, rows, sync=True):
    """Call acts[contestant](number) `count` times each, in turn, after a round to warm up.

    `rows` are those that the acts add values to; what they add in the first round is forgotten.
    Who takes very long, and is named by no target of these rows, has that one round, which then
    counts, and sits out the others.
    """
    needed = {OURS, PRIVATE}.union(*(row.peers() for row in rows))
    running = dict(acts)
    before = [row.counts() for row in rows]
    for number in range(count + 1):
        order = list(running) if number % 2 == 0 else list(running)[::-1]
        took = {}
        for who in order:
            start = time.monotonic()
            running[who](number)
            took[who] = time.monotonic() - start
        if sync:
            os.sync()
        if count <= 20:
            say(f"  {label}: " + (f"round {number} of {count}" if number else "warming up"))
        if number == 0:
            slow = {who for who in order if took[who] > PATIENCE and who not in needed}
            for row, counts in zip(rows, before):
                row.go_back(counts, keep=slow)
            for who in slow:
                del running[who]
