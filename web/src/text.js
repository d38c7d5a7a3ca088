// Numbers and times as people read them; names with what cannot be seen made visible.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function size(bytes) {
  let n = bytes, unit = 0;

  while (n >= 1024 && unit < UNITS.length - 1) {
    n /= 1024;
    unit++;
  }
  return unit === 0 ? `${n} B` : `${n.toFixed(1)} ${UNITS[unit]}`;
}

export function duration(ms) {
  if (ms == null)
    return "";
  if (ms < 1000)
    return `${Math.round(ms)} ms`;
  if (ms < 60000)
    return `${(ms / 1000).toFixed(1)} s`;
  return ms < 3600000 ? `${Math.floor(ms / 60000)} min` : `${(ms / 3600000).toFixed(1)} h`;
}

export function ago(time) {
  const s = (Date.now() - Date.parse(time)) / 1000;

  if (s < 60)
    return "just now";
  if (s < 3600)
    return `${Math.floor(s / 60)} min ago`;
  if (s < 86400)
    return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} days ago`;
}

export const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
export const id = (s) => (s ? s.slice(0, 8) : "");

// Control characters, and those that turn text around or cannot be seen, as their numbers.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export function plain(s) {
  return String(s).replace(HIDDEN, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

// What a program printed, as pieces with the colour that it asked for; other sequences are left out.
const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

export function colored(output) {
  const pieces = [];
  let color = "";

  // Every second part is a sequence.
  // eslint-disable-next-line no-control-regex
  output.split(/(\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[()][0-9A-Za-z])/).forEach((part, i) => {
    const code = /^\u001b\[([0-9;]*)m$/.exec(part);

    if (i % 2 === 0 && part !== "")
      pieces.push({ color, text: plain(part) });
    for (const n of i % 2 === 1 && code ? code[1].split(";").map(Number) : []) {
      if (n === 0 || n === 39)
        color = "";
      else if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97))
        color = COLORS[n % 10];
    }
  });
  return pieces;
}
