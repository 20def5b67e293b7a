// Ajv in a worker: it makes functions out of schemas, which the page's own policy forbids, and may take long.

importScripts("/lab/vendor/ajv.min.js");

const { Ajv, Ajv2019, Ajv2020, addFormats, draft6 } = self.AjvBundle;
const OPTIONS = { strict: false, allErrors: false, logger: false, validateSchema: true };

/** The Ajv of a schema's draft; null for one that this Ajv doesn't know. */
function ajvFor(schema) {
  const named = typeof schema === "object" && schema !== null && typeof schema.$schema === "string" ? schema.$schema : "";
  if (named.includes("draft-04") || named.includes("draft-03")) return null;
  const older = named.includes("draft-07") || named.includes("draft-06");
  const ajv = new (older ? Ajv : named.includes("2019-09") ? Ajv2019 : Ajv2020)(OPTIONS);
  if (older) ajv.addMetaSchema(draft6);
  addFormats(ajv);
  return ajv;
}

let known = { schema: null, validate: null };

function judge({ schema, text }) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { verdict: "no", notes: [String(error.message)] };
  }
  if (known.schema !== schema) {
    try {
      const parsed = JSON.parse(schema), ajv = ajvFor(parsed);
      known = { schema, validate: ajv && ajv.compile(parsed) };
    } catch (error) {
      return { verdict: "unknown", notes: [String(error.message)] };
    }
  }
  if (!known.validate) return { verdict: "unknown", notes: ["this Ajv doesn't know the schema's draft"] };
  const valid = known.validate(value);
  const notes = (known.validate.errors ?? []).slice(0, 4).map((e) => `${e.instancePath || "the value"} ${e.message}`);
  return { verdict: valid ? "yes" : "no", notes: valid ? [] : notes };
}

self.onmessage = ({ data: { id, ...question } }) => self.postMessage({ id, ...judge(question) });
