// The page: a bar of views, one of which is open; `location.hash` says which, and of what.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { follow } from "./api.js";
import { Changes } from "./changes.jsx";
import { Clones } from "./clones.jsx";
import { Diff } from "./diff.jsx";
import { Experiments } from "./experiments.jsx";
import { Runs } from "./runs.jsx";
import { Store } from "./store.jsx";
import { Timeline } from "./timeline.jsx";
import { useAnswer } from "./parts.jsx";
import { plain } from "./text.js";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const VIEWS = [
  ["timeline", "Timeline", Timeline],
  ["clones", "Clones", Clones],
  ["experiments", "Experiments", Experiments],
  ["runs", "Runs", Runs],
  ["changes", "Pipeline", Changes],
  ["store", "Store", Store],
  ["diff", "Diff", Diff],
];

// "#diff/a/b" -> ["diff", "a", "b"]
function place() {
  try {
    return location.hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return []; // no address of ours
  }
}

export const go = (...words) => { location.hash = words.map(encodeURIComponent).join("/"); };

function usePlace() {
  const [at, set] = useState(place());

  useEffect(() => {
    const look = () => set(place());

    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  return at;
}

// A number that grows when something happened, but not for each of a hundred things at once.
function useNews() {
  const [news, set] = useState(0);
  const [state, setState] = useState("away");

  useEffect(() => {
    let timer = null;
    const end = follow(() => {
      timer ??= setTimeout(() => { timer = null; set((n) => n + 1); }, 250);
    }, setState);

    return () => { clearTimeout(timer); end(); };
  }, []);
  return [news, state];
}

// 1 to 7 choose a view, unless somebody types.
function useKeys() {
  useEffect(() => {
    const press = (e) => {
      const view = VIEWS[Number(e.key) - 1];

      if (view && !e.ctrlKey && !e.metaKey && !e.altKey && !/INPUT|TEXTAREA|SELECT/.test(e.target.tagName))
        go(view[0]);
    };

    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function Page() {
  const [name, ...rest] = usePlace();
  const [news, state] = useNews();
  const [key, title, View] = VIEWS.find((v) => v[0] === name) ?? VIEWS[0];
  const where = useAnswer("status", {}, news);

  useKeys();
  useEffect(() => { document.title = `${title} · snap`; }, [title]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main").focus(); }}>Skip to content</a>
      <header>
        <h1>snap</h1>
        <nav aria-label="views">
          {VIEWS.filter((v) => v[0] !== "diff" || key === "diff").map(([k, label], i) => (
            <a href={`#${k}`} aria-current={k === key ? "page" : undefined} title={`key ${i + 1}`}>{label}</a>
          ))}
        </nav>
        <span class="where">{plain(where.answer?.project ?? "")}</span>
        <span class={`state ${state === "live" ? "live" : "away"}`} role="status">{state === "live" ? "live" : plain(state)}</span>
      </header>
      <main id="main" tabIndex={-1}><View key={key} at={rest} news={news} go={go} /></main>
    </>
  );
}

render(<Page />, document.getElementById("app"));
