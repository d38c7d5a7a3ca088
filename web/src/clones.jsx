// The clones, and what one of them would bring into the project.
import { Act, Answer, useAnswer } from "./parts.jsx";
import { Badge, Paths, Table, When } from "./table.jsx";
import { count, plain, size } from "./text.js";

function state(c) {
  return (
    <>
      {c.mounted ? <Badge kind="good">mounted</Badge> : <Badge>not mounted</Badge>}
      {c.stale && <Badge kind="warn">behind</Badge>}
      {c.runs > 0 && <Badge kind="good">{count(c.runs, "run")}</Badge>}
    </>
  );
}

const maker = (c) => plain([c.who, c.via].filter(Boolean).join(", "));

function Version({ name, text }) {
  return <div><h4>{name}</h4><pre>{plain(text ?? "")}</pre></div>;
}

export function Conflicts({ list }) {
  if (!list || list.length === 0)
    return null;
  return (
    <>
      <h3>{count(list.length, "conflict")}</h3>
      {list.map((c) => (
        <details open={list.length < 4}>
          <summary><code>{plain(c.path)}</code> {plain(c.kind)}{c.resolved && <Badge kind="good">decided</Badge>}</summary>
          {(c.places ?? []).map((p) => (
            <div class="three">
              <Version name={`project, line ${p.line}`} text={p.ours} />
              <Version name="both had" text={p.base} />
              <Version name="clone" text={p.theirs} />
            </div>
          ))}
        </details>
      ))}
    </>
  );
}

export function Plan({ plan }) {
  const got = plan.promotion !== undefined ? plan : plan.data ?? plan.error?.data ?? plan;

  return (
    <>
      <Paths list={got.changed} title="What would change" />
      <Conflicts list={got.conflicts} />
      <Paths list={got.held} title="Held by the guard" />
      {(got.warnings ?? []).map((w) => <p class="warning">{plain(w.path)}: {plain(w.detail ?? "")} ({plain(w.rule)})</p>)}
    </>
  );
}

function Clone({ name, news, go }) {
  const status = useAnswer("status", { clone: name }, news);
  const plan = useAnswer("conflicts", { clone: name }, news);

  return (
    <section aria-label={`clone ${name}`}>
      <h2>{plain(name)}</h2>
      <Answer of={status}>{(s) => (
        <>
          <p class="quiet"><code>{plain(s.path)}</code>, made <When time={s.created} />{s.who && ` by ${maker(s)}`}{s.stale && `, the project has changed ${count(s.stale.changed ?? 0, "path")} since`}</p>
          <p class="buttons">
            <button class="main" onClick={() => go("diff", name)}>Diff</button>
            <Act label="Promote" question="promote" values={{ clone: name }} dry={{ question: "conflicts", seen: (p) => ({ plan: p.plan }) }}>
              {(p) => <Plan plan={p} />}
            </Act>
            <Act label="Rebase" question="rebase" values={{ clone: name }} dry={{ values: { dry_run: true } }}>
              {(p) => <Plan plan={p} />}
            </Act>
            <Act label="Remove" danger question="remove" values={{ clone: name }} confirm={`'${name}' and what was written in it are removed.`} done={() => go("clones")} />
          </p>
          <Paths list={s.changed_paths} title="Changed in the clone" />
        </>
      )}</Answer>
      {plan.answer && <Conflicts list={plan.answer.conflicts} />}
      {plan.failure && <Plan plan={plan.failure.answer ?? {}} />}
    </section>
  );
}

export function Clones({ at, news, go }) {
  const list = useAnswer("clones", {}, news);

  return (
    <>
      <Answer of={list}>{(answer) => (
        <Table head={["Clone", "State", "Changed", "Own", "Made", "By"]} chosen={at[0]}
          empty="No clones yet: 'snap clone' makes one." open={(name) => go("clones", name)}
          rows={answer.clones.map((c) => ({
            key: c.clone,
            cells: [plain(c.clone), state(c), `+${c.added} ~${c.modified} -${c.deleted}`, size(c.own), <When time={c.created} />, maker(c)],
          }))} />
      )}</Answer>
      {at[0] && <Clone key={at[0]} name={at[0]} news={news} go={go} />}
    </>
  );
}
