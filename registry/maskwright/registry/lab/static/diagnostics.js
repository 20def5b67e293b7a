// What the compiler says about a source, each finding under the place it's about.

import { h } from "./dom.js";
import { fromCharacters, jsonPlaces, placeOf } from "./json-places.js";

const WIDTH = 44;

/** A diagnostic's range in the source's text, or null. */
export function rangeOf(diagnostic, text, kind) {
  if (kind !== "json_schema") return spanOf(diagnostic, text);
  if (diagnostic.pointer === undefined) return spanOf(diagnostic, text);
  return placeOf(jsonPlaces(text), diagnostic.pointer);
}

/** A span counts in `source` where that's a pattern inside the schema, else in the text. */
function spanOf(diagnostic, text) {
  if (!diagnostic.span) return null;
  const [start, end] = diagnostic.span.map((n) => fromCharacters(text, n));
  const from = Math.min(start, Math.max(0, text.length - 1));
  return { start: from, end: Math.max(end, from + 1) };
}

/** The line with the start of a range, cut to fit, and carets under the range's part of it. */
export function excerpt(text, { start, end }) {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const lineEnd = text.indexOf("\n", start) < 0 ? text.length : text.indexOf("\n", start);
  const blank = /^\s*/.exec(text.slice(lineStart, Math.min(start, lineEnd)))[0].length;
  const low = Math.max(lineStart + blank, Math.min(start - WIDTH / 3, lineEnd - WIDTH) | 0);
  const high = Math.min(lineEnd, low + WIDTH);
  const carets = Math.max(1, Math.min(end, high) - start);
  const line = text.slice(low, high).replaceAll("\t", " ");
  const left = low > lineStart + blank ? "…" : "";
  const number = text.slice(0, start).split("\n").length;
  return { line: left + line + (high < lineEnd ? "…" : ""), carets: " ".repeat(left.length + start - low) + "^".repeat(carets), number };
}

export function showDiagnostics(list, diagnostics, text, kind, onPlace) {
  list.replaceChildren(...diagnostics.map((d) => entry(d, text, kind, onPlace)));
}

function entry(diagnostic, text, kind, onPlace) {
  const range = rangeOf(diagnostic, text, kind);
  const severity = diagnostic.severity ?? "error";
  const shown = diagnostic.pointer !== undefined && diagnostic.span && diagnostic.source
    ? excerpt(diagnostic.source, spanOf(diagnostic, diagnostic.source) ?? { start: 0, end: 1 })
    : range && excerpt(text, range);
  const where = diagnostic.pointer || (range ? `line ${excerpt(text, range).number}` : "");
  return h("li", { class: `diagnostic ${severity}` },
    h("p", { class: "diagnostic-head" },
      h("strong", {}, severity === "error" ? "Error" : severity === "warning" ? "Warning" : "Note"),
      h("code", {}, diagnostic.code),
      range && h("button", { type: "button", class: "link", click: () => onPlace(range) }, where || "the root")),
    shown && h("pre", { class: "excerpt", "aria-hidden": "true" }, `${shown.line}\n`, h("span", { class: "carets" }, shown.carets)),
    h("p", {}, capital(diagnostic.message)),
    diagnostic.hint && h("p", { class: "hint" }, capital(diagnostic.hint)));
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
