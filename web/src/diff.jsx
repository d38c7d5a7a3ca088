// What differs between two states: a list of files, and each of them side by side or in one column.
import { useMemo, useState } from "preact/hooks";
import { html, parse } from "diff2html";
import { Answer, useAnswer } from "./parts.jsx";
import { Badge } from "./table.jsx";
import { count, id, plain } from "./text.js";
import "diff2html/bundles/css/diff2html.min.css";

const LARGE = 400; // lines of a file that is folded at first

// diff2html escapes what it is given; what cannot be seen is made visible before.
function draw(patch, sides) {
  return parse(plain(patch), { drawFileList: false }).map((file) => ({
    name: file.newName === "/dev/null" ? file.oldName : file.newName,
    lines: file.addedLines + file.deletedLines,
    html: () => html([file], {
      drawFileList: false, matching: "lines", colorScheme: "auto",
      outputFormat: sides ? "side-by-side" : "line-by-line",
    }),
  }));
}

function File({ file, drawn, open }) {
  const [shown, show] = useState(open && (!drawn || drawn.lines <= LARGE));
  const made = useMemo(() => (shown && drawn ? drawn.html() : ""), [shown, drawn]);

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
      {shown && !drawn && <p class="quiet">No lines to show.</p>}
    </details>
  );
}

function Files({ answer, sides }) {
  const drawn = useMemo(() => new Map(draw(answer.patch ?? "", sides).map((d) => [d.name, d])), [answer, sides]);

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
