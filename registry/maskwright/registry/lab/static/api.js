// Calls to the service. A call that needs a token asks for it once, and is tried again.

import { $ } from "./dom.js";

const KEY = "maskwright-lab-token";

export class CallFailed extends Error {
  constructor(status, { reason, message, diagnostics } = {}) {
    super(message ?? `the service answered ${status}`);
    this.status = status;
    this.reason = reason ?? "";
    this.diagnostics = diagnostics ?? [];
  }
}

/** The answer of a call. Throws CallFailed, or what fetch throws. */
export async function call(name, fields = {}) {
  for (;;) {
    const headers = { "Content-Type": "application/json" };
    const bearer = sessionStorage.getItem(KEY);
    if (bearer) headers.Authorization = `Bearer ${bearer}`;
    const response = await fetch(`/lab/api/${name}`, { method: "POST", headers, body: JSON.stringify(fields) });
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    if (response.status !== 401) throw new CallFailed(response.status, answer.error);
    sessionStorage.removeItem(KEY);
    await signIn();
  }
}

let signingIn = null;

function signIn() {
  signingIn ??= new Promise((resolve) => {
    const dialog = $("sign-in");
    dialog.addEventListener("close", () => {
      signingIn = null;
      sessionStorage.setItem(KEY, $("bearer").value.trim());
      $("bearer").value = "";
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return signingIn;
}
