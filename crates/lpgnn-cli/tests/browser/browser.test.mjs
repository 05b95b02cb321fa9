// Reports and the live page in a real browser. LPGNN is the program, CHROMIUM the browser.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const HOSTILE = ["<script>window.hit = 1</script>", `"quotes' & <b>bold</b>`, "\u202Eright to left\u202C שלום", `long ${"x".repeat(10_000)} name`];
const place = mkdtempSync(join(tmpdir(), "lpgnn-browser-"));
const at = (name) => join(place, name);
let browser;

const lpgnn = (...options) => execFileSync(process.env.LPGNN, options, { cwd: place, stdio: ["ignore", "pipe", "pipe"] });

// Rings, whose class is a hostile name.
function writeRings(folder) {
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const nodes = ["graph,id,kind"], edges = ["graph,source,target"], graphs = ["graph,y"];
  for (let k = 0; k < 48; k += 1) {
    const size = 3 + (k % 4);
    graphs.push(`${k},${quoted(HOSTILE[k % 4])}`);
    for (let v = 0; v < size; v += 1) {
      nodes.push(`${k},${v},${v % 2 ? "a" : "b"}`);
      edges.push(`${k},${v},${(v + 1) % size}`);
    }
  }
  mkdirSync(at(folder));
  for (const [name, lines] of Object.entries({ nodes, edges, graphs })) writeFileSync(join(at(folder), `${name}.csv`), `${lines.join("\n")}\n`);
}

before(async () => {
  writeRings("rings");
  lpgnn("data", "generate", "clique", "--graphs", "20", "--out", "task");
  lpgnn("train", "task", "--epochs", "40", "--eval-every", "4", "--out", "one");
  lpgnn("train", "task", "--epochs", "30", "--eval-every", "4", "--seed", "5", "--out", "two <img src=x onerror=alert(1)>");
  lpgnn("report", "one", "--data", "--out", "one.html");
  lpgnn("report", "one", "two <img src=x onerror=alert(1)>", "--out", "both.html");
  lpgnn("train", "rings", "--epochs", "10", "--eval-every", "2", "--out", "rings-run");
  lpgnn("report", "rings-run", "--data", "--out", "rings.html");
  lpgnn("crossval", "task", "--folds", "3", "--epochs", "10", "--out", "cv", "--report");
  writeFileSync(at("space.toml"), '[values]\n"model.state-dim" = [4, 8]\n"training.solver.weights.lr" = [0.001, 0.01, 0.05]\n"model.transition" = ["gnn-sum", "gnn-mean"]\n');
  lpgnn("search", "task", "--space", "space.toml", "--epochs", "12", "--min-epochs", "4", "--out", "search", "--report");
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
});

after(async () => {
  await browser?.close();
  rmSync(place, { recursive: true, force: true });
});

// Opens a page, and fails if anything goes wrong in it.
async function withPage(address, options, use) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, ...options });
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => { if (message.type() === "error" || message.type() === "warning") problems.push(message.text()); });
  page.on("dialog", (dialog) => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  try {
    await page.goto(address.startsWith("http:") ? address : pathToFileURL(at(address)).href);
    const result = await use(page);
    assert.deepEqual(problems, []);
    return result;
  } finally {
    await page.close();
  }
}

// The titles of the charts that draw nothing but axes.
const empty = (page) => page.evaluate(() => [...document.querySelectorAll("figure")].filter((figure) => {
  const picture = figure.querySelector("svg");
  if (!picture) return !figure.querySelector("p, table");
  const marks = [...picture.querySelectorAll("polyline, circle, polygon, rect")];
  const box = picture.getBoundingClientRect();
  return box.width < 100 || box.height < 80 || !marks.some((mark) => mark.getBBox().width + mark.getBBox().height > 0);
}).map((figure) => figure.querySelector("figcaption").textContent));

const titles = (page) => page.locator("figcaption").evaluateAll((all) => all.map((one) => one.firstChild.textContent));
const chart = (page, title) => page.locator("figure").filter({ has: page.locator("figcaption", { hasText: title }) }).first();

test("every chart of a run draws, and has a table behind it", () => withPage("one.html", {}, async (page) => {
  assert.deepEqual(await empty(page), []);
  const found = await titles(page);
  for (const title of ["Loss", "Accuracy", "Residual |x − f(x)|", "Cheating gap", "Multipliers |λ|", "Gradient norms", "Spectral radius of ∂f/∂x", "Learning rate of the weights", "Seconds per epoch", "ROC", "Calibration", "Residual per graph", "Iterations per graph", "States, first two principal components"]) assert.ok(found.includes(title), title);
  const accuracy = chart(page, "Accuracy");
  await accuracy.locator("summary").click();
  await accuracy.locator("tbody tr").first().waitFor();
  assert.equal(await accuracy.locator("tbody tr").count(), 10);
  const described = await page.locator("figure svg").evaluateAll((all) => all.every((one) => one.getAttribute("role") === "img" && one.getAttribute("aria-label")));
  assert.ok(described, "screen readers are told what a picture is");
}));

for (const [file, charts] of [["cv/report.html", ["Test accuracy of each fold", "Test accuracy against epochs"]], ["search/report.html", ["Trials as parallel coordinates", "val accuracy against lr", "val accuracy against transition"]], ["both.html", ["Loss", "Accuracy"]]]) {
  test(`every chart of ${file} draws`, () => withPage(file, {}, async (page) => {
    assert.deepEqual(await empty(page), []);
    const found = await titles(page);
    for (const title of charts) assert.ok(found.includes(title), `${title} in ${found}`);
  }));
}

test("overlays toggle, axes change, and keys read values", () => withPage("both.html", {}, async (page) => {
  const loss = chart(page, "Loss");
  const lines = () => loss.locator("polyline").count();
  assert.equal(await lines(), 2);
  await loss.locator("button.legend").nth(1).click();
  assert.equal(await lines(), 1);
  assert.equal(await loss.locator("button.legend").nth(1).getAttribute("aria-pressed"), "false");
  await loss.locator("button.legend").nth(1).click();
  assert.equal(await lines(), 2);
  const ticks = () => loss.locator("svg text").allTextContents();
  const before = await ticks();
  await loss.locator("button.toggle").click();
  assert.notDeepEqual(await ticks(), before);
  await loss.locator("svg").focus();
  await page.keyboard.press("End");
  assert.match(await loss.locator(".readout").textContent(), /epoch 40 .*one: /);
  await page.keyboard.press("ArrowLeft");
  assert.match(await loss.locator(".readout").textContent(), /epoch 39 /);
}));

test("states are coloured by class, by error and by |λ|", () => withPage("one.html", {}, async (page) => {
  const map = chart(page, "States, first two");
  const colours = () => map.locator("svg circle, svg rect, svg polygon").evaluateAll((all) => all.map((one) => one.getAttribute("fill")).join());
  const seen = new Set([await colours()]);
  for (const name of ["error", "split", "|λ|"]) {
    await map.locator("select").selectOption({ label: name });
    seen.add(await colours());
  }
  assert.equal(seen.size, 4);
}));

test("graphs pan and zoom, by pointer and by keys", () => withPage("one.html", {}, async (page) => {
  const picture = page.locator(".drawing svg").first();
  await picture.scrollIntoViewIfNeeded();
  const view = () => picture.getAttribute("viewBox");
  const start = await view();
  const box = await picture.boundingBox();
  await page.mouse.move(box.x + 100, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 160, box.y + 130, { steps: 4 });
  await page.mouse.up();
  const dragged = await view();
  assert.notEqual(dragged, start);
  assert.ok(Number(dragged.split(" ")[0]) < Number(start.split(" ")[0]), "the picture follows the pointer");
  await picture.focus();
  await page.keyboard.press("ArrowRight");
  const moved = await view();
  assert.notEqual(moved, dragged);
  await page.keyboard.press("+");
  assert.ok(Number((await view()).split(" ")[2]) < Number(moved.split(" ")[2]));
  assert.ok((await page.locator(".drawing circle[fill=none]").count()) > 0, "mistakes are ringed");
}));

test("charts are saved as SVG, PNG and CSV", () => withPage("one.html", { acceptDownloads: true }, async (page) => {
  const saved = async (kind) => {
    const [download] = await Promise.all([page.waitForEvent("download"), chart(page, "Accuracy").locator(".save button", { hasText: kind }).click()]);
    return [download.suggestedFilename(), readFileSync(await download.path())];
  };
  const [svgName, svg] = await saved("SVG");
  assert.equal(svgName, "accuracy.svg");
  assert.match(svg.toString(), /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  assert.doesNotMatch(svg.toString(), /var\(/);
  const [, png] = await saved("PNG");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  const [, csv] = await saved("CSV");
  assert.match(csv.toString(), /^epoch,train,val,test\r\n4,0\.\d+,/);
}));

test("names in data are text, whatever is in them", () => withPage("rings.html", {}, async (page) => {
  assert.deepEqual(await empty(page), []);
  const text = await page.locator("main").evaluate((main) => main.textContent);
  for (const name of HOSTILE) assert.ok(text.includes(name), name.slice(0, 40));
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("main script, main img, main b b").count(), 0);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "a long name does not widen the page");
}));

test("names of runs are text", () => withPage("both.html", {}, async (page) => {
  assert.equal(await page.locator("main img").count(), 0);
  assert.ok((await page.locator("main").textContent()).includes("two <img src=x onerror=alert(1)>"));
}));

test("the page is dark where the system is, fits a phone, and prints", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await withPage("one.html", { colorScheme: "light" }, background);
  const dark = await withPage("one.html", { colorScheme: "dark" }, background);
  assert.notEqual(light, dark);
  await withPage("one.html", { viewport: { width: 360, height: 740 } }, async (page) => {
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is wider than the phone");
  });
  await withPage("one.html", { colorScheme: "dark" }, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("nav").isVisible(), false);
    assert.equal(await background(page), "rgb(255, 255, 255)");
    assert.ok(await chart(page, "Accuracy").locator("svg").isVisible());
  });
});

// Starts a training, and waits for the address that it prints.
async function start(...options) {
  const training = spawn(process.env.LPGNN, options, { cwd: place, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const exit = new Promise((resolve) => { training.on("exit", resolve); });
  const address = await new Promise((resolve, reject) => {
    training.stderr.on("data", (part) => {
      said += part;
      const found = said.match(/live page at (\S+)/);
      if (found) resolve(found[1]);
    });
    training.on("exit", () => reject(new Error(said)));
  });
  return { training, address, exit };
}

const epoch = (page) => page.locator("#live [role=status]").textContent().then((text) => Number(text.match(/epoch (\d+) of/)?.[1] ?? 0));

test("the live page follows a training, keeps what was chosen, and stops it", async () => {
  const { training, address, exit } = await start("train", "task", "--epochs", "1000000", "--patience", "none", "--eval-every", "50", "--live", "--out", "followed");
  try {
    await withPage(address, {}, async (page) => {
      await page.waitForFunction(() => /epoch \d+ of 1000000/.test(document.querySelector("#live").textContent));
      const first = await epoch(page);
      await page.waitForFunction((first) => Number(document.querySelector("#live").textContent.match(/epoch (\d+) of/)?.[1]) > first, first);
      await page.waitForFunction(() => document.querySelectorAll("figure polyline").length > 8);
      const legend = chart(page, "Residual").locator("button.legend").nth(1);
      await legend.click();
      const drawn = () => chart(page, "Loss").locator("polyline").first().getAttribute("points");
      const before = await drawn();
      await page.waitForFunction((before) => document.querySelector("figure polyline").getAttribute("points") !== before, before);
      assert.equal(await legend.getAttribute("aria-pressed"), "false", "what was hidden stays hidden");
      await page.locator("button.stop").click();
      await page.waitForFunction(() => document.querySelector("#live").textContent.includes("Training has ended: stopped on request"), null, { timeout: 20_000 });
      await page.locator("#predictions").waitFor();
      assert.deepEqual(await empty(page), []);
    });
    assert.equal(await exit, 130, "as after Ctrl-C");
  } finally {
    training.kill("SIGKILL");
  }
});

test("the live page of a search shows trials", async () => {
  const { training, address, exit } = await start("search", "task", "--space", "space.toml", "--epochs", "200000", "--patience", "none", "--min-epochs", "100", "--live", "--out", "live-search");
  try {
    await withPage(address, {}, async (page) => {
      await page.locator("#trials").waitFor({ timeout: 20_000 });
      assert.ok((await page.locator("#summary h3").count()) >= 1);
      await page.locator("button.stop").click();
      await page.waitForFunction(() => document.querySelector("#live").textContent.includes("Training has ended"), null, { timeout: 20_000 });
    });
    assert.equal(await exit, 130);
  } finally {
    training.kill("SIGKILL");
  }
});
