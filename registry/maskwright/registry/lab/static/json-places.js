// Where the values of a JSON text are: a scan that gives each JSON pointer (RFC 6901) the range of its value, and of its
// key where it has one. Offsets are UTF-16 units, as a textarea counts. Returns what it found up to the first fault:
// faults are for the compiler to tell.

const MAX_DEPTH = 400;

/** Map from pointer to {start, end, keyStart, keyEnd}. */
export function jsonPlaces(text) {
  const places = new Map();
  let at = 0;
  const space = () => { while (at < text.length && " \t\r\n".includes(text[at])) at++; };
  const string = () => {
    const start = at++;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    if (at >= text.length) throw new Error("open string");
    at++;
    return JSON.parse(text.slice(start, at));
  };
  const members = (pointer, depth, close, one) => {
    at++;
    space();
    if (text[at] === close) { at++; return; }
    for (let index = 0; ; index++) {
      one(pointer, depth, index);
      space();
      if (text[at] === close) { at++; return; }
      if (text[at] !== ",") throw new Error("no comma");
      at++;
    }
  };
  const property = (pointer, depth) => {
    space();
    if (text[at] !== '"') throw new Error("no key");
    const keyStart = at, key = string(), keyEnd = at;
    space();
    if (text[at] !== ":") throw new Error("no colon");
    at++;
    value(`${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`, depth + 1, { keyStart, keyEnd });
  };
  const item = (pointer, depth, index) => value(`${pointer}/${index}`, depth + 1, {});
  const value = (pointer, depth, key) => {
    if (depth > MAX_DEPTH) throw new Error("too deep");
    space();
    const place = { start: at, end: text.length, ...key };
    places.set(pointer, place);
    if (text[at] === "{") members(pointer, depth, "}", property);
    else if (text[at] === "[") members(pointer, depth, "]", item);
    else if (text[at] === '"') string();
    else {
      const scalar = /^(?:-?\d[\d.eE+-]*|true|false|null)/.exec(text.slice(at, at + 400));
      if (!scalar) throw new Error("no value");
      at += scalar[0].length;
    }
    place.end = at;
  };
  try {
    value("", 0, {});
  } catch {
    // What was found stays.
  }
  return places;
}

/** The place of a pointer, or of the nearest one above it. */
export function placeOf(places, pointer) {
  for (let p = pointer; ; p = p.slice(0, p.lastIndexOf("/"))) {
    if (places.has(p)) return places.get(p);
    if (!p) return null;
  }
}

/** An offset in characters (code points, as Python counts) as one in UTF-16 units. */
export function fromCharacters(text, characters) {
  let at = 0;
  for (let n = 0; n < characters && at < text.length; n++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}
