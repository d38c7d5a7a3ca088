// story.mjs PACKAGES CHROMIUM PLAN - does in a browser what PLAN, a JSON file, says; prints what it found.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [packages, executablePath, file] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const plan = JSON.parse(readFileSync(file, "utf8"));
const found = { violations: [], errors: [], outside: [], wide: [], said: {} };

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

async function open(more) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, bypassCSP: Boolean(more.axe), ...more.context });
  const page = await context.newPage();

  page.on("pageerror", (e) => found.errors.push(e.message));
  page.on("console", (m) => m.type() === "error" && found.errors.push(m.text()));
  page.on("request", (r) => new URL(r.url()).host === new URL(plan.url).host || r.url().startsWith("data:") || found.outside.push(r.url()));
  page.setDefaultTimeout(60000);
  return page;
}

async function look(page, view, name) {
  await page.evaluate((v) => { location.hash = v; }, view);
  await page.waitForFunction(() => !document.querySelector(".waits"));
  await page.evaluate(axe);
  const result = await page.evaluate(() => axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
  for (const v of result.violations)
    found.violations.push(`${name} ${view}: ${v.id}: ${v.nodes[0].html.slice(0, 200)}`);
  if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth))
    found.wide.push(`${name} ${view}`);
  if (view.startsWith("diff/"))
    found.said.diff = await page.locator("main").innerText();
  if (plan.shots)
    await page.screenshot({ path: `${plan.shots}/${name}-${view.split("/")[0]}.png` });
}

// The test does what it has for this place; nobody waits for it but by what the page shows then.
const reach = (place) => console.log(JSON.stringify({ reached: place }));

// The plan in the dialog, and then its button.
async function promote(page, row) {
  await row.getByRole("button", { name: "Promote" }).click();
  const dialog = page.getByRole("dialog").filter({ visible: true });
  await dialog.getByText("What would change").waitFor();
  found.said.plan = await dialog.innerText();
  await dialog.getByRole("button", { name: "Promote" }).click();
  await page.waitForFunction(() => !document.querySelector("dialog[open]"));
}

const steps = {
  // Every view, light and wide, dark and narrow.
  async views() {
    for (const [name, context] of [["light", { colorScheme: "light" }],
      ["dark", { colorScheme: "dark", viewport: { width: 400, height: 800 } }]]) {
      const page = await open({ axe: true, context });

      await page.goto(plan.url);
      await page.getByText("live").waitFor();
      found.said.address = page.url();
      for (const view of plan.views)
        await look(page, view, name);
      await page.context().close();
    }
  },
  // The best of some, and what the page's own thread computed for it, which a busy machine does not change.
  async first_paint() {
    const ms = [], cpu = [];

    for (let i = 0; i < 5; i++) {
      const page = await open({});
      const inside = await page.context().newCDPSession(page);

      await inside.send("Performance.enable", { timeDomain: "threadTicks" });
      await page.goto(plan.url);
      await page.locator("nav").waitFor();
      const { metrics } = await inside.send("Performance.getMetrics");
      cpu.push(1000 * metrics.find((m) => m.name === "ThreadTime").value);
      ms.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
      await page.context().close();
    }
    found.said.paint = Math.min(...ms);
    found.said.cpu = Math.min(...cpu);
  },
  // What kind each row is of, all of them and without those that nobody asked for; a run is opened.
  async timeline() {
    const page = await open({});
    const rows = () => page.evaluate(() => [...document.querySelectorAll(".timeline li")].map((l) => [l.className.split(" ").at(-1), l.innerText]));

    await page.goto(plan.url);
    await page.locator(".timeline li.run").waitFor();
    found.said.rows = await rows();
    for (const label of ["automatic ones", "agents' steps", "runs", "promotions"])
      await page.getByLabel(label).uncheck();
    found.said.without = (await rows()).map(([kind]) => kind);
    await page.getByLabel("runs").check();
    await page.locator(".timeline li.run button").click();
    await page.locator("section .output").waitFor();
    found.said.opened = new URL(page.url()).hash.slice(1);
    await page.context().close();
  },
  // Scrolled to the end of what the server would need long to make.
  async long() {
    const page = await open({});
    const time = (i) => new Date(Date.UTC(2026, 0, 2) - 1000 * i).toISOString();
    const name = (i, length) => i.toString(16).padStart(length, "0");
    const snapshots = Array.from({ length: plan.snapshots }, (_, i) => ({
      snapshot: name(i, 16), parent: i + 7 < plan.snapshots ? name(i + 7, 16) : null, time: time(i), message: `number ${i}`,
      meta: {}, tags: [], origin: i % 3 ? `clone-${i % plan.clones}` : ".", files: 1, bytes: i, automatic: i % 5 === 0,
    }));
    const answer = (change) => async (route) => {
      const got = await (await route.fetch()).json();
      await route.fulfill({ json: change(got, route.request().postDataJSON().count) });
    };
    let most = 0;
    const drawn = async () => { most = Math.max(most, await page.locator(".timeline li").count()); };

    await page.route("**/api/timeline", answer((got, n) => ({ ...got, snapshots: snapshots.slice(0, n) })));
    await page.route("**/api/runs", answer((got, n) => ({
      ...got, runs: Array.from({ length: Math.min(n, plan.runs) }, (_, i) => ({
        run: name(i, 12), clone: `clone-${i % plan.clones}`, kept: true, state: "ended", exit_code: 0, limit: null,
        command: ["true"], started: time(5 * i), duration_ms: 1,
      })),
    })));
    await page.goto(plan.url);
    await page.locator(".timeline li").first().waitFor();
    found.said.first = await page.evaluate(() => performance.now());
    await drawn();
    for (let n = 200; n <= plan.snapshots; n *= 4) {
      await page.getByRole("button", { name: "Older ones" }).click();
      await page.waitForFunction((more) => Number(document.querySelector(".timeline li").ariaSetSize) > more, n);
      await drawn();
    }
    found.said.total = plan.snapshots + plan.runs;
    await page.waitForFunction((n) => Number(document.querySelector(".timeline li").ariaSetSize) === n, found.said.total);
    found.said.all = await page.evaluate(() => performance.now());
    for (const part of [0.3, 0.6, 1]) {
      await page.evaluate((p) => scrollTo(0, document.documentElement.scrollHeight * p), part);
      await page.waitForFunction(() => [...document.querySelectorAll(".timeline li")].some((l) => {
        const at = l.getBoundingClientRect();
        return at.top >= 0 && at.bottom <= innerHeight;
      }));
      await drawn();
    }
    found.said.last = await page.locator(".timeline li .message").last().innerText();
    found.said.most = most;
    const inside = await page.context().newCDPSession(page);
    await inside.send("HeapProfiler.collectGarbage");
    found.said.heap = (await inside.send("Runtime.getHeapUsage")).usedSize;
    await page.context().close();
  },
  // A file that is not on the first page is chosen in the tree.
  async tree() {
    const page = await open({});

    await page.goto(plan.url);
    await page.evaluate((clone) => { location.hash = `diff/${clone}`; }, plan.clone);
    const tree = page.getByRole("navigation", { name: "files" });
    await tree.getByText("a/b/").waitFor();
    found.said.tree = await tree.innerText();
    await tree.getByRole("button", { name: plan.file }).click();
    const file = page.locator(".diff > div > details").filter({ has: page.locator("summary", { hasText: plan.file }) });
    await file.locator(".d2h-wrapper").waitFor();
    found.said.file = await file.innerText();
    found.said.drawn = await page.locator(".diff > div > details").count();
    await page.context().close();
  },
  // Chosen by a click, with the plan shown before the button does it.
  async promote_arm() {
    const page = await open({});

    await page.goto(plan.url);
    await page.getByRole("link", { name: "Experiments" }).click();
    await page.getByRole("button", { name: plan.experiment }).click();
    await page.getByText("wins", { exact: true }).waitFor();
    await promote(page, page.getByRole("row").filter({ hasText: "wins" }));
    await page.context().close();
  },
  // Opened before there is one, and never loaded again.
  async watch_live() {
    const page = await open({});
    let loads = 0;

    page.on("load", () => loads++);
    await page.goto(plan.url);
    await page.getByText("live", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Experiments" }).click();
    await page.getByText("No experiments yet").waitFor();
    reach("open");
    await page.getByRole("button", { name: plan.experiment, exact: true }).click();
    const arms = page.getByRole("region", { name: "Arm" });
    const arm = (name, state) => arms.getByRole("row").filter({ has: page.locator("strong", { hasText: new RegExp(`^${name}$`) }) }).filter({ hasText: state });
    await arm("a", "running").waitFor();
    await arm("b", "running").waitFor();
    found.said.early = await arms.getByRole("button", { name: "Promote" }).count();
    reach("running");
    await arm("b", "failed").waitFor();
    await arm("a", "running").waitFor();
    reach("one failed");
    await arm("a", "passed").waitFor();
    await arm("a", "wins").waitFor();
    await promote(page, arm("a", "wins"));
    found.said.loads = loads;
    await page.context().close();
  },
  // The curves of a run that goes on, drawn again as it does; then of the same run, ended.
  async curves() {
    const page = await open({ axe: true });
    const charts = page.locator(".curves figure");
    const pixels = () => page.evaluate(() => [...document.querySelectorAll(".curves canvas")].map((c) => c.toDataURL().length).join());

    await page.goto(plan.url);
    await page.getByText("live", { exact: true }).waitFor();
    await look(page, `runs/${plan.run}`, "curves");
    await charts.nth(3).waitFor();
    const before = await pixels();
    await page.waitForFunction((was) => [...document.querySelectorAll(".curves canvas")].map((c) => c.toDataURL().length).join() !== was, before);
    await look(page, `runs/${plan.run}`, "curves");
    reach("live");
    await page.locator("section").getByText("exit 0").waitFor();
    found.said.curves = await charts.allInnerTexts();
    found.said.labels = await charts.locator("[role=img]").evaluateAll((all) => all.map((c) => c.ariaLabel));
    await page.context().close();
  },
  // How the store grew.
  async growth() {
    const page = await open({ axe: true });

    await page.goto(plan.url);
    await page.getByText("live", { exact: true }).waitFor();
    await look(page, "store", "growth");
    await page.locator(".curves figure canvas").nth(2).waitFor();
    found.said.growth = await page.locator(".curves figure").allInnerTexts();
    await page.context().close();
  },
  async conflict() {
    const page = await open({});

    await page.goto(plan.url);
    await page.getByRole("link", { name: "Clones" }).click();
    await page.getByRole("button", { name: plan.clone, exact: true }).click();
    await page.getByText("1 conflict").waitFor();
    found.said.conflict = await page.locator(".three").innerText();
    await page.context().close();
  },
  async approve() {
    const page = await open({});

    await page.goto(plan.url);
    await page.getByRole("link", { name: "Pipeline" }).click();
    await page.getByRole("button", { name: "Approve" }).click();
    const dialog = page.getByRole("dialog").filter({ visible: true });
    await dialog.getByLabel("Reason").fill("looked at it");
    await dialog.getByRole("button", { name: "Approve" }).click();
    await page.waitForFunction(() => !document.querySelector("dialog[open]"));
    await page.context().close();
  },
  // The names of the changes in each column.
  async board() {
    const page = await open({});

    await page.goto(plan.url);
    await page.getByRole("link", { name: "Pipeline" }).click();
    await page.waitForFunction((n) => document.querySelectorAll(".board .card").length === n, plan.changes);
    found.said.board = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".board section")]
      .map((s) => [s.ariaLabel, [...s.querySelectorAll(".card strong")].map((c) => c.innerText)])));
    await page.context().close();
  },
  // The page of somebody else, in the same browser.
  async stranger() {
    const page = await open({});

    await page.goto("data:text/html,<p>elsewhere</p>");
    found.said.stranger = await page.evaluate(async ([url, token]) => {
      const tries = [];
      for (const how of [{}, { mode: "no-cors" }]) {
        try {
          const r = await fetch(`${url}api/clones`, { method: "POST", body: "{}", headers: how.mode ? {} : { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, ...how });
          tries.push(r.type === "opaque" ? "opaque" : r.status);
        } catch { tries.push("refused"); }
      }
      return tries;
    }, [plan.url.split("#")[0], plan.url.split("#t=")[1]]);
    await page.context().close();
    found.outside = [];
    found.errors = [];
  },
  // The page of experiments in the frame of an agent's client, which this page plays.
  async app() {
    const page = await open({});

    await page.goto("data:text/html,<p>a client</p>");
    await page.evaluate(([html, show, promote]) => {
      const frame = document.createElement("iframe");
      window.calls = [];
      addEventListener("message", (e) => {
        const m = e.data, say = (x) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...x }, "*");
        if (e.source !== frame.contentWindow)
          return;
        window.calls.push([m.method, m.params?.name, m.params?.arguments?.dry_run]);
        if (m.method === "ui/initialize")
          say({ id: m.id, result: { protocolVersion: m.params.protocolVersion, hostInfo: { name: "t", version: "1" }, hostCapabilities: {}, hostContext: {} } });
        else if (m.method === "ui/notifications/initialized")
          say({ method: "ui/notifications/tool-result", params: { structuredContent: { ...show, state: "running" }, content: [] } });
        else if (m.method === "tools/call")
          say({ id: m.id, result: { structuredContent: m.params.name === "snap_promote" ? promote : show, content: [] } });
      });
      frame.setAttribute("sandbox", "allow-scripts");
      frame.width = frame.height = 900;
      frame.srcdoc = html;
      document.body.append(frame);
    }, [plan.app, plan.show, plan.promote]);
    const inside = page.frameLocator("iframe");
    await inside.getByText("ended").waitFor();
    await inside.getByText("wins").waitFor();
    await inside.getByRole("button", { name: "Promote…" }).first().click();
    await inside.getByText("A a.txt").waitFor();
    await inside.getByRole("button", { name: "Promote" }).first().click();
    await inside.getByText("promoted").waitFor();
    found.said.calls = await page.evaluate(() => window.calls);
    await page.context().close();
    found.outside = [];
  },
  async wrong_token() {
    const page = await open({});

    await page.goto(plan.url.replace(/#.*/, `#t=${"0".repeat(64)}`));
    await page.getByText("'Authorization'").first().waitFor();
    found.said.wrong = await page.locator("main").innerText();
    await page.context().close();
    found.errors = [];
  },
};

for (const step of plan.steps)
  await steps[step]();
await browser.close();
console.log(JSON.stringify(found));
