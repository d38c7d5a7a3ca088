// build.mjs [OUTPUT] - the page as one file: script and style in it, named by their hashes.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 80 * 1024;

const built = await build({
  entryPoints: ["src/main.jsx"],
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
const page = readFileSync("src/page.html", "utf8")
  .replace("POLICY", () => policy)
  .replace("/* STYLE */", () => style)
  .replace("/* SCRIPT */", () => script);
const packed = gzipSync(page, { level: 9 });

writeFileSync(process.argv[2] ?? "page.html.gz", packed);
console.log(`${page.length} bytes, ${packed.length} packed`);
if (packed.length > LIMIT) {
  console.error(`the page may have ${LIMIT} bytes packed`);
  process.exit(1);
}
