// The store: how much it holds, how much that takes, and what a gc would free.
import { Lines } from "./chart.jsx";
import { Act, Answer, useAnswer } from "./parts.jsx";
import { Table } from "./table.jsx";
import { count, plain, size } from "./text.js";

// How it came to be so large: as the daemon noted it.
function Growth({ rows }) {
  const xs = rows.map((r) => Date.parse(r.time) / 1000);
  const lines = (...keys) => keys.map(([key, name]) => ({ name, ys: rows.map((r) => r[key]) }));
  const judged = rows.filter((r) => r.garbage != null);

  if (rows.length < 2)
    return null;
  return (
    <div class="curves">
      <Lines dates name="On disk" xs={xs} show={size} lines={lines(["disk", "files"], ["used", "in use"])} />
      <Lines dates name="Holds" xs={xs} show={size} lines={lines(["logical", "shown"])} />
      <Lines dates name="Times less by sharing and packing" xs={xs} show={(n) => n.toFixed(1)} lines={[{ ys: rows.map((r) => (r.used > 0 ? r.logical / r.used : 0)) }]} />
      <Lines dates name="Garbage that gc found" xs={judged.map((r) => Date.parse(r.time) / 1000)} show={size} lines={[{ ys: judged.map((r) => r.garbage) }]} />
    </div>
  );
}

export function Store({ news }) {
  const stats = useAnswer("store", {}, news);
  const garbage = useAnswer("garbage", {}, news);

  return (
    <Answer of={stats}>{(s) => (
      <>
        <dl class="facts">
          <dt>On disk</dt><dd>{size(s.disk)}{s.limit > 0 && ` of ${size(s.limit)}`}</dd>
          <dt>Holds</dt><dd>{size(s.logical)} in {count(s.snapshots, "snapshot")} and {count(s.clones, "clone")}</dd>
          <dt>Stored</dt><dd>{size(s.stored)}, {s.ratio.toFixed(1)} times less by sharing and packing</dd>
          <dt>Free inside</dt><dd>{size(s.free)}</dd>
          <dt>Garbage</dt>
          <dd>
            {garbage.answer ? `${size(garbage.answer.freed)} in ${count(garbage.answer.removed, "object")}` : "…"}{" "}
            <Act label="Free it" question="gc" dry={{ question: "garbage" }}>{(p) => <p>{size(p.freed)} would be freed; no snapshot and no clone is removed.</p>}</Act>
          </dd>
        </dl>
        <Growth rows={s.growth} />
        <Table head={["Clone", "Its own", "Shared"]} empty="No clones." rows={s.per_clone.map((c) => ({
          key: c.clone,
          cells: [plain(c.clone), <><meter max={c.logical || 1} value={c.own} aria-label={`own part of ${c.clone}`} /> {size(c.own)}</>, size(c.shared)],
        }))} />
      </>
    )}</Answer>
  );
}
