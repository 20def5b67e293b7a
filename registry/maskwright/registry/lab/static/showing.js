// What the service says of a view, put on the page; answers that are overtaken are dropped.

import { $, say } from "./dom.js";
import { compare, judge } from "./judging.js";
import { count } from "./format.js";
import { jsonPlaces, placeOf } from "./json-places.js";
import { toLink } from "./link.js";
import { showFigures, showPlace } from "./panels.js";
import { showSliders } from "./choices.js";
import { editor, markSource } from "./compiling.js";
import { about, notice, page, view, vocabularySize } from "./state.js";
import { back, refused, take, undo } from "./steps.js";
import { TokenTable, showTape } from "./tokens.js";

const table = new TokenTable($("tokens"), { onTake: take, onRefused: refused, onUndo: undo });

let asked = 0;

export async function refresh() {
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
  for (const id of ["draw", "run", "compare"]) $(id).disabled = ended;
  for (const id of ["undo", "restart"]) $(id).disabled = !view.tokens.length;
  await judge();
  if (view.compare) await compare();
  await writeLink();
}

/** Who speaks here, and who would by the settings. */
function showSpeaker(source) {
  $("spoken").textContent = {
    table: "by the example's table",
    noise: view.speaker === "table" ? "by seeded noise: the table knows nothing legal here" : "by seeded noise",
    model: "by the real model",
  }[source];
  $("sampling-brief").textContent = [
    { table: "example table", noise: "seeded noise", model: "real model" }[view.speaker], `seed ${view.seed}`,
    view.temperature !== 1 && `temperature ${view.temperature}`, view.top_k && `top-k ${view.top_k}`,
    view.top_p !== 1 && `top-p ${view.top_p}`,
  ].filter(Boolean).join(" · ");
}

function toPointer(pointer) {
  const at = placeOf(jsonPlaces(view.source), pointer);
  if (at) editor.select(at.keyStart ?? at.start, at.end);
}

export async function writeLink() {
  history.replaceState(null, "", await toLink(view, page.setup.examples));
}
