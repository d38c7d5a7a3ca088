// Changes on their way through the stages, as a board.
import { Act, Answer, useAnswer } from "./parts.jsx";
import { Badge, When } from "./table.jsx";
import { id, plain } from "./text.js";

const KINDS = { waiting: "warn", held: "warn", soaking: "warn", rejected: "bad", sick: "bad", undoing: "bad" };

// The stage that a change is in or waits for; of one that has none any more, the last that it passed.
const standsAt = (c) => c.stage ?? c.receipts.at(-1)?.stage ?? "new";

function Change({ c, go }) {
  const waits = c.waits_for;
  const over = ["shipped", "rejected", "sick"].includes(c.state);

  return (
    <li class="card">
      <strong>{plain(c.clone)}</strong> <code>{id(c.change)}</code>
      <p><Badge kind={KINDS[c.state]}>{plain(c.state)}</Badge> {c.risk && <Badge>risk {plain(c.risk)}</Badge>}</p>
      {waits?.kind === "approval" && <p class="quiet">waits for the approval of {plain(waits.approvers.join(", ") || "you")}</p>}
      {waits?.kind === "time" && <p class="quiet">waits until {plain(waits.until)}</p>}
      {c.receipts.map((r) => <p class="quiet">{plain(r.stage)}: {r.checks.length} checks{r.approved_by && `, approved by ${plain(r.approved_by)}`}{r.undone && ", undone"}</p>)}
      {c.why && <p class="quiet">{plain(c.why)}</p>}
      <p class="quiet">{plain(c.who)}, <When time={c.created} /></p>
      <p class="buttons">
        <button onClick={() => go("diff", c.base, c.snapshot)}>Diff</button>
        {waits?.kind === "approval" && <Act label="Approve" question="approve" values={{ change: c.change, stage: c.stage, digest: c.sha256 }} fields={[{ key: "why", label: "Reason" }]} confirm="The change goes on to its next stage." />}
        {!over && <Act label="Reject" danger question="reject" values={{ change: c.change }} fields={[{ key: "why", label: "Reason" }]} confirm="The change ends here, and the same content is barred." />}
      </p>
    </li>
  );
}

export function Changes({ news, go }) {
  const stages = useAnswer("stages", {}, news);
  const changes = useAnswer("changes", { all: true }, news);

  return (
    <Answer of={changes}>{(answer) => {
      const names = (stages.answer?.stages ?? []).map((s) => s.name);
      const columns = new Map(names.map((n) => [n, []]));

      for (const c of answer.changes) {
        const stage = standsAt(c);

        columns.set(stage, [...(columns.get(stage) ?? []), c]);
      }
      if (columns.size === 0)
        return <p class="empty">No pipeline: stages are in pipeline.yaml of your configuration, and <code>snap ship CLONE</code> sends a change through them.</p>;
      return (
        <div class="board">
          {[...columns].map(([name, list]) => (
            <section aria-label={`stage ${name}`}>
              <h2>{plain(name)}</h2>
              <ul>{list.map((c) => <Change key={c.change} c={c} go={go} />)}</ul>
              {list.length === 0 && <p class="empty">nothing</p>}
            </section>
          ))}
        </div>
      );
    }}</Answer>
  );
}
