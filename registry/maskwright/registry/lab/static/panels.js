// Figures, where the text stands, the artifact, the comparison, the judgement.

import { $, h } from "./dom.js";
import { bigCount, byteRun, count, kilobytes, milliseconds, probability } from "./format.js";
import { tokenNodes } from "./tokens.js";

export function showFigures(list, figures, vocabulary) {
  const { retained, legal, late, completions, least, may_end: mayEnd, ended } = figures;
  const entries = [
    { id: "retained", name: "Mass kept", value: probability(retained), note: "of the raw mass", part: retained },
    { id: "legal", name: "Valid next", value: count(legal),
      note: late ? `${count(late)} more too late` : `of ${count(vocabulary)} tokens` },
    { id: "completions", name: "Completions", ...completionsTile(completions) },
    { id: "least", name: "To finish", value: least === null ? "?" : count(least),
      note: least === null ? "not known" : least === 1 ? "token is enough" : "tokens are enough" },
    { id: "may-end", name: "May end", value: ended ? "ended" : mayEnd ? "yes" : "no", note: ended || mayEnd ? "it's complete" : "not complete" },
  ];
  list.replaceChildren(...entries.map(({ id, name, value, note, part, title }) =>
    h("div", { class: "figure-tile", "data-figure": id, title, ...(part === undefined ? {} : { "--part": String(part) }) },
      h("dt", {}, name), h("dd", { class: value.length > 7 ? "long" : null }, value), h("dd", { class: "note" }, note))));
}

function completionsTile(digits) {
  if (digits === null) return { value: "∞", note: "no bound" };
  if (digits.includes("^")) return { value: digits.replace("10^", "≈ 10^"), note: "texts" };
  const long = digits.length > 9;
  const note = long ? `exact: ${digits.length} digits` : digits === "1" ? "text left" : "texts left";
  return { value: bigCount(digits), note, title: long ? digits : null };
}

export function showPlace({ place, kind, onPointer }) {
  const pointer = place.pointer;
  const where = kind !== "json_schema" ? ["In the ", h("strong", {}, place.frames[0].name)]
    : pointer ? [h("button", { type: "button", class: "link pointer", click: () => onPointer(pointer) }, ...pointerParts(pointer))]
      : [h("button", { type: "button", class: "link", click: () => onPointer("") }, "The root of the schema")];
  $("place").replaceChildren(...where);
  $("frames").replaceChildren(...place.frames.map((frame, n) => h("li", { class: n ? "" : "current" },
    h("span", { class: "frame-name" }, frame.name),
    frame.pointer && h("button", { type: "button", class: "link pointer", click: () => onPointer(frame.pointer) }, ...pointerParts(frame.pointer)))));
  const runs = place.expected.map((run) => h("kbd", {}, byteRun(run)));
  $("bytes").replaceChildren(...(runs.length ? [h("span", { class: "empty" }, "bytes"), ...runs] : [h("span", { class: "empty" }, "nothing more")]));
  const ways = place.forced ? [h("span", { class: "empty" }, "only"), h("code", { class: "way" }, ...tokenNodes(place.forced))]
    : place.alternatives.map((text) => h("code", { class: "way" }, ...tokenNodes(text)));
  $("ways").hidden = !ways.length;
  $("ways").replaceChildren(...ways);
}

/** A pointer that may break before each of its parts. */
function pointerParts(pointer) {
  return pointer.split("/").slice(1).flatMap((part) => [h("wbr"), `/${part}`]);
}

export function showArtifact(list, { artifact, report }) {
  const passes = Object.values(report.seconds).reduce((a, b) => a + b, 0);
  const rows = [
    ["States", count(report.states)], ["Frames", count(report.frames)], ["Stack symbols", count(report.symbols)],
    ["Contexts", count(report.contexts)], ["Masks of its own", count(report.masks)], ["Largest mask", `${count(report.largest_mask)} tokens`],
    ["Size", kilobytes(report.artifact_bytes)], ["Compiled in", milliseconds(passes)],
    ["Digest", h("code", { title: artifact }, artifact.slice(0, 12))],
  ];
  list.replaceChildren(...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  showKeywords(report.treatment ?? []);
}

function showKeywords(treatment) {
  $("keywords").hidden = !treatment.length;
  const tally = new Map();
  for (const [, , how] of treatment) tally.set(how, (tally.get(how) ?? 0) + 1);
  $("keywords-brief").textContent = [...tally].map(([how, n]) => `${n} ${how}`).join(", ");
  $("keyword-list").replaceChildren(...treatment.slice(0, 200).map(([pointer, keyword, how]) =>
    h("li", { class: how }, h("code", {}, keyword), h("span", { class: "pointer" }, pointer || "the root"), h("span", { class: "how" }, how))));
}

const WHY = {
  end: "ended by itself", steps: "cut off: it went on past the limit", time: "cut off: its time was up",
  stuck: "stopped: no token was left to draw",
};

/** Two runs from the same place with the same draws. `verdicts`: how each text was judged. */
export function showComparison(region, before, free, masked, verdicts) {
  region.hidden = false;
  region.replaceChildren(
    h("h3", {}, "The same draws, with and without the mask"),
    h("div", { class: "columns" },
      column("Without", before, free, verdicts.free, "without"), column("With the mask", before, masked, verdicts.masked, "with")));
}

function column(title, before, run, layers, name) {
  const wrong = run.illegal_at;
  const text = run.pieces.map((piece, n) => {
    const kind = wrong === null || n < wrong ? "" : n === wrong ? "wrong" : "after-wrong";
    const stop = n === run.pieces.length - 1 && run.why === "end";
    return h("span", { class: `${kind}${stop ? " stop" : ""}` }, ...(stop ? [" end"] : tokenNodes(piece)));
  });
  const said = wrong === null ? WHY[run.why] : run.why === "end" && wrong === run.pieces.length - 1
    ? "ended where it may not" : `token ${wrong + 1} of ${run.pieces.length} isn't legal; ${WHY[run.why]}`;
  return h("article", { class: `column ${name}` },
    h("h4", {}, title),
    h("p", { class: "run" }, h("span", { class: "before" }, ...before.flatMap(tokenNodes)), ...text),
    h("p", { class: "said" }, `${run.pieces.length} tokens, ${said}.`),
    h("ul", { class: "verdicts" }, ...layers.map((layer) => h("li", { class: layer.verdict }, mark(layer.verdict), ` ${layer.brief ?? layer.question}`,
      layer.notes.length ? h("small", {}, layer.notes[0]) : ""))));
}

export function mark(verdict) {
  const sign = { yes: "✓", no: "✗", unknown: "?", unchecked: "–" }[verdict];
  const words = { yes: "yes", no: "no", unknown: "not known", unchecked: "not checked" }[verdict];
  return h("span", { class: `verdict ${verdict}`, role: "img", "aria-label": words }, sign);
}

/** Layers: [{question, judge, verdict, notes}]; `unchecked`: [{name, what}]. */
export function showJudgement(region, layers, unchecked) {
  region.hidden = false;
  region.replaceChildren(
    h("h3", { id: "judgement-title" }, "Judged layer by layer"),
    h("ul", { class: "layers" },
      ...layers.map(({ verdict, judge, question, notes }) => layerRow(verdict, judge, question, judge, notes.join("; "))),
      ...unchecked.map(({ name, what }) =>
        layerRow("unchecked", name, name[0].toUpperCase() + name.slice(1), "not checked", what))));
}

function layerRow(verdict, name, question, judge, note) {
  return h("li", { class: verdict, "data-judge": name }, mark(verdict),
    h("span", { class: "question" }, question), h("span", { class: "judge" }, judge), note && h("small", {}, note));
}
