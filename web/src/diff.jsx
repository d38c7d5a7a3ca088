// What differs between two states: a tree of files, and each of them side by side or in one column.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { html, parse } from "diff2html";
import { Answer, useAnswer } from "./parts.jsx";
import { Badge } from "./table.jsx";
import { count, id, plain } from "./text.js";
import { Tree } from "./tree.jsx";
import "diff2html/bundles/css/diff2html.min.css";

const LARGE = 400; // lines of a file that is folded at first
const OPEN = 20, PAGE = 100; // files that are open at first, and that are on the page at once

// The part of the patch for each file, in their order: names in a patch are quoted and cut by readers.
// diff2html escapes what it is given; what cannot be seen is made visible before.
function draw(patch, files, sides) {
  const parts = patch.split(/^(?=diff --git )/m).filter((p) => p.startsWith("diff --git "));
  const named = files.filter((f) => f.in_patch);

  return new Map(parts.length !== named.length
    ? [[null, { raw: plain(patch) }]]
    : named.map((f, i) => [f.path, one(plain(parts[i]), sides)]));
}

function one(part, sides) {
  const [file, ...more] = parse(part, { drawFileList: false });

  if (!file || more.length > 0)
    return { raw: part, lines: 0 };
  return {
    lines: file.addedLines + file.deletedLines,
    html: () => html([file], {
      drawFileList: false, matching: "lines", colorScheme: "auto",
      outputFormat: sides ? "side-by-side" : "line-by-line",
    }),
  };
}

// `chosen` is another object each time that somebody asks for this file.
function File({ file, drawn, open, chosen }) {
  const [shown, show] = useState(open && (!drawn || drawn.lines <= LARGE));
  const made = useMemo(() => (shown && drawn?.html ? drawn.html() : ""), [shown, drawn]);
  const box = useRef();

  useEffect(() => {
    if (chosen) {
      show(true);
      box.current.scrollIntoView();
    }
  }, [chosen]);
  return (
    <details open={shown} onToggle={(e) => show(e.currentTarget.open)} ref={box}>
      <summary>
        <code>{plain(file.old_path && file.old_path !== file.path ? `${file.old_path} → ${file.path}` : file.path)}</code>
        <span class="plus">+{file.added}</span><span class="minus">-{file.removed}</span>
        <Badge>{file.status}</Badge>
        {file.binary && <Badge>binary</Badge>}
        {file.mode_changed && <Badge kind="warn">{file.old_mode} → {file.new_mode}</Badge>}
      </summary>
      {made && <div dangerouslySetInnerHTML={{ __html: made }} />}
      {shown && drawn?.raw && <pre>{drawn.raw}</pre>}
      {shown && !drawn && <p class="quiet">No lines to show.</p>}
    </details>
  );
}

function Pages({ first, n, turn }) {
  if (n <= PAGE)
    return null;
  return (
    <p class="buttons">
      <button disabled={first === 0} onClick={() => turn(first - PAGE)}>Files before</button>
      <span class="quiet">{first + 1} to {Math.min(first + PAGE, n)} of {n}</span>
      <button disabled={first + PAGE >= n} onClick={() => turn(first + PAGE)}>Files behind</button>
    </p>
  );
}

function Files({ answer, sides }) {
  const { files } = answer;
  const drawn = useMemo(() => draw(answer.patch ?? "", files, sides), [answer, sides]);
  const [first, turn] = useState(0);
  const [chosen, choose] = useState({});

  if (drawn.has(null))
    return <pre>{drawn.get(null).raw}</pre>;
  return (
    <div class="diff">
      <Tree files={files} choose={(file) => {
        turn(Math.floor(files.indexOf(file) / PAGE) * PAGE);
        choose({ file });
      }} />
      <div>
        <Pages first={first} n={files.length} turn={turn} />
        {files.slice(first, first + PAGE).map((f, i) => (
          <File key={`${f.path}${sides}`} file={f} drawn={drawn.get(f.path)} open={i < OPEN} chosen={chosen.file === f && chosen} />
        ))}
        <Pages first={first} n={files.length} turn={turn} />
      </div>
    </div>
  );
}

export function Diff({ at }) {
  const [sides, setSides] = useState(innerWidth > 900);
  const values = { a: at[0], b: at[1] };
  const diff = useAnswer(at[0] ? "diff" : null, values);

  if (!at[0])
    return <p class="empty">Choose two snapshots in the timeline, or a clone.</p>;
  return (
    <Answer of={diff}>{(answer) => (
      <>
        <div class="bar">
          <h2><code>{id(answer.from)}</code> → <code>{plain(answer.to)}</code></h2>
          <span class="quiet">{count(answer.files.length, "file")}</span>
          <label><input type="checkbox" checked={sides} onChange={() => setSides(!sides)} /> side by side</label>
        </div>
        {answer.files.length === 0 ? <p class="empty">Nothing differs.</p> : <Files answer={answer} sides={sides} />}
      </>
    )}</Answer>
  );
}
