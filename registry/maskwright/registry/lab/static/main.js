// The page: one view object, what changes it, and what shows it.
//
// Each change of source or options compiles, one compilation at a time, the latest wins. Each change of anything asks the
// service for the view's figures; answers that are overtaken are dropped.

import { askAjv } from "./ajv.js";
import { CallFailed, call } from "./api.js";
import { rangeOf, showDiagnostics } from "./diagnostics.js";
import { $, h, say } from "./dom.js";
import { Editor } from "./editor.js";
import { count, milliseconds, tokenWords } from "./format.js";
import { jsonPlaces, placeOf } from "./json-places.js";
import { DEFAULTS, fromLink, toLink } from "./link.js";
import { showArtifact, showComparison, showFigures, showJudgement, showPlace } from "./panels.js";
import { TokenTable, showTape } from "./tokens.js";

const PAUSE = 120, PROGRESS_AFTER = 200, RUN_STEPS = 256;
const view = { ...DEFAULTS, tokens: [] };
const page = { setup: null, compiled: null, shown: null, diagnostics: [], fresh: 0, wantsStart: false, linked: "", modelTokenizer: "" };
const editor = new Editor($("editor"), onSource);
const table = new TokenTable($("tokens"), { onTake: take, onRefused: refused, onUndo: undo });

// -- compiling ---------------------------------------------------------------------------------------------------------

let pause = 0, compiling = false, again = false;

function onSource() {
  view.source = editor.text;
  view.artifact = "";
  clearTimeout(pause);
  pause = setTimeout(compile, PAUSE);
}

async function compile() {
  clearTimeout(pause);
  if (compiling) { again = true; return; }
  compiling = true;
  const began = performance.now(), order = compileOrder();
  const progress = setInterval(() => tellProgress(performance.now() - began), 100);
  const settle = () => { clearInterval(progress); $("compile-progress").hidden = true; };
  try {
    const result = await call("compile", order);
    settle();
    if (!again) await compiled(order, result, performance.now() - began);
  } catch (error) {
    if (!again) failedToCompile(error);
  } finally {
    settle();
    compiling = false;
    if (again) { again = false; compile(); }
  }
}

function compileOrder() {
  const whitespace = /^\d+$/.test(view.whitespace) ? Number(view.whitespace) : view.whitespace;
  return {
    kind: view.kind, source: view.source, tokenizer: view.tokenizer,
    options: { whitespace, formats: view.formats, residual: view.residual, regex_dialect: view.regex_dialect },
  };
}

function tellProgress(passed) {
  if (passed < PROGRESS_AFTER) return;
  $("compile-progress").hidden = false;
  status(`Compiling … ${(passed / 1000).toFixed(1)} s${passed > 1500 && !page.compiled ? ". The compiler is being loaded." : ""}`);
}

async function compiled(order, result, passed) {
  page.diagnostics = result.refused ? result.diagnostics : result.report.notes ?? [];
  showFindings();
  document.body.classList.remove("waiting");
  document.body.classList.toggle("stale", result.refused);
  if (result.refused) {
    const n = result.diagnostics.filter((d) => (d.severity ?? "error") === "error").length;
    status(`Refused: ${n === 1 ? "one error" : `${n} errors`}. ${page.compiled ? "The rest still shows the last source that compiled." : ""}`, "refused");
    return;
  }
  page.compiled = { ...result, source: order.source, kind: order.kind };
  if (page.linked && page.linked !== result.artifact) {
    notice("This link was made with another compiler: the same source gives another artifact here, and its view may differ.");
  }
  page.linked = "";
  view.artifact = result.artifact;
  status(`Compiled in ${milliseconds(passed / 1000)}: ${count(result.report.states)} states, ${count(result.report.masks)} masks`, "done");
  showArtifact($("artifact"), result);
  if (page.wantsStart) {
    page.wantsStart = false;
    const start = exampleOf(view.example)?.start_text;
    view.tokens = start ? (await call("split", { artifact: result.artifact, text: start })).tokens : [];
  }
  await refresh();
}

function failedToCompile(error) {
  page.diagnostics = [];
  showFindings();
  document.body.classList.add("stale");
  status(error instanceof CallFailed ? `Not compiled: ${error.message}` : "The service doesn't answer.", "refused");
}

function status(text, name = "") {
  $("compile-status").textContent = text;
  $("compile-status").className = name;
}

function showFindings() {
  showDiagnostics($("diagnostics"), page.diagnostics, view.source, view.kind, ({ start, end }) => editor.select(start, end));
  markSource();
}

/** Where the text stands, and on top where the findings are. */
function markSource({ reveal = false } = {}) {
  const marks = [];
  const current = page.compiled?.source === view.source && page.shown;
  if (current && view.kind === "json_schema" && page.shown.place.pointer) {
    const at = placeOf(jsonPlaces(view.source), page.shown.place.pointer);
    if (at) marks.push({ start: at.keyStart ?? at.start, end: at.end, name: "here" });
  }
  for (const diagnostic of page.diagnostics) {
    const range = rangeOf(diagnostic, view.source, view.kind);
    if (range) marks.push({ ...range, name: diagnostic.severity ?? "error" });
  }
  editor.mark(marks, { reveal });
}

// -- the view ----------------------------------------------------------------------------------------------------------

let asked = 0;

function order(more = {}) {
  const { seed, temperature, top_k, top_p } = view;
  return {
    artifact: page.compiled.artifact, tokens: view.tokens, budget: view.budget, search: view.search,
    speaker: { name: view.speaker, example: view.speaker === "table" ? view.example : "", prompt: view.prompt },
    settings: { seed, temperature, top_k, top_p }, ...more,
  };
}

/** A call about the artifact; where the service has forgotten it, it's compiled again first. */
async function about(name, more) {
  try {
    return await call(name, order(more));
  } catch (error) {
    if (error.reason !== "UNKNOWN_ARTIFACT") throw error;
    const result = await call("compile", { ...compileOrder(), source: page.compiled.source, kind: page.compiled.kind });
    page.compiled.artifact = result.artifact;
    return call(name, order(more));
  }
}

async function refresh() {
  if (!page.compiled) return;
  const mine = ++asked;
  try {
    const shown = await about("state");
    if (mine === asked) await show(shown);
  } catch (error) {
    if (mine === asked) notice(error.message);
  }
}

async function show(shown) {
  if (shown.taken < view.tokens.length) {
    say(`The text was cut after ${shown.taken} tokens: what follows isn't legal here.`);
    view.tokens = view.tokens.slice(0, shown.taken);
  }
  page.shown = shown;
  document.body.classList.remove("waiting");
  $("token-count").textContent = `${count(view.tokens.length)} token${view.tokens.length === 1 ? "" : "s"}`;
  showTape($("tape"), shown.pieces, page.fresh, back);
  page.fresh = 0;
  showFigures($("figures"), shown.figures, vocabularySize());
  const most = Math.max(...shown.rows.flatMap((r) => [r.raw, r.after]), 0);
  table.show(shown.rows, { neutral: shown.neutral, most });
  showPlace({ place: shown.place, kind: view.kind, onPointer: toPointer });
  markSource({ reveal: true });
  showSpeaker(shown.source);
  showSliders();
  $("budget-field").classList.toggle("short", shown.figures.short);
  const { ended } = shown.figures;
  for (const id of ["draw", "run"]) $(id).disabled = ended;
  for (const id of ["undo", "restart"]) $(id).disabled = !view.tokens.length;
  await judge();
  if (view.compare) await compare();
  await writeLink();
}

function showSpeaker(source) {
  const note = {
    table: "The example's table of texts speaks. Its weights are the probabilities.",
    noise: view.speaker === "table"
      ? "The table has nothing to say here, or nothing that's legal: seeded noise speaks instead."
      : "Seeded noise: a model that knows nothing.",
    model: "The real model speaks.",
  }[source];
  $("speaker-note").textContent = note;
  $("sampling-brief").textContent = [
    { table: "example table", noise: "seeded noise", model: "real model" }[view.speaker], `seed ${view.seed}`,
    view.temperature !== 1 && `temperature ${view.temperature}`, view.top_k && `top-k ${view.top_k}`,
    view.top_p !== 1 && `top-p ${view.top_p}`, view.budget && `budget ${view.budget}`,
  ].filter(Boolean).join(" · ");
}

function toPointer(pointer) {
  const at = placeOf(jsonPlaces(view.source), pointer);
  if (at) editor.select(at.keyStart ?? at.start, at.end);
}

async function writeLink() {
  history.replaceState(null, "", await toLink(view, page.setup.examples));
}

// -- steps -------------------------------------------------------------------------------------------------------------

async function take(row) {
  view.tokens = [...view.tokens, row.token];
  page.fresh = 1;
  view.search = $("search").value = "";
  await refresh();
  announce(row.stop ? "End of text" : `Took ${tokenWords(row.text)}`);
}

function refused(row) {
  const before = row.taken ? ` after its first ${row.taken === 1 ? "byte" : `${row.taken} bytes`}` : "";
  const text = row.stop ? "The text may not end here: it isn't complete."
    : row.state === "late" ? `“${row.text}” is legal, but then the text couldn't be finished within the budget.`
      : `“${row.text}” is masked: no text of the constraint goes on this way${before}.`;
  say(text);
  notice(text, 6000);
}

function undo() {
  if (!view.tokens.length) return;
  back(view.tokens.length - 1);
}

async function back(n) {
  if (n === view.tokens.length) return;
  view.tokens = view.tokens.slice(0, n);
  await refresh();
  announce(n ? `Back to ${n} tokens` : "Back to the start");
}

async function drawn(steps) {
  if (!page.compiled) return;
  busy(true);
  try {
    const run = await about("run", { steps });
    view.tokens = [...view.tokens, ...run.tokens];
    page.fresh = run.tokens.length;
    await refresh();
    const why = { steps: steps > 1 ? `Cut off after ${steps} tokens: nothing made it end. A budget would.` : "", stuck: "No token could be drawn.", time: "The time of one run was up.", end: "" }[run.why];
    if (why) notice(why, 8000);
    announce(steps === 1 && run.pieces.length ? `Drew ${tokenWords(run.pieces[0])}` : `Drew ${run.tokens.length} tokens. ${why}`);
  } catch (error) {
    notice(error.message);
  } finally {
    busy(false);
  }
}

/** What was done, and what the next step may be. */
function announce(what) {
  const figures = page.shown?.figures;
  if (!figures) return;
  say(figures.ended ? `${what}. The text is complete.`
    : `${what}. ${count(figures.legal)} valid next tokens${figures.may_end ? ", and the text may end" : ""}.`);
}

function busy(on) {
  $("decode").setAttribute("aria-busy", String(on));
}

// -- judging and comparing ---------------------------------------------------------------------------------------------

const JUDGES = {
  automaton: ["accepted", "Maskwright's automaton"],
  json: ["JSON", "JSON parser, in the service"],
  "jsonschema-rs": ["valid (jsonschema-rs)", "jsonschema-rs, in the service"],
  lark: ["parsed by lark", "lark, in the service"],
};

/** The layers of a text: the service's judges and the page's own. `cut`: it isn't finished, so nothing can be said. */
async function layersOf(text, cut = false) {
  const { artifact, kind, source } = page.compiled;
  if (cut) return [{ question: "Is it complete?", brief: "complete", judge: "this page", verdict: "no", notes: ["cut off: it isn't judged further, and never repaired"] }];
  const [service, ajv] = await Promise.all([call("judge", { artifact, text }), kind === "json_schema" ? askAjv(source, text) : null]);
  const layers = service.layers.map((layer) => ({ ...layer, brief: JUDGES[layer.judge][0], judge: JUDGES[layer.judge][1] }));
  if (ajv) layers.push({ question: "Does it satisfy the schema?", brief: "valid (Ajv)", judge: "Ajv, in this page", ...ajv });
  if (kind === "regex") layers.push({ question: "Does the browser's engine match it?", brief: "matched by the browser", judge: "RegExp, in this page", ...matches(source, text) });
  return layers;
}

function matches(pattern, text) {
  if (view.regex_dialect !== "ecma262") return { verdict: "unknown", notes: ["the pattern is in Python's dialect"] };
  try {
    return { verdict: new RegExp(`^(?:${pattern})$`, "u").test(text) ? "yes" : "no", notes: [] };
  } catch (error) {
    return { verdict: "unknown", notes: [error.message] };
  }
}

let judged = 0;

async function judge() {
  const mine = ++judged, region = $("judgement"), { figures, pieces } = page.shown;
  if (!figures.ended) { region.hidden = true; return; }
  const text = pieces.filter((p) => !p.stop).map((p) => p.text).join("");
  try {
    const layers = await layersOf(text);
    if (mine === judged) showJudgement(region, layers, page.setup.unchecked);
  } catch (error) {
    notice(error.message);
  }
}

async function compare() {
  const region = $("comparison"), ended = page.shown.figures.ended;
  $("compare").setAttribute("aria-pressed", String(view.compare));
  if (!view.compare || ended) { region.hidden = true; return; }
  busy(true);
  try {
    // One after the other: a real model keeps what it has read of one of them only.
    const free = await about("run", { steps: RUN_STEPS, masked: false });
    const masked = await about("run", { steps: RUN_STEPS, masked: true });
    const before = page.shown.pieces.map((p) => p.text), head = before.join("");
    const verdicts = {
      free: await layersOf(head + free.text, free.why !== "end"),
      masked: await layersOf(head + masked.text, masked.why !== "end"),
    };
    showComparison(region, before, free, masked, verdicts);
  } catch (error) {
    notice(error.message);
  } finally {
    busy(false);
  }
}

// -- choices -----------------------------------------------------------------------------------------------------------

const exampleOf = (name) => page.setup.examples.find((e) => e.name === name);
const vocabularySize = () => page.setup.tokenizers.find((t) => t.fingerprint === page.compiled.tokenizer)?.vocab_size ?? 0;

function choose(example) {
  Object.assign(view, { example: example.name, kind: example.kind, source: example.source, tokens: [], artifact: "", search: "", prompt: example.prompt });
  if (view.speaker !== "model") view.speaker = "table";
  page.wantsStart = view.speaker === "table";
  showChoices();
  compile();
}

/** Changes who speaks. The real model is loaded first, and speaks in its own tokens alone. */
async function speak(speaker) {
  view.speaker = speaker;
  showChoices();
  if (speaker === "model" && !(await loadModel())) { view.speaker = "noise"; showChoices(); }
  if (view.speaker === "model" && view.tokenizer !== page.modelTokenizer) {
    Object.assign(view, { tokenizer: page.modelTokenizer, tokens: [] });
    view.prompt ||= exampleOf(view.example)?.prompt ?? "Answer with an example.";
    showChoices();
    await compile();
  } else await refresh();
}

async function loadModel() {
  if (page.modelTokenizer) return true;
  const { name, missing, offered } = page.setup.model;
  if (!offered || missing.length) {
    notice(offered ? `${name} isn't installed here. It needs: pip install ${missing.join(" ")}` : "The real model speaks in “maskwright lab” alone, not beside a service.");
    return false;
  }
  const began = Date.now();
  const told = setInterval(() => notice(`Loading ${name} … ${Math.round((Date.now() - began) / 1000)} s`), 500);
  try {
    const loaded = await call("model");
    page.modelTokenizer = loaded.tokenizer;
    page.setup.tokenizers = loaded.tokenizers;
    fillTokenizers();
    notice("");
    return true;
  } catch (error) {
    notice(error.message);
    return false;
  } finally {
    clearInterval(told);
  }
}

/** Puts the view into the controls. */
function showChoices() {
  $("example").value = view.example;
  $("example-about").textContent = exampleOf(view.example)?.about ?? "";
  document.querySelector(`input[name=kind][value=${CSS.escape(view.kind)}]`).checked = true;
  editor.show(view.source, view.kind);
  for (const id of ["tokenizer", "whitespace", "formats", "residual", "regex_dialect", "speaker", "seed", "temperature", "top_k", "top_p", "budget", "search", "prompt"]) {
    $(id).value = view[id];
  }
  $("prompt-field").hidden = view.speaker !== "model";
  showSliders();
}

function showSliders() {
  $("temperature-shown").textContent = view.temperature.toFixed(2);
  $("top_p-shown").textContent = view.top_p.toFixed(2);
  $("budget-shown").textContent = budgetWords();
}

function budgetWords() {
  if (!view.budget) return "no limit";
  const figures = page.shown?.figures, left = Math.max(0, view.budget - view.tokens.length);
  const words = `${view.budget} tokens, ${left} left`;
  if (!figures || figures.ended) return words;
  if (figures.least === null) return `${words}; how many it needs isn't known`;
  return figures.least > left ? `${words}: too few, finishing takes up to ${figures.least}` : `${words}, ${figures.least} are enough to finish`;
}

let slow = 0;

/** A setting that only changes the view; sliders change often, so the service is asked at a pause. */
function setting(id, read) {
  $(id).addEventListener("input", () => {
    const value = read($(id).value);
    if (value === null) return;
    view[id] = value;
    showSliders();
    clearTimeout(slow);
    slow = setTimeout(refresh, 60);
  });
}

const numberIn = (low, high) => (text) => (text !== "" && Number(text) >= low && Number(text) <= high ? Number(text) : null);

function listen() {
  $("example").addEventListener("change", () => exampleOf($("example").value) && choose(exampleOf($("example").value)));
  for (const radio of document.querySelectorAll("input[name=kind]")) {
    radio.addEventListener("change", () => { view.kind = radio.value; view.tokens = []; editor.show(view.source, view.kind); compile(); });
  }
  for (const id of ["tokenizer", "whitespace", "formats", "residual", "regex_dialect"]) {
    $(id).addEventListener("change", () => {
      view[id] = $(id).value;
      if (id === "tokenizer") {
        view.tokens = [];
        if (view.speaker === "model") view.speaker = view.example ? "table" : "noise";
        page.wantsStart = view.speaker === "table";
        showChoices();
      }
      compile();
    });
  }
  $("speaker").addEventListener("change", () => speak($("speaker").value));
  setting("seed", (text) => (Number.isInteger(Number(text)) ? numberIn(0, 4294967295)(text) : null));
  setting("temperature", numberIn(0.01, 10));
  setting("top_p", numberIn(0.001, 1));
  setting("top_k", (text) => (Number.isInteger(Number(text)) ? numberIn(0, 1000000)(text) : null));
  setting("budget", numberIn(0, 4096));
  setting("search", (text) => text);
  setting("prompt", (text) => text);
  $("reseed").addEventListener("click", () => { view.seed = (view.seed + 1) % 4294967296; $("seed").value = view.seed; refresh(); });
  $("draw").addEventListener("click", () => drawn(1));
  $("run").addEventListener("click", () => drawn(RUN_STEPS));
  $("undo").addEventListener("click", undo);
  $("restart").addEventListener("click", () => back(0));
  $("compare").addEventListener("click", async () => { view.compare = !view.compare; await compare(); await writeLink(); });
  $("copy-link").addEventListener("click", copyLink);
  $("theme").addEventListener("change", () => setTheme($("theme").value));
  window.addEventListener("hashchange", restore);
}

async function copyLink() {
  await writeLink();
  try {
    await navigator.clipboard.writeText(location.href);
    $("copy-link").textContent = "Copied";
  } catch {
    $("copy-link").textContent = "It's in the address bar";
  }
  say("The link to this view was copied.");
  setTimeout(() => { $("copy-link").textContent = "Copy link"; }, 2000);
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  try { localStorage.setItem("maskwright-lab-theme", theme); } catch { /* it's only not remembered */ }
}

let noticed = 0;

function notice(text, milliseconds_ = 0) {
  clearTimeout(noticed);
  $("notice").textContent = text;
  $("notice").hidden = !text;
  if (milliseconds_) noticed = setTimeout(() => notice(""), milliseconds_);
}

async function restore() {
  const linked = await fromLink(location.hash, page.setup.examples);
  if (!linked) { choose(page.setup.examples[0]); return; }
  if (!["json_schema", "regex", "lark", "gbnf"].includes(linked.kind)) linked.kind = "json_schema";
  if (!exampleOf(linked.example) && linked.speaker === "table") linked.speaker = "noise";
  if (linked.speaker === "model" && !(await loadModel())) linked.speaker = "noise";
  page.linked = linked.artifact;
  page.wantsStart = false;
  Object.assign(view, linked);
  showChoices();
  compile();
}

async function start() {
  let theme = "";
  try { theme = localStorage.getItem("maskwright-lab-theme") ?? ""; } catch { /* none is remembered */ }
  $("theme").value = theme;
  setTheme(theme);
  document.body.classList.add("waiting");
  status("Starting the compiler …");
  $("compile-progress").hidden = false;
  listen();
  try {
    page.setup = await call("setup");
  } catch (error) {
    failedToCompile(error);
    $("compile-progress").hidden = true;
    return;
  }
  fill();
  await restore();
}

function fillTokenizers() {
  $("tokenizer").replaceChildren(...page.setup.tokenizers.map((t, n) =>
    h("option", { value: n ? t.fingerprint : "" }, `${t.name}, ${count(t.vocab_size)} tokens`)));
  $("tokenizer").value = view.tokenizer;
}

function fill() {
  fillTokenizers();
  $("example").replaceChildren(h("option", { value: "" }, "your own"), ...page.setup.examples.map((e) => h("option", { value: e.name }, e.title)));
  $("speaker").replaceChildren(h("option", { value: "table" }, "the example's table"), h("option", { value: "noise" }, "seeded noise"),
    h("option", { value: "model" }, page.setup.model.name));
}

start();
