// What happened, newest first: snapshots, among them agents' steps, runs, promotions and what undid them.

const ms = (time) => Date.parse(time);

// A step is taken by a hook; a label that somebody wrote makes none.
export const isStep = (s) => s.automatic && Boolean(s.meta.client && s.meta.step);

// The order of the snapshots stays, whatever the clock did.  Runs and receipts that are older than the
// oldest of them come with older snapshots, unless those are all.
export function moments({ snapshots, receipts }, runs, all) {
  const oldest = all || snapshots.length === 0 ? -Infinity : ms(snapshots.at(-1).time);
  const others = [
    ...runs.map((r) => ({ kind: "run", key: r.run, line: r.clone, time: ms(r.started), of: r })),
    ...receipts.map((r) => ({ kind: "receipt", key: r.receipt, line: ".", time: ms(r.time), of: r })),
  ].filter((m) => m.time >= oldest).sort((a, b) => b.time - a.time);
  const list = [];
  let i = 0;

  for (const s of snapshots) {
    while (i < others.length && others[i].time >= ms(s.time))
      list.push(others[i++]);
    list.push({ kind: isStep(s) ? "step" : "snapshot", key: s.snapshot, line: s.origin, of: s });
  }
  return [...list, ...others.slice(i)];
}
