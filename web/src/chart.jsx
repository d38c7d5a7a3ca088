// The scores of an experiment.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

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
