// Files as a tree of directories.
import { useMemo, useState } from "preact/hooks";
import { count, plain } from "./text.js";

const MANY = 200; // files of a tree whose directories are closed at first, and entries that a list begins with

const fresh = (name) => ({ name, dirs: new Map(), files: [], total: 0 });

function grow(files) {
  const top = fresh("");

  for (const file of files) {
    const words = file.path.split("/");
    const name = words.pop();
    let at = top;

    for (const word of words) {
      if (!at.dirs.has(word))
        at.dirs.set(word, fresh(word));
      at = at.dirs.get(word);
      at.total++;
    }
    at.files.push({ name, file });
  }
  return top;
}

// A directory that holds nothing but another one stands in one line with it.
function joined(dir) {
  let at = dir;

  while (at.files.length === 0 && at.dirs.size === 1) {
    const [only] = at.dirs.values();

    at = { ...only, name: `${at.name}/${only.name}` };
  }
  return at;
}

function Directory({ dir, open, choose }) {
  const [shown, show] = useState(open);
  const at = useMemo(() => joined(dir), [dir]);

  return (
    <li>
      <details open={shown} onToggle={(e) => show(e.currentTarget.open)}>
        <summary>{plain(at.name)}/ {!shown && <span class="quiet">{count(dir.total, "file")}</span>}</summary>
        {shown && <Level dir={at} open={open} choose={choose} />}
      </details>
    </li>
  );
}

function Level({ dir, open, choose }) {
  const [most, set] = useState(MANY);
  const entries = [...dir.dirs.values(), ...dir.files];

  return (
    <ul>
      {entries.slice(0, most).map((e) => (e.dirs
        ? <Directory key={`${e.name}/`} dir={e} open={open} choose={choose} />
        : (
          <li key={e.name}>
            <button class="link" onClick={() => choose(e.file)}>{plain(e.name)}</button>{" "}
            <span class="plus">+{e.file.added}</span> <span class="minus">-{e.file.removed}</span>
          </li>
        )))}
      {entries.length > most && <li><button onClick={() => set(most + MANY)}>{entries.length - most} more</button></li>}
    </ul>
  );
}

export function Tree({ files, choose }) {
  const top = useMemo(() => grow(files), [files]);

  return <nav class="tree" aria-label="files"><Level dir={top} open={files.length <= MANY} choose={choose} /></nav>;
}
