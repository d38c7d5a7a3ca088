// An experiment inside the window of an agent's client, which speaks to us by messages (MCP Apps).
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Chart } from "./chart.jsx";
import { Badge, Paths, Table } from "./table.jsx";
import { duration, plain } from "./text.js";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const VERSION = "2026-01-26";
const AGAIN_MS = 2000; // between two looks at an experiment that runs
const KINDS = { passed: "good", failed: "bad", running: "warn", checking: "warn", scoring: "warn" };

// --- the client ----------------------------------------------------------------------------------

const waiting = new Map();
let next = 1;

const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const notify = (method, params) => send({ method, params });

function request(method, params) {
  const id = next++;

  send({ id, method, params });
  return new Promise((done, failed) => waiting.set(id, { done, failed }));
}

function listen(tell) {
  addEventListener("message", (e) => {
    const m = e.data;

    if (e.source !== parent || m?.jsonrpc !== "2.0")
      return;
    if (waiting.has(m.id) && !m.method) {
      const { done, failed } = waiting.get(m.id);

      waiting.delete(m.id);
      if (m.error)
        failed(new Error(m.error.message));
      else
        done(m.result);
    } else if (m.method === "ui/notifications/tool-result") {
      tell(m.params.structuredContent);
    } else if (m.method === "ping" || m.method === "ui/resource-teardown") {
      send({ id: m.id, result: {} });
    }
  });
}

async function call(name, values) {
  const got = await request("tools/call", { name, arguments: values });

  if (got.isError || !got.structuredContent)
    throw new Error(got.structuredContent?.error?.message ?? got.content?.[0]?.text ?? "no answer");
  return got.structuredContent;
}

// --- what is shown -------------------------------------------------------------------------------

const name = (e) => e?.experiment ?? null;
const runs = (e) => name(e) && e.state !== "ended" && e.state !== "interrupted";

// First what would change, then the client's own question, then the promotion.
function Promote({ arm }) {
  const [state, set] = useState({});
  const act = (values, then) => async () => {
    set({ ...state, busy: true });
    try {
      set(then(await call("snap_promote", { clone: arm.clone, ...values })));
    } catch (failure) {
      set({ failure });
    }
  };

  if (state.failure)
    return <span class="bad">{plain(state.failure.message)}</span>;
  if (state.landed)
    return <Badge kind="good">promoted</Badge>;
  if (state.plan)
    return <><Paths list={state.plan.changed} /><button class="main" disabled={state.busy} onClick={act({ plan: state.plan.plan }, () => ({ landed: true }))}>Promote</button></>;
  return <button disabled={state.busy} onClick={act({ dry_run: true }, (plan) => ({ plan }))}>Promote…</button>;
}

function Experiment({ e }) {
  return (
    <>
      <h2>{plain(e.experiment)} <Badge kind={runs(e) ? "warn" : ""}>{plain(e.state)}</Badge></h2>
      <p>{plain(e.verdict ?? "")}</p>
      <Table head={["Arm", "State", "Time", "Checks", "Score", "Lines", ""]} empty="No arms." rows={(e.arms ?? []).map((a) => ({
        key: a.arm,
        cells: [
          <strong>{plain(a.arm)}</strong>,
          <><Badge kind={KINDS[a.state]}>{plain(a.state)}</Badge>{e.winner === a.arm && <Badge kind="good">wins</Badge>}</>,
          duration(a.duration_ms),
          `${a.checks.filter((c) => c.exit_code === 0).length}/${e.checks.length}`,
          a.score == null ? "" : `${a.score} ± ${a.spread ?? 0}`,
          <><span class="plus">+{a.changed.lines_added}</span> <span class="minus">-{a.changed.lines_removed}</span></>,
          a.state === "passed" && a.clone ? <Promote arm={a} /> : plain(a.why ?? ""),
        ],
      }))} />
      <Chart arms={e.arms ?? []} />
    </>
  );
}

function App() {
  const [e, set] = useState(null);

  useEffect(() => {
    listen(set);
    request("ui/initialize", { appInfo: { name: "snap", version: "1" }, appCapabilities: {}, protocolVersion: VERSION })
      .then(() => notify("ui/notifications/initialized"));
    new ResizeObserver(() => notify("ui/notifications/size-changed", {
      width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight,
    })).observe(document.body);
  }, []);
  useEffect(() => {
    if (!runs(e))
      return undefined;
    const timer = setTimeout(() => call("snap_experiment_show", { experiment: name(e) }).then(set, () => {}), AGAIN_MS);

    return () => clearTimeout(timer);
  }, [e]);
  return <main>{name(e) ? <Experiment e={e} /> : <p class="waits">…</p>}</main>;
}

render(<App />, document.getElementById("app"));
