// Asks Ajv, in its worker. A worker that doesn't answer in time is ended; the next question gets a new one.

const SECONDS = 5;
let worker = null, last = 0;
const waiting = new Map();

/** {verdict: "yes" | "no" | "unknown", notes} of a text under a schema, both JSON texts. */
export function askAjv(schema, text) {
  return new Promise((resolve) => {
    worker ??= start();
    const id = ++last;
    const timer = setTimeout(() => end("no answer within five seconds"), SECONDS * 1000);
    waiting.set(id, (answer) => { clearTimeout(timer); waiting.delete(id); resolve(answer); });
    worker.postMessage({ id, schema, text });
  });
}

function start() {
  const made = new Worker("/lab/ajv-worker.js");
  made.onmessage = ({ data: { id, verdict, notes } }) => waiting.get(id)?.({ verdict, notes });
  made.onerror = (event) => { event.preventDefault(); end("Ajv couldn't be loaded"); };
  return made;
}

function end(why) {
  worker?.terminate();
  worker = null;
  for (const answer of [...waiting.values()]) answer({ verdict: "unknown", notes: [why] });
}
