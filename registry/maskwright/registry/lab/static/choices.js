// The controls: examples, kinds, options, who speaks and how tokens are drawn; links in and out.

import { call } from "./api.js";
import { compile, editor } from "./compiling.js";
import { $, h, say } from "./dom.js";
import { count } from "./format.js";
import { fromLink } from "./link.js";
import { compare } from "./judging.js";
import { refresh, writeLink } from "./showing.js";
import { exampleOf, notice, page, view } from "./state.js";
import { RUN_STEPS, back, drawn, undo } from "./steps.js";

/** Choices that another artifact comes of. */
const COMPILED = ["tokenizer", "whitespace", "formats", "residual", "regex_dialect"];

function choose(example) {
  const { name, kind, source, prompt } = example;
  Object.assign(view, { example: name, kind, source, prompt, tokens: [], artifact: "", search: "" });
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
    notice(offered ? `${name} isn't installed here. It needs: pip install ${missing.join(" ")}`
      : "The real model speaks in “maskwright lab” alone, not beside a service.");
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
  for (const id of [...COMPILED, "speaker", "seed", "temperature", "top_k", "top_p", "budget", "search", "prompt"]) {
    $(id).value = view[id];
  }
  $("prompt-field").hidden = view.speaker !== "model";
  showSliders();
}

export function showSliders() {
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
  return figures.least > left ? `${words}: too few, finishing takes up to ${figures.least}`
    : `${words}, ${figures.least} ${figures.least === 1 ? "is" : "are"} enough to finish`;
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

export function listen() {
  $("example").addEventListener("change", () => exampleOf($("example").value) && choose(exampleOf($("example").value)));
  for (const radio of document.querySelectorAll("input[name=kind]")) {
    radio.addEventListener("change", () => { view.kind = radio.value; view.tokens = []; editor.show(view.source, view.kind); compile(); });
  }
  for (const id of COMPILED) {
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

export function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  try { localStorage.setItem("maskwright-lab-theme", theme); } catch { /* it's only not remembered */ }
}

export async function restore() {
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

function fillTokenizers() {
  $("tokenizer").replaceChildren(...page.setup.tokenizers.map((t, n) =>
    h("option", { value: n ? t.fingerprint : "" }, `${t.name}, ${count(t.vocab_size)} tokens`)));
  $("tokenizer").value = view.tokenizer;
}

export function fill() {
  fillTokenizers();
  $("example").replaceChildren(h("option", { value: "" }, "your own"), ...page.setup.examples.map((e) => h("option", { value: e.name }, e.title)));
  $("speaker").replaceChildren(h("option", { value: "table" }, "the example's table"), h("option", { value: "noise" }, "seeded noise"),
    h("option", { value: "model" }, page.setup.model.name));
}
