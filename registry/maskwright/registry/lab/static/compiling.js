// From the source's editor to an artifact: one compilation at a time, and the latest source wins.

import { CallFailed, call } from "./api.js";
import { rangeOf, showDiagnostics } from "./diagnostics.js";
import { $ } from "./dom.js";
import { Editor } from "./editor.js";
import { count, milliseconds } from "./format.js";
import { jsonPlaces, placeOf } from "./json-places.js";
import { showArtifact } from "./panels.js";
import { refresh } from "./showing.js";
import { compileOrder, exampleOf, notice, page, view } from "./state.js";

const PAUSE = 120, PROGRESS_AFTER = 200;
export const editor = new Editor($("editor"), onSource);

let pause = 0, compiling = false, again = false;

function onSource() {
  view.source = editor.text;
  view.artifact = "";
  clearTimeout(pause);
  pause = setTimeout(compile, PAUSE);
}

export async function compile() {
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
    const still = page.compiled ? " The rest still shows the last source that compiled." : "";
    status(`Refused: ${n === 1 ? "one error" : `${n} errors`}.${still}`, "refused");
    return;
  }
  page.compiled = { ...result, source: order.source, kind: order.kind };
  if (page.linked && page.linked !== result.artifact) {
    notice("This link was made with another compiler: its source gives another artifact here, and the view may differ.");
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

export function failedToCompile(error) {
  page.diagnostics = [];
  showFindings();
  document.body.classList.add("stale");
  status(error instanceof CallFailed ? `Not compiled: ${error.message}` : "The service doesn't answer.", "refused");
}

export function status(text, name = "") {
  $("compile-status").textContent = text;
  $("compile-status").className = name;
}

function showFindings() {
  showDiagnostics($("diagnostics"), page.diagnostics, view.source, view.kind, ({ start, end }) => editor.select(start, end));
  markSource();
}

/** Where the text stands, and on top where the findings are. */
export function markSource({ reveal = false } = {}) {
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
