// What happened in the project and its clones, newest first, with what follows what.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Graph, lay, ROW } from "./graph.jsx";
import { moments } from "./moments.js";
import { Act, Answer, useAnswer } from "./parts.jsx";
import { result } from "./runs.jsx";
import { Badge, Paths, When } from "./table.jsx";
import { count, duration, id, plain, size } from "./text.js";

const FIRST = 200;
const SPARE = 10; // rows above and below those that are seen
const KINDS = [["automatic", "automatic ones"], ["step", "agents' steps"], ["run", "runs"], ["receipt", "promotions"]];

const kindOf = (m) => (m.kind === "snapshot" && m.of.automatic ? "automatic" : m.kind);

// --- rows ----------------------------------------------------------------------------------------

function Snapshot({ s, step, marked, mark, go }) {
  return (
    <>
      <label class="mark"><input type="checkbox" checked={marked} onChange={mark} /><span class="hidden">choose {id(s.snapshot)}</span></label>
      <button class="link" onClick={() => (s.parent ? go("diff", s.parent, s.snapshot) : go("diff", s.snapshot))}><code>{id(s.snapshot)}</code></button>
      {s.origin !== "." && <Badge>{plain(s.origin)}</Badge>}
      {step && <Badge kind="warn">{plain(s.meta.client)}, turn {plain(s.meta.turn)}</Badge>}
      {s.tags.map((t) => <Badge kind="good">{plain(t)}</Badge>)}
      <span class="message">{plain(s.message || (s.automatic ? "automatic" : ""))}</span>
      <span class="quiet">{count(s.files, "file")}, {size(s.bytes)}, <When time={s.time} /></span>
    </>
  );
}

function Run({ r, go }) {
  return (
    <>
      <button class="link" onClick={() => go("runs", r.run)}><span class="hidden">run </span><code>{id(r.run)}</code></button>
      {r.kept && r.clone && <Badge>{plain(r.clone)}</Badge>}
      {result(r)}
      <code class="message">{plain(r.command.join(" "))}</code>
      <span class="quiet">{duration(r.duration_ms)}, <When time={r.started} /></span>
    </>
  );
}

function Receipt({ r, go }) {
  const checks = r.checks.length > 0 ? `, ${count(r.checks.length, "check")}` : "";

  return (
    <>
      <button class="link" onClick={() => go("diff", r.before, r.after)}><span class="hidden">{r.kind} </span><code>{id(r.receipt)}</code></button>
      <Badge kind="good">{r.kind}</Badge>
      {r.clone && <Badge>{plain(r.clone)}</Badge>}
      {r.undone && <Badge kind="warn">undone</Badge>}
      <span class="message">by {plain(r.who)}{r.to && ` into ${plain(r.to)}`}{r.undoes && ` of ${id(r.undoes)}`}{checks}</span>
      <span class="quiet"><When time={r.time} /></span>
    </>
  );
}

// Which rows to draw: those that are seen and some around them, however long the list is.
function useSeen(n) {
  const box = useRef();
  const [top, set] = useState(0);

  useEffect(() => {
    const look = () => set(Math.floor(-box.current.getBoundingClientRect().top / ROW / SPARE) * SPARE);

    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, []);
  const seen = Math.ceil(innerHeight / ROW) + 3 * SPARE;
  const first = Math.max(0, Math.min(top - SPARE, n - seen));

  return { box, first, last: Math.min(n, first + seen) };
}

function Rows({ list, marks, mark, go }) {
  const laid = useMemo(() => lay(list), [list]);
  const { box, first, last } = useSeen(list.length);

  return (
    <div class="timeline" ref={box}>
      <Graph list={list} laid={laid} first={first} last={last} />
      <ol style={{ paddingTop: `${ROW * first}px`, paddingBottom: `${ROW * (list.length - last)}px` }}>
        {list.slice(first, last).map((m, i) => (
          <li key={m.key} class={`${m.kind} ${kindOf(m)}`} aria-posinset={first + i + 1} aria-setsize={list.length}>
            {m.kind === "run" && <Run r={m.of} go={go} />}
            {m.kind === "receipt" && <Receipt r={m.of} go={go} />}
            {m.of.snapshot && <Snapshot s={m.of} step={m.kind === "step"} marked={marks.includes(m.key)} mark={() => mark(m.key)} go={go} />}
          </li>
        ))}
      </ol>
    </div>
  );
}

// --- the view ------------------------------------------------------------------------------------

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

// The answer, or while a longer one is on its way the one before.
function useLast(of) {
  const last = useRef(of);

  if (!of.waits)
    last.current = of;
  return last.current;
}

export function Timeline({ news, go }) {
  const [limit, setLimit] = useState(FIRST);
  const [hidden, hide] = useState([]);
  const [marks, setMarks] = useState([]);
  const log = useLast(useAnswer("timeline", { count: limit }, news));
  const runs = useLast(useAnswer("runs", { count: limit }, news));
  const more = log.answer?.snapshots.length >= limit;
  const list = useMemo(() => log.answer && moments(log.answer, runs.answer?.runs ?? [], !more)
    .filter((m) => !hidden.includes(kindOf(m))), [log.answer, runs.answer, hidden]);
  const mark = (s) => setMarks(marks.includes(s) ? marks.filter((m) => m !== s) : [...marks, s].slice(-2));
  const toggle = (k) => hide(hidden.includes(k) ? hidden.filter((h) => h !== k) : [...hidden, k]);

  return (
    <Answer of={log}>{() => (
      <>
        <div class="bar">
          {KINDS.map(([k, label]) => (
            <label><input type="checkbox" checked={!hidden.includes(k)} onChange={() => toggle(k)} /> {label}</label>
          ))}
        </div>
        {marks.length > 0 && <Chosen marks={marks} clear={() => setMarks([])} go={go} />}
        {list.length === 0
          ? <p class="empty">No snapshots yet: <code>snap snapshot</code> takes one.</p>
          : <Rows list={list} marks={marks} mark={mark} go={go} />}
        {more && <button onClick={() => setLimit(limit * 4)}>Older ones</button>}
      </>
    )}</Answer>
  );
}
