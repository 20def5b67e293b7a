// The page's state, and the calls that are about it.
//
// `view` is what a link holds; everything shown is a function of it. `page` is what came of it so far: what there is to
// choose, the last source that compiled, the view as the service last told it.

import { call } from "./api.js";
import { $ } from "./dom.js";
import { DEFAULTS } from "./link.js";

export const view = { ...DEFAULTS, tokens: [] };
export const page = {
  setup: null, compiled: null, shown: null, diagnostics: [], fresh: 0, wantsStart: false, linked: "", modelTokenizer: "",
};

export const exampleOf = (name) => page.setup.examples.find((e) => e.name === name);
export const vocabularySize = () => page.setup.tokenizers.find((t) => t.fingerprint === page.compiled.tokenizer)?.vocab_size ?? 0;


export function compileOrder() {
  const whitespace = /^\d+$/.test(view.whitespace) ? Number(view.whitespace) : view.whitespace;
  return {
    kind: view.kind, source: view.source, tokenizer: view.tokenizer,
    options: { whitespace, formats: view.formats, residual: view.residual, regex_dialect: view.regex_dialect },
  };
}

function order(more = {}) {
  const { seed, temperature, top_k, top_p } = view;
  return {
    artifact: page.compiled.artifact, tokens: view.tokens, budget: view.budget, search: view.search,
    speaker: { name: view.speaker, example: view.speaker === "table" ? view.example : "", prompt: view.prompt },
    settings: { seed, temperature, top_k, top_p }, ...more,
  };
}

/** A call about the artifact; where the service has forgotten it, it's compiled again first. */
export async function about(name, more) {
  try {
    return await call(name, order(more));
  } catch (error) {
    if (error.reason !== "UNKNOWN_ARTIFACT") throw error;
    const result = await call("compile", { ...compileOrder(), source: page.compiled.source, kind: page.compiled.kind });
    page.compiled.artifact = result.artifact;
    return call(name, order(more));
  }
}

export function busy(on) {
  $("decode").setAttribute("aria-busy", String(on));
}

let noticed = 0;

export function notice(text, milliseconds_ = 0) {
  clearTimeout(noticed);
  $("notice").textContent = text;
  $("notice").hidden = !text;
  if (milliseconds_) noticed = setTimeout(() => notice(""), milliseconds_);
}
