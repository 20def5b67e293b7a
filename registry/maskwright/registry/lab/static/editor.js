// The source's editor: a textarea over a coloured copy of its text. The copy carries the marks: where diagnostics are, and
// where the decoding stands. The two share a grid cell, so the copy's height is the textarea's.

import { h } from "./dom.js";

const COLOURED_CHARACTERS = 30000;
const TOKENS = {
  json_schema: [
    ["key", /"(?:[^"\\\n]|\\.)*"(?=\s*:)/y], ["string", /"(?:[^"\\\n]|\\.)*"/y], ["number", /-?\d[\d.eE+-]*/y],
    ["word", /\b(?:true|false|null)\b/y],
  ],
  regex: [["key", /\\.|\[(?:[^\]\\]|\\.)*\]/y], ["word", /[()|?*+{}^$]/y]],
  lark: [["comment", /\/\/.*/y], ["string", /"(?:[^"\\\n]|\\.)*"i?|\/(?![/*])(?:[^/\\\n]|\\.)+\/[imslux]*/y],
    ["key", /^[?!]?[a-zA-Z_]\w*(?=[^\n]*:)/my], ["word", /%\w+/y]],
  gbnf: [["comment", /#.*/y], ["string", /"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\]|\\.)*\]/y], ["key", /^[\w-]+(?=\s*::=)/my]],
};

export class Editor {
  constructor(frame, onInput) {
    this.frame = frame;
    this.copy = frame.querySelector("pre");
    this.area = frame.querySelector("textarea");
    this.kind = "json_schema";
    this.marks = [];
    this.area.addEventListener("input", () => { this.marks = []; this.paint(); onInput(); });
    this.area.addEventListener("keydown", (event) => this.indent(event));
  }

  get text() { return this.area.value; }

  show(text, kind) {
    if (this.area.value !== text) this.area.value = text;
    this.kind = kind;
    this.marks = [];
    this.paint();
  }

  /** Marks: [{start, end, name}]; later ones lie on top. */
  mark(marks, { reveal = false } = {}) {
    this.marks = marks;
    this.paint();
    if (reveal && document.activeElement !== this.area) this.reveal();
  }

  select(start, end) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
  }

  reveal() {
    const mark = this.copy.querySelector(".mark-here");
    if (!mark) return;
    const top = mark.offsetTop, height = this.frame.clientHeight;
    if (top < this.frame.scrollTop || top > this.frame.scrollTop + height - 40) this.frame.scrollTop = Math.max(0, top - height / 3);
  }

  paint() {
    const text = this.area.value, runs = colours(text, this.kind);
    const edges = new Set([0, text.length]);
    for (const { start, end } of [...runs, ...this.marks]) edges.add(start).add(end);
    const cuts = [...edges].filter((e) => e >= 0 && e <= text.length).sort((a, b) => a - b);
    const parts = [];
    let run = 0;
    for (let i = 0; i + 1 < cuts.length; i++) {
      const [from, to] = [cuts[i], cuts[i + 1]];
      while (run < runs.length && runs[run].end <= from) run++;
      const names = this.marks.filter((m) => m.start <= from && m.end >= to && m.start < m.end).map((m) => `mark-${m.name}`);
      if (run < runs.length && runs[run].start <= from) names.push(`colour-${runs[run].name}`);
      const part = text.slice(from, to);
      parts.push(names.length ? h("span", { class: names.join(" ") }, part) : part);
    }
    // A last line that's empty has no height by itself.
    this.copy.replaceChildren(...parts, "\n");
  }

  /** Tab stays what it is for the keyboard: it leaves. Enter keeps the indentation. */
  indent(event) {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
    const { selectionStart: at, value } = this.area;
    const blank = /^[ \t]*/.exec(value.slice(value.lastIndexOf("\n", at - 1) + 1, at))[0];
    if (!blank) return;
    event.preventDefault();
    this.area.setRangeText(`\n${blank}`, at, this.area.selectionEnd, "end");
    this.area.dispatchEvent(new Event("input"));
  }
}

function colours(text, kind) {
  const runs = [], rules = TOKENS[kind] ?? [];
  const end = Math.min(text.length, COLOURED_CHARACTERS);
  for (let at = 0; at < end;) {
    const found = rules.find(([, pattern]) => { pattern.lastIndex = at; return pattern.test(text); });
    const next = found ? Math.max(found[1].lastIndex, at + 1) : at + 1;
    if (found) runs.push({ start: at, end: next, name: found[0] });
    at = next;
  }
  return runs;
}
