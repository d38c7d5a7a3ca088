// What views are made of that ask nothing: times, badges, tables, lists of paths.
import { ago, plain } from "./text.js";

export function When({ time }) {
  return <time dateTime={time} title={time}>{ago(time)}</time>;
}

export function Badge({ kind, children }) {
  return <span class={`badge ${kind ?? ""}`}>{children}</span>;
}

// Rows as a table whose lines are buttons where a line can be opened.
export function Table({ head, rows, empty, open, chosen }) {
  if (rows.length === 0)
    return <p class="empty">{empty}</p>;
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={head[0]}>
      <table>
        <thead><tr>{head.map((h) => <th scope="col">{h}</th>)}</tr></thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key} class={key === chosen ? "chosen" : ""}>
              {cells.map((c, i) => (
                <td>{i === 0 && open
                  ? <button class="link" onClick={() => open(key)}>{c}</button> : c}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const MARKS = { added: "A", deleted: "D", modified: "M", renamed: "R", type_changed: "T" };

export function Paths({ list, title }) {
  if (!list || list.length === 0)
    return null;
  return (
    <>
      {title && <h3>{title}</h3>}
      <ul class="paths">
        {list.slice(0, 200).map((p) => (
          <li><code>{MARKS[p.status] ?? "m"} {plain(p.path)}</code>{p.rule && <Badge kind="bad">{p.rule}</Badge>}</li>
        ))}
        {list.length > 200 && <li>and {list.length - 200} more</li>}
      </ul>
    </>
  );
}
