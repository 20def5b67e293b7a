// The text so far, and the table of what may come next.

import { h } from "./dom.js";
import { probability, tokenParts, tokenWords } from "./format.js";

/** A token's text as nodes, signs for what couldn't be seen. */
export function tokenNodes(text) {
  return tokenParts(text).map((part) => (typeof part === "string" ? part : h("span", { class: "sign" }, part.sign)));
}

/** `onBack(n)`: go back to the first n tokens. `fresh`: how many at the end are new. */
export function showTape(tape, pieces, fresh, onBack) {
  const chips = pieces.map((piece, n) => h("button", {
    type: "button", class: `chip${piece.stop ? " stop" : ""}${n >= pieces.length - fresh ? " fresh" : ""}`,
    "aria-label": `Token ${n + 1}, ${piece.stop ? "end of text" : tokenWords(piece.text)}. Go back to here`,
    title: "Go back to here", click: () => onBack(n + 1),
  }, ...(piece.stop ? ["end"] : tokenNodes(piece.text))));
  const ended = pieces.at(-1)?.stop;
  tape.replaceChildren(
    ...(chips.length ? chips : [h("span", { class: "empty" }, "Nothing yet. Take a token from the table, or draw one.")]),
    ended ? "" : h("span", { class: "cursor", "aria-hidden": "true" }));
  tape.scrollTop = tape.scrollHeight;
}

export class TokenTable {
  /** `onTake(row)` for a legal token, `onRefused(row)` for another, `onUndo()`. */
  constructor(table, { onTake, onRefused, onUndo }) {
    this.table = table;
    this.body = table.tBodies[0];
    Object.assign(this, { onTake, onRefused, onUndo });
    this.body.addEventListener("keydown", (event) => this.key(event));
  }

  show(rows, { neutral, most }) {
    const focused = this.body.contains(document.activeElement);
    this.table.classList.toggle("with-drawn", !neutral);
    this.body.replaceChildren(...rows.map((row) => this.row(row, most)));
    const buttons = this.buttons();
    const first = buttons.find((b) => !b.hasAttribute("aria-disabled")) ?? buttons[0];
    if (first) first.tabIndex = 0;
    if (focused && first) first.focus({ preventScroll: true });
    if (!rows.length) this.body.append(h("tr", {}, h("td", { colspan: 4, class: "empty" }, "No token has this text.")));
  }

  row(row, most) {
    const legal = row.state === "legal";
    const button = h("button", {
      type: "button", class: "token", tabindex: -1, "aria-disabled": legal ? null : "true",
      "aria-label": `${row.stop ? "end of text" : tokenWords(row.text)}${legal ? "" : `, ${row.state}`}`,
      click: () => (legal ? this.onTake(row) : this.onRefused(row)),
    }, ...tokenLabel(row));
    return h("tr", { class: row.state, "data-token": row.token },
      h("th", { scope: "row" }, button, row.toward && h("span", { class: "toward", "aria-hidden": "true" }, `${row.toward}`)),
      cell("raw", row.raw, most),
      legal ? cell("after", row.after, most)
        : h("td", { class: "probability none" }, h("span", { class: "tag" }, row.state === "late" ? "too late" : "masked")),
      h("td", { class: "drawn-column figure" }, legal ? probability(row.drawn) : "–"));
  }

  buttons() { return [...this.body.querySelectorAll("button.token")]; }

  key(event) {
    const buttons = this.buttons(), at = buttons.indexOf(document.activeElement);
    if (at < 0) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      const next = buttons[Math.max(0, Math.min(buttons.length - 1, to))];
      for (const button of buttons) button.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if (event.key === "Backspace") {
      event.preventDefault();
      this.onUndo();
    }
  }
}

function tokenLabel(row) {
  if (row.stop) return [h("span", { class: "stop-name" }, "end of text")];
  return tokenNodes(row.text);
}

function cell(name, value, most) {
  return h("td", { class: `probability ${name}` },
    h("span", { class: "bar", "aria-hidden": "true", "--part": String(most ? value / most : 0) }),
    h("span", { class: `figure${value ? "" : " zero"}` }, probability(value)));
}
