// What differs between two states: a list of files, and each of them side by side or in one column.
import { useMemo, useState } from "preact/hooks";
import { html, parse } from "diff2html";
import { Answer, useAnswer } from "./parts.jsx";
import { Badge } from "./table.jsx";
import { count, id, plain } from "./text.js";
import "diff2html/bundles/css/diff2html.min.css";

const LARGE = 400; // lines of a file that is folded at first

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

function File({ file, drawn, open }) {
  const [shown, show] = useState(open && (!drawn || drawn.lines <= LARGE));
  const made = useMemo(() => (shown && drawn?.html ? drawn.html() : ""), [shown, drawn]);

  return (
    <details open={shown} onToggle={(e) => show(e.target.open)} id={`file-${file.path}`}>
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

function Files({ answer, sides }) {
  const drawn = useMemo(() => draw(answer.patch ?? "", answer.files, sides), [answer, sides]);

  if (drawn.has(null))
    return <pre>{drawn.get(null).raw}</pre>;
  return answer.files.map((f, i) => <File key={`${f.path}${sides}`} file={f} drawn={drawn.get(f.path)} open={i < 20} />);
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
