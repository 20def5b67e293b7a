// Going on and back: by a token that was chosen, by drawing, to the end, by undoing.

import { $, say } from "./dom.js";
import { count, tokenWords } from "./format.js";
import { refresh } from "./showing.js";
import { about, busy, notice, page, view } from "./state.js";

export const RUN_STEPS = 256;

export async function take(row) {
  view.tokens = [...view.tokens, row.token];
  page.fresh = 1;
  view.search = $("search").value = "";
  await refresh();
  announce(row.stop ? "End of text" : `Took ${tokenWords(row.text)}`);
}

export function refused(row) {
  const before = row.taken ? ` after its first ${row.taken === 1 ? "byte" : `${row.taken} bytes`}` : "";
  const text = row.stop ? "The text may not end here: it isn't complete."
    : row.state === "late" ? `“${row.text}” is legal, but then the text couldn't be finished within the budget.`
      : `“${row.text}” is masked: no text of the constraint goes on this way${before}.`;
  say(text);
  notice(text, 6000);
}

export function undo() {
  if (!view.tokens.length) return;
  back(view.tokens.length - 1);
}

export async function back(n) {
  if (n === view.tokens.length) return;
  view.tokens = view.tokens.slice(0, n);
  await refresh();
  announce(n ? `Back to ${n} tokens` : "Back to the start");
}

export async function drawn(steps) {
  if (!page.compiled) return;
  busy(true);
  try {
    const run = await about("run", { steps });
    view.tokens = [...view.tokens, ...run.tokens];
    page.fresh = run.tokens.length;
    await refresh();
    const why = {
      steps: steps > 1 ? `Cut off after ${steps} tokens: nothing made it end. A budget would.` : "",
      stuck: "No token could be drawn.", time: "The time of one run was up.", end: "",
    }[run.why];
    if (why) notice(why, 8000);
    announce(steps === 1 && run.pieces.length ? `Drew ${tokenWords(run.pieces[0])}` : `Drew ${run.tokens.length} tokens. ${why}`);
  } catch (error) {
    notice(error.message);
  } finally {
    busy(false);
  }
}

/** What was done, and what the next step may be. */
function announce(what) {
  const figures = page.shown?.figures;
  if (!figures) return;
  say(figures.ended ? `${what}. The text is complete.`
    : `${what}. ${count(figures.legal)} valid next tokens${figures.may_end ? ", and the text may end" : ""}.`);
}
