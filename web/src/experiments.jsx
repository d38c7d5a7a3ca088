// Experiments: the arms with their checks and scores, a chart, and the button that takes one.
import { Act, Answer, useAnswer } from "./parts.jsx";
import { Badge, Table, When } from "./table.jsx";
import { count, duration, plain } from "./text.js";
import { Chart } from "./chart.jsx";
import { Plan } from "./clones.jsx";

export const KINDS = { passed: "good", failed: "bad", running: "warn", checking: "warn", scoring: "warn" };

function Arm({ e, a, go }) {
  return [
    <strong>{plain(a.arm)}</strong>,
    <><Badge kind={KINDS[a.state]}>{plain(a.state)}</Badge>{e.winner === a.arm && <Badge kind="good">wins</Badge>}</>,
    duration(a.duration_ms),
    `${a.checks.filter((c) => c.exit_code === 0).length}/${e.checks.length}`,
    a.score == null ? "" : `${a.score} ± ${a.spread ?? 0}`,
    <><span class="plus">+{a.changed.lines_added}</span> <span class="minus">-{a.changed.lines_removed}</span></>,
    a.risk ? <Badge kind={a.risk === "low" ? "" : "warn"}>risk {a.risk}</Badge> : "",
    <span class="buttons">
      {a.run && <button onClick={() => go("runs", a.run)}>Output</button>}
      {a.clone && <button onClick={() => go("diff", a.clone)}>Diff</button>}
      {a.state === "passed" && a.clone && (
        <Act label="Promote" question="choose" values={{ name: e.experiment, arm: a.arm }} dry={{ question: "conflicts", values: { name: undefined, arm: undefined, clone: a.clone }, seen: (p) => ({ plan: p.plan }) }}>
          {(p) => <Plan plan={p} />}
        </Act>
      )}
    </span>,
  ];
}

function Experiment({ name, news, go }) {
  const show = useAnswer("experiment", { name }, news);

  return (
    <section aria-label={`experiment ${name}`}>
      <h2>{plain(name)}</h2>
      <Answer of={show}>{(e) => (
        <>
          <p>{plain(e.verdict ?? "")}</p>
          <Table head={["Arm", "State", "Time", "Checks", "Score", "Lines", "Risk", ""]} empty="No arms."
            rows={e.arms.map((a) => ({ key: a.arm, cells: Arm({ e, a, go }) }))} />
          {e.arms.flatMap((a) => [a.why && `${a.arm}: ${a.why}`, ...a.warnings.map((w) => `${a.arm}: ${w.path}: ${w.detail}`)])
            .filter(Boolean).map((w) => <p class="warning">{plain(w)}</p>)}
          <Chart arms={e.arms} />
          {e.arms.filter((a) => a.clone).length > 1 && (
            <p class="buttons">
              <button onClick={() => go("diff", ...e.arms.filter((a) => a.clone).slice(0, 2).map((a) => a.clone))}>Compare the first two arms</button>
            </p>
          )}
        </>
      )}</Answer>
    </section>
  );
}

export function Experiments({ at, news, go }) {
  const list = useAnswer("experiments", {}, news);

  return (
    <>
      <Answer of={list}>{(answer) => (
        <Table head={["Experiment", "State", "Arms", "Winner", "Began"]} chosen={at[0]}
          empty="No experiments yet: 'snap experiment --arm a=COMMAND --arm b=COMMAND' starts one."
          open={(name) => go("experiments", name)}
          rows={answer.experiments.map((e) => ({
            key: e.experiment,
            cells: [plain(e.experiment), <Badge kind={e.state === "ended" ? "" : "warn"}>{plain(e.state)}</Badge>,
              `${count(e.passed, "passes", "pass")} of ${e.count}`, plain(e.winner ?? (e.tie.length ? "a tie" : "")), <When time={e.created} />],
          }))} />
      )}</Answer>
      {at[0] && <Experiment key={at[0]} name={at[0]} news={news} go={go} />}
    </>
  );
}
