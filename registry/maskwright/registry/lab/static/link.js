// A view as the part of the address after #, and back. Everything that the page shows is a function of what's in it: the
// source (packed, unless it's an example's), options, tokenizer, tokens, and settings. The artifact's digest is there to
// notice a compiler that makes something else of the same source.

export const DEFAULTS = Object.freeze({
  kind: "json_schema", source: "", example: "", tokenizer: "", artifact: "", tokens: [],
  speaker: "table", seed: 1, temperature: 1, top_k: 0, top_p: 1, budget: 64, search: "", prompt: "", compare: false,
  whitespace: "compact", formats: "enforce", residual: "refuse", regex_dialect: "ecma262",
});
const NUMBERS = { seed: [0, 4294967295], temperature: [0.01, 10], top_k: [0, 1000000], top_p: [0.001, 1], budget: [0, 4096] };
const TEXTS = ["tokenizer", "artifact", "speaker", "search", "prompt", "whitespace", "formats", "residual", "regex_dialect"];

export async function toLink(view, examples) {
  const fields = new URLSearchParams();
  const example = examples.find((e) => e.name === view.example);
  if (example) fields.set("example", example.name);
  if (!example || example.source !== view.source || example.kind !== view.kind) {
    fields.set("kind", view.kind);
    fields.set("source", await pack(view.source));
  }
  if (view.tokens.length) fields.set("tokens", view.tokens.join("."));
  for (const name of [...TEXTS, ...Object.keys(NUMBERS)]) {
    if (view[name] !== DEFAULTS[name] && (name !== "prompt" || view.speaker === "model")) fields.set(name, view[name]);
  }
  if (view.compare) fields.set("compare", "1");
  return `#${fields}`;
}

/** The view of a link, or null where there's none in it. What can't be read is left at its default. */
export async function fromLink(hash, examples) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const example = examples.find((e) => e.name === fields.get("example"));
  if (!example && !fields.has("source")) return null;
  const view = { ...DEFAULTS, tokens: [] };
  if (example) Object.assign(view, { example: example.name, kind: example.kind, source: example.source });
  if (fields.has("source")) {
    view.kind = fields.get("kind") ?? DEFAULTS.kind;
    view.source = await unpack(fields.get("source"));
  }
  for (const name of TEXTS) view[name] = fields.get(name) ?? view[name];
  for (const [name, [low, high]] of Object.entries(NUMBERS)) {
    const number = Number(fields.get(name) ?? view[name]);
    if (number >= low && number <= high) view[name] = number;
  }
  view.tokens = (fields.get("tokens") ?? "").split(".").filter((t) => /^\d{1,9}$/.test(t)).map(Number);
  view.compare = fields.get("compare") === "1";
  return view;
}

async function pack(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(packed) {
  try {
    const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"), 1 << 20));
  } catch {
    return "";
  }
}

/** Bytes through a stream; no more than `most` come out, whatever a link was packed with. */
async function through(bytes, stream, most = Infinity) {
  const parts = [];
  let size = 0;
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) throw new Error("too long");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
