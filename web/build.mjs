// build.mjs [DIR] - the page of `snap ui`, and the one that agents' clients show beside an experiment.
// Each is one file with its script and style in it, named by their hashes.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 80 * 1024;

// A page of one file: its script and style, made of `entry`, put into `frame`.
async function make(entry, frame) {
  const built = await build({
    entryPoints: [`src/${entry}.jsx`],
    bundle: true,
    minify: true,
    write: false,
    outdir: "out",
    format: "iife",
    target: ["es2022"],
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".css": "css" },
  });
  const text = (end) => built.outputFiles.find((f) => f.path.endsWith(end)).text.trim();
  const hash = (s) => `'sha256-${createHash("sha256").update(s).digest("base64")}'`;
  const script = text(".js").replaceAll("</script", "<\\/script");
  const style = text(".css");
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";

  return readFileSync(`src/${frame}`, "utf8")
    .replace("POLICY", () => policy)
    .replace("/* STYLE */", () => style)
    .replace("/* SCRIPT */", () => script);
}

const out = process.argv[2] ?? ".";
const packed = gzipSync(await make("main", "page.html"), { level: 9 });
const app = await make("app", "app.html");

writeFileSync(`${out}/page.html.gz`, packed);
writeFileSync(`${out}/app.html`, app);
console.log(`page ${packed.length} bytes packed, app ${app.length}`);
if (packed.length > LIMIT) {
  console.error(`the page may have ${LIMIT} bytes packed`);
  process.exit(1);
}
