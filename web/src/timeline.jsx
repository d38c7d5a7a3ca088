// Snapshots of the project and its clones, newest first, with what follows what.
import { useMemo, useState } from "preact/hooks";
import { Act, Answer, useAnswer } from "./parts.jsx";
import { Badge, Paths, When } from "./table.jsx";
import { count, id, plain, size } from "./text.js";

const FIRST = 200;
const ROW = 44, STEP = 16;

// A column for each line of states: the project's first, then clones in the order of their newest.
function lay(snapshots) {
  const columns = new Map([[".", 0]]);
  const row = new Map(snapshots.map((s, i) => [s.snapshot, i]));

  for (const s of snapshots)
    if (!columns.has(s.origin))
      columns.set(s.origin, columns.size);
  const at = (s) => [STEP * (Math.min(columns.get(s.origin), 11) + 0.75), ROW * (row.get(s.snapshot) + 0.5)];
  const lines = [];
  for (const s of snapshots) {
    const parent = snapshots[row.get(s.parent)];

    if (parent)
      lines.push([...at(s), ...at(parent), columns.get(s.origin) % 6]);
  }
  return { at, lines, width: STEP * (Math.min(columns.size, 12) + 0.5), columns };
}

function Graph({ snapshots, laid }) {
  return (
    <svg class="graph" width={laid.width} height={ROW * snapshots.length} aria-hidden="true">
      {laid.lines.map(([x1, y1, x2, y2, color]) => (
        <path class={`line c${color}`} d={`M${x1} ${y1}C${x1} ${y1 + ROW / 2} ${x2} ${y2 - ROW / 2} ${x2} ${y2}`} />
      ))}
      {snapshots.map((s) => {
        const [x, y] = laid.at(s);

        return <circle class={`dot c${laid.columns.get(s.origin) % 6}${s.automatic ? " automatic" : ""}`} cx={x} cy={y} r={s.automatic ? 3 : 5} />;
      })}
    </svg>
  );
}

function Snapshot({ s, marked, mark, go }) {
  return (
    <li class={s.automatic ? "automatic" : ""}>
      <label class="mark"><input type="checkbox" checked={marked} onChange={mark} /><span class="hidden">choose {id(s.snapshot)}</span></label>
      <button class="link" onClick={() => (s.parent ? go("diff", s.parent, s.snapshot) : go("diff", s.snapshot))}><code>{id(s.snapshot)}</code></button>
      {s.origin !== "." && <Badge>{plain(s.origin)}</Badge>}
      {s.tags.map((t) => <Badge kind="good">{plain(t)}</Badge>)}
      <span class="message">{plain(s.message || (s.automatic ? "automatic" : ""))}</span>
      <span class="quiet">{count(s.files, "file")}, {size(s.bytes)}, <When time={s.time} /></span>
    </li>
  );
}

function Chosen({ marks, clear, go }) {
  const [a, b] = marks;

  return (
    <div class="bar" role="region" aria-label="chosen snapshots">
      <span>{count(marks.length, "snapshot")} chosen</span>
      {marks.length === 2 && <button class="main" onClick={() => go("diff", a, b)}>Compare</button>}
      {marks.length === 1 && (
        <>
          <Act label="Clone it" question="clone" values={{ from: a }} fields={[{ key: "name", label: "Name" }]}
            confirm={`A clone of ${id(a)} is made.`} done={clear} />
          <Act label="Restore the project" danger question="rollback" values={{ to: a }} dry={{ values: { dry_run: true } }} done={clear}>
            {(plan) => <><Paths list={plan.paths} title="What would change" /><Paths list={plan.held} title="Held by the guard" /></>}
          </Act>
        </>
      )}
      <button onClick={clear}>None</button>
    </div>
  );
}

export function Timeline({ news, go }) {
  const [limit, setLimit] = useState(FIRST);
  const [automatic, setAutomatic] = useState(true);
  const [marks, setMarks] = useState([]);
  const log = useAnswer("timeline", { count: limit }, news);

  return (
    <Answer of={log}>{(answer) => {
      const all = answer.snapshots, shown = automatic ? all : all.filter((s) => !s.automatic);
      const mark = (s) => setMarks(marks.includes(s) ? marks.filter((m) => m !== s) : [...marks, s].slice(-2));

      return (
        <>
          <div class="bar">
            <label><input type="checkbox" checked={automatic} onChange={() => setAutomatic(!automatic)} /> automatic ones too</label>
          </div>
          {marks.length > 0 && <Chosen marks={marks} clear={() => setMarks([])} go={go} />}
          {shown.length === 0
            ? <p class="empty">No snapshots yet: <code>snap snapshot</code> takes one.</p>
            : <Rows shown={shown} marks={marks} mark={mark} go={go} />}
          {all.length === limit && <button onClick={() => setLimit(limit * 4)}>Older ones</button>}
        </>
      );
    }}</Answer>
  );
}

function Rows({ shown, marks, mark, go }) {
  const laid = useMemo(() => lay(shown), [shown]);

  return (
    <div class="timeline">
      <Graph snapshots={shown} laid={laid} />
      <ol>{shown.map((s) => <Snapshot key={s.snapshot} s={s} marked={marks.includes(s.snapshot)} mark={() => mark(s.snapshot)} go={go} />)}</ol>
    </div>
  );
}
