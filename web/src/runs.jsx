// What was run: its output as it comes, what it was refused, and what it used.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api.js";
import { Lines } from "./chart.jsx";
import { Act, Answer, useAnswer } from "./parts.jsx";
import { Badge, Table, When } from "./table.jsx";
import { colored, duration, plain, size } from "./text.js";

const KEPT = 400000; // characters of output that the page holds

// The output from where it was left, again and again while the run goes on.
function useOutput(run) {
  const [state, set] = useState({ text: "", refusals: [], samples: [] });

  useEffect(() => {
    const end = new AbortController();
    let since = 0, text = "";

    (async () => {
      for (;;) {
        const got = await ask("output", { run, since }, end.signal);

        text = (text + got.output).slice(-KEPT);
        const moved = got.next !== since;
        since = got.next;
        set({ text, refusals: got.refusals, samples: got.usage.samples });
        if (got.state !== "running" && !moved)
          return;
        await new Promise((done) => setTimeout(done, moved ? 100 : 500));
        if (end.signal.aborted)
          return;
      }
    })().catch((failure) => end.signal.aborted || set({ text, refusals: [], samples: [], failure }));
    return () => end.abort();
  }, [run]);
  return state;
}

// What was used between each sample and the one before it, and at each.
function Curves({ samples }) {
  const all = [{ at_ms: 0, cpu_ms: 0, memory: 0, written: 0, processes: 0 }, ...samples];
  const xs = all.map((s) => s.at_ms / 1000);
  const cpu = all.map((s, i) => (i === 0 ? 0 : (s.cpu_ms - all[i - 1].cpu_ms) / (s.at_ms - all[i - 1].at_ms)));

  if (samples.length === 0)
    return null;
  return (
    <div class="curves">
      <Lines name="Processors" xs={xs} show={(n) => n.toFixed(1)} lines={[{ ys: cpu }]} />
      <Lines name="Memory" xs={xs} show={size} lines={[{ ys: all.map((s) => s.memory) }]} />
      <Lines name="Written" xs={xs} show={size} lines={[{ ys: all.map((s) => s.written) }]} />
      <Lines name="Processes" xs={xs} show={(n) => +n.toFixed(1)} lines={[{ ys: all.map((s) => s.processes) }]} />
    </div>
  );
}

function Output({ run }) {
  const out = useOutput(run);
  const box = useRef();

  useEffect(() => {
    if (box.current)
      box.current.scrollTop = box.current.scrollHeight;
  }, [out.text]);
  return (
    <>
      <Curves samples={out.samples} />
      {out.failure && <p class="failure">{plain(out.failure.message)}</p>}
      <pre class="output" ref={box} role="log" tabIndex={0} aria-label="output">{colored(out.text).map((p) => <span class={p.color && `fg-${p.color}`}>{p.text}</span>)}</pre>
      {out.refusals.length > 0 && (
        <>
          <h3>Refused</h3>
          <ul class="paths">
            {out.refusals.map((r) => <li>{plain(r.message)}{r.count > 1 && ` (${r.count} times)`}{r.flag && <> <code>{plain(r.flag)}</code> would allow it</>}</li>)}
          </ul>
        </>
      )}
    </>
  );
}

export const result = (r) => {
  if (r.state === "running")
    return <Badge kind="warn">running</Badge>;
  if (r.limit)
    return <Badge kind="bad">limit: {plain(r.limit)}</Badge>;
  return <Badge kind={r.exit_code === 0 ? "good" : "bad"}>{r.state === "ended" ? `exit ${r.exit_code}` : plain(r.state)}</Badge>;
};

// How much of each limit was used, as bars: what a person looks at first.
function Used({ r }) {
  const bars = [
    ["time", r.duration_ms, r.limits?.time_ms, duration],
    ["memory", r.max_mem ?? r.max_rss, r.limits?.mem, size],
  ].filter(([, used]) => used != null);

  return (
    <dl class="used">
      {bars.map(([name, used, limit, show]) => (
        <>
          <dt>{name}</dt>
          <dd>{limit ? <meter max={limit} value={used} aria-label={name} /> : null} {show(used)}{limit ? ` of ${show(limit)}` : ""}</dd>
        </>
      ))}
    </dl>
  );
}

function Run({ r, go }) {
  return (
    <section aria-label={`run ${r.run}`}>
      <h2><code>{plain(r.command.join(" "))}</code></h2>
      <p>{result(r)} <span class="quiet">on {plain(r.clone ?? "")}, <When time={r.started} />, profile {plain(r.profile ?? "")}, network {plain(r.net ?? "")}</span></p>
      <p class="buttons">
        {r.state === "running" && <Act label="Cancel the run" danger question="cancel" values={{ run: r.run }} confirm="All of its processes are ended." />}
        {r.kept && r.before && <button onClick={() => go("diff", r.before, r.clone)}>Diff since before it</button>}
      </p>
      <Used r={r} />
      <Output key={r.run} run={r.run} />
    </section>
  );
}

export function Runs({ at, news, go }) {
  const list = useAnswer("runs", { count: 100 }, news);

  return (
    <Answer of={list}>{(answer) => (
      <>
        <Table head={["Run", "Result", "Command", "Clone", "Began", "Took"]} chosen={at[0]}
          empty="Nothing was run yet: 'snap run COMMAND' does." open={(run) => go("runs", run)}
          rows={answer.runs.map((r) => ({
            key: r.run,
            cells: [<code>{r.run}</code>, result(r), <code class="cut">{plain(r.command.join(" "))}</code>, plain(r.clone ?? ""), <When time={r.started} />, duration(r.duration_ms)],
          }))} />
        {answer.runs.filter((r) => r.run === at[0]).map((r) => <Run key={r.run} r={r} go={go} />)}
      </>
    )}</Answer>
  );
}
