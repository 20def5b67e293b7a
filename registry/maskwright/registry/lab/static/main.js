// The page: starts it.
//
//   state       the view that a link holds, and what came of it      api       calls to the service
//   compiling   source -> artifact, diagnostics                      showing   a view -> the page
//   steps       on, back, draw, run                                  judging   layers, and the comparison
//   choices     the controls                                         link      a view -> an address, and back
//   editor, diagnostics, tokens, panels, json-places, format, dom, ajv: pieces that know nothing of the page

import { call } from "./api.js";
import { fill, listen, restore, setTheme } from "./choices.js";
import { failedToCompile, status } from "./compiling.js";
import { $ } from "./dom.js";
import { page } from "./state.js";

async function start() {
  let theme = "";
  try { theme = localStorage.getItem("maskwright-lab-theme") ?? ""; } catch { /* none is remembered */ }
  $("theme").value = theme;
  setTheme(theme);
  document.body.classList.add("waiting");
  status("Starting the compiler …");
  $("compile-progress").hidden = false;
  listen();
  try {
    page.setup = await call("setup");
  } catch (error) {
    failedToCompile(error);
    $("compile-progress").hidden = true;
    return;
  }
  fill();
  await restore();
}

start();
