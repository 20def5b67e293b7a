// Judging a text layer by layer, and comparing a run with the mask to one without.

import { askAjv } from "./ajv.js";
import { call } from "./api.js";
import { $ } from "./dom.js";
import { showComparison, showJudgement } from "./panels.js";
import { about, busy, notice, page, view } from "./state.js";
import { RUN_STEPS } from "./steps.js";

const JUDGES = {
  automaton: ["accepted", "Maskwright's automaton"],
  json: ["JSON", "JSON parser, in the service"],
  "jsonschema-rs": ["valid (jsonschema-rs)", "jsonschema-rs, in the service"],
  lark: ["parsed by lark", "lark, in the service"],
};

/** The layers of a text: the service's judges and the page's own. `cut`: it isn't finished, so nothing can be said. */
async function layersOf(text, cut = false) {
  const { artifact, kind, source } = page.compiled;
  if (cut) {
    const notes = ["cut off: it isn't judged further, and never repaired"];
    return [{ question: "Is it complete?", brief: "complete", judge: "this page", verdict: "no", notes }];
  }
  const asked = kind === "json_schema" ? askAjv(source, text) : null;
  const [service, ajv] = await Promise.all([call("judge", { artifact, text }), asked]);
  const layers = service.layers.map((layer) => ({ ...layer, brief: JUDGES[layer.judge][0], judge: JUDGES[layer.judge][1] }));
  if (ajv) layers.push({ question: "Does it satisfy the schema?", brief: "valid (Ajv)", judge: "Ajv, in this page", ...ajv });
  if (kind === "regex") {
    const question = "Does the browser's engine match it?";
    layers.push({ question, brief: "matched by the browser", judge: "RegExp, in this page", ...matches(source, text) });
  }
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

export async function judge() {
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

export async function compare() {
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
