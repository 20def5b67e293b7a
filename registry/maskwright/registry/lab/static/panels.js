// Figures, where the text stands, the artifact, the comparison, the judgement.

import { $, h } from "./dom.js";
import { bigCount, byteRun, count, kilobytes, milliseconds, percent, probability } from "./format.js";
import { tokenNodes } from "./tokens.js";

export function showFigures(list, figures, vocabulary) {
  const { retained, legal, completions, least, may_end: mayEnd, ended } = figures;
  const entries = [
    ["Mass kept", percent(retained), `of the raw probability, ${probability(retained)}`, { "--part": String(retained) }],
    ["Valid next tokens", count(legal), `of ${count(vocabulary)}`],
  ];
  if (completions !== undefined) {
    entries.push(["Completions left", completions === null ? "∞" : bigCount(completions), completions === null ? "without bound" : completions.length > 9 ? `${completions.length} digits, exact` : "texts, exactly", {}, completions ?? ""]);
  }
  if (least !== undefined) entries.push(["Least to finish", count(least), least === 1 ? "token" : "tokens"]);
  entries.push(["May end here", ended ? "ended" : mayEnd ? "yes" : "no", mayEnd ? "the text is complete" : "something is missing"]);
  list.replaceChildren(...entries.map(([name, value, note, style = {}, title = ""]) =>
    h("div", { class: "figure-tile", ...style, title: title.length > 9 ? title : null },
      h("dt", {}, name), h("dd", {}, value), h("dd", { class: "note" }, note))));
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
  $("bytes").replaceChildren(...(runs.length ? runs : [h("span", { class: "empty" }, "none: the text has ended")]));
}

/** A pointer that may break before each of its parts. */
function pointerParts(pointer) {
  return pointer.split("/").slice(1).flatMap((part) => [h("wbr"), `/${part}`]);
}

export function showArtifact(list, { artifact, report, seconds }) {
  const passes = Object.values(report.seconds).reduce((a, b) => a + b, 0);
  const rows = [
    ["States", count(report.states)], ["Frames", count(report.frames)], ["Stack symbols", count(report.symbols)],
    ["Contexts", count(report.contexts)], ["Masks of its own", count(report.masks)], ["Largest mask", `${count(report.largest_mask)} tokens`],
    ["Size", kilobytes(report.artifact_bytes)], ["Compiled in", `${milliseconds(passes)}, ${milliseconds(seconds)} with the way there`],
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
  end: "ended by itself", steps: "cut off: it went on past the limit", time: "cut off: ten seconds were up",
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
  return h("span", { class: `verdict ${verdict}`, role: "img", "aria-label": { yes: "yes", no: "no", unknown: "not known", unchecked: "not checked" }[verdict] }, sign);
}

/** Layers: [{question, judge, verdict, notes}]; `unchecked`: [{name, what}]. */
export function showJudgement(region, layers, unchecked) {
  region.hidden = false;
  region.replaceChildren(
    h("h3", { id: "judgement-title" }, "Judged layer by layer"),
    h("ul", { class: "layers" },
      ...layers.map((layer) => h("li", { class: layer.verdict, "data-judge": layer.judge }, mark(layer.verdict),
        h("span", { class: "question" }, layer.question), h("span", { class: "judge" }, layer.judge),
        layer.notes.length ? h("small", {}, layer.notes.join("; ")) : "")),
      ...unchecked.map((u) => h("li", { class: "unchecked", "data-judge": u.name }, mark("unchecked"),
        h("span", { class: "question" }, `${u.name[0].toUpperCase()}${u.name.slice(1)}`), h("span", { class: "judge" }, "not checked"), h("small", {}, u.what)))));
}
