// Charts: the scores of an experiment, and whatever changes over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { duration } from "./text.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// A point for each arm, with a line as long as its spread.
export function Chart({ arms }) {
  const box = useRef();
  const scored = arms.filter((a) => a.score != null);

  useEffect(() => {
    if (scored.length < 2)
      return undefined;
    const spread = {
      hooks: { draw: [(u) => {
        u.ctx.strokeStyle = css("--accent");
        u.ctx.lineWidth = 2 * devicePixelRatio;
        scored.forEach((a, i) => {
          const x = u.valToPos(i, "x", true);

          u.ctx.beginPath();
          u.ctx.moveTo(x, u.valToPos(a.score - (a.spread ?? 0), "y", true));
          u.ctx.lineTo(x, u.valToPos(a.score + (a.spread ?? 0), "y", true));
          u.ctx.stroke();
        });
      }] },
    };
    const most = Math.max(...scored.map((a) => a.score + (a.spread ?? 0)));
    const plot = new uPlot({
      width: Math.min(box.current.clientWidth, 720), height: 220,
      legend: { show: false }, cursor: { show: false }, plugins: [spread],
      scales: { x: { time: false, range: [-0.5, scored.length - 0.5] }, y: { range: [0, most * 1.1 || 1] } },
      axes: [
        { stroke: css("--text"), grid: { show: false }, splits: () => scored.map((_, i) => i), values: () => scored.map((a) => a.arm) },
        { stroke: css("--text"), grid: { stroke: css("--line") } },
      ],
      series: [{}, { paths: () => null, points: { show: true, size: 9, fill: css("--accent") } }],
    }, [scored.map((_, i) => i), scored.map((a) => a.score)], box.current);

    return () => plot.destroy();
  }, [JSON.stringify(scored.map((a) => [a.arm, a.score, a.spread]))]);
  if (scored.length < 2)
    return null;
  return <div class="chart" ref={box} role="img" aria-label={`scores: ${scored.map((a) => `${a.arm} ${a.score}`).join(", ")}`} />;
}

const COLORS = ["--accent", "--good", "--warn"];
const CLASSES = ["fg-blue", "fg-green", "fg-yellow"]; // the same, of text

// Lines over time: `xs` in seconds since 1970 (`dates`) or since something began, and for each line its
// name and a value for each x, null where there is none.
export function Lines({ name, xs, lines, show, dates }) {
  const box = useRef();
  const most = Math.max(0, ...lines.flatMap((l) => l.ys));

  useEffect(() => {
    if (xs.length < 2)
      return undefined;
    const plot = new uPlot({
      width: Math.min(box.current.clientWidth, 720), height: 150,
      legend: { show: false }, cursor: { show: false },
      scales: { x: { time: !!dates }, y: { range: [0, most * 1.1 || 1] } },
      axes: [
        { stroke: css("--text"), grid: { show: false }, ...(dates ? {} : { values: (_, at) => at.map((s) => duration(s * 1000)) }) },
        { stroke: css("--text"), grid: { stroke: css("--line") }, size: 76, values: (_, at) => at.map(show) },
      ],
      series: [{}, ...lines.map((_, i) => ({ stroke: css(COLORS[i]), width: 2, spanGaps: true, points: { show: false } }))],
    }, [xs, ...lines.map((l) => l.ys)], box.current);

    return () => plot.destroy();
  }, [JSON.stringify([xs, lines])]);
  if (xs.length < 2)
    return null;
  return (
    <figure>
      <figcaption>{name}{lines.length > 1 ? lines.map((l, i) => <span class={CLASSES[i]}>{l.name}</span>) : <span>at most {show(most)}</span>}</figcaption>
      <div class="chart" ref={box} role="img" aria-label={`${name} over time, at most ${show(most)}`} />
    </figure>
  );
}
