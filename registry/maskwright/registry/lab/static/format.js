// Numbers and tokens for people.

const grouped = new Intl.NumberFormat("en");

export const count = (n) => grouped.format(n);

/** A probability with three digits; what would round to nothing, and isn't, says so. */
export function probability(p) {
  if (p === 0) return "0";
  if (p < 0.0005) return "<0.001";
  return p.toFixed(3);
}

export const milliseconds = (seconds) => (seconds < 10 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`);

export const kilobytes = (bytes) => (bytes < 1024 ? `${bytes} bytes` : `${count(Math.round(bytes / 102.4) / 10)} KiB`);

const SIGNS = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍" };

/** The parts of a token: strings, and {sign} for white space and control characters that would not be seen. */
export function tokenParts(text) {
  const parts = [];
  for (const c of text) {
    const sign = SIGNS[c] ?? (/[\p{C}\p{Z}]/u.test(c) ? `U+${c.codePointAt(0).toString(16).toUpperCase()}` : null);
    if (sign) parts.push({ sign, c });
    else if (typeof parts.at(-1) === "string") parts[parts.length - 1] += c;
    else parts.push(c);
  }
  return parts;
}

/** A token as words, for the ear. */
export function tokenWords(text) {
  const names = { " ": "space", "\n": "new line", "\t": "tab", '"': "quote", "{": "open brace", "}": "close brace",
    "[": "open bracket", "]": "close bracket", ":": "colon", ",": "comma" };
  const words = text.replace(/[ \n\t"{}[\]:,]/g, (c) => ` ${names[c]} `).trim().replace(/\s+/g, " ");
  return words || "nothing";
}

/** A whole number given as decimal digits: exact while that's short, else its size. */
export function bigCount(digits) {
  if (digits.length <= 9) return grouped.format(Number(digits));
  return `${digits[0]}.${digits.slice(1, 3)} × 10${superscript(digits.length - 1)}`;
}

function superscript(n) {
  return [...String(n)].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("");
}

export function byteRun([first, last]) {
  return first === last ? byte(first) : last === first + 1 ? `${byte(first)} ${byte(last)}` : `${byte(first)}–${byte(last)}`;
}

function byte(value) {
  const names = { 9: "tab", 10: "newline", 13: "return", 32: "space" };
  return names[value] ?? (value > 32 && value < 127 ? String.fromCharCode(value) : value.toString(16).toUpperCase().padStart(2, "0"));
}
