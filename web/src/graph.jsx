// The lines beside a list of what happened: a column for each clone, and what follows what.

export const ROW = 44; // pixels, as style.css has it
const STEP = 16, COLUMNS = 12, COLORS = 6;

// A column for each line of states: the project's first, then clones in the order of their newest.
export function lay(list) {
  const columns = new Map([[".", 0]]);
  const row = new Map(list.map((m, i) => [m.key, i]));

  for (const m of list)
    if (m.of.snapshot && !columns.has(m.line))
      columns.set(m.line, columns.size);
  // A check runs in a copy of the clone, which is gone by then; a clone that is gone has no column.
  const column = (m) => columns.get(m.line) ?? columns.get(m.line?.replace(/\.check$/, "")) ?? 0;
  const x = (m) => STEP * (Math.min(column(m), COLUMNS - 1) + 0.75);
  const lines = [];

  list.forEach((m, i) => {
    const to = m.of.snapshot && row.get(m.of.parent);

    if (to != null)
      lines.push({ from: i, to, x1: x(m), x2: x(list[to]), color: column(m) % COLORS });
  });
  return { x, lines, color: (m) => column(m) % COLORS, width: STEP * (Math.min(columns.size, COLUMNS) + 0.5) };
}

const middle = (i) => ROW * (i + 0.5);

function Dot({ m, x, y, color }) {
  if (m.kind === "run")
    return <path class={`dot c${color}`} d={`M${x - 4} ${y - 5}L${x + 5} ${y}L${x - 4} ${y + 5}Z`} />;
  if (m.kind === "receipt")
    return <path class={`dot c${color}`} d={`M${x} ${y - 6}L${x + 6} ${y}L${x} ${y + 6}L${x - 6} ${y}Z`} />;
  return <circle class={`dot c${color}${m.of.automatic ? " automatic" : ""}`} cx={x} cy={y} r={m.of.automatic ? 3 : 5} />;
}

// The part of it for the rows from `first` to before `last`.
export function Graph({ list, laid, first, last }) {
  const seen = laid.lines.filter((l) => Math.min(l.from, l.to) < last && Math.max(l.from, l.to) >= first);
  const height = ROW * (last - first);

  return (
    <svg class="graph" width={laid.width} height={height} viewBox={`0 ${ROW * first} ${laid.width} ${height}`}
      style={{ marginTop: `${ROW * first}px` }} aria-hidden="true">
      {seen.map(({ from, to, x1, x2, color }) => {
        const y1 = middle(from), y2 = middle(to);

        return <path class={`line c${color}`} d={`M${x1} ${y1}C${x1} ${y1 + ROW / 2} ${x2} ${y2 - ROW / 2} ${x2} ${y2}`} />;
      })}
      {list.slice(first, last).map((m, i) => <Dot m={m} x={laid.x(m)} y={middle(first + i)} color={laid.color(m)} />)}
    </svg>
  );
}
