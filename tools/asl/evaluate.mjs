// Evaluate JSONata with the reference implementation.
//
// Reads one {"expression", "bindings"?, "input"?} per line and answers one line each:
// {"value"}, {"value": null, "undefined": true} where JSONata yields nothing, or {"error", "code"?}.
// Bindings are named without the dollar sign. An expression is given bare, without "{%" and "%}".
import { createHash, randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

import jsonata from "jsonata";

const ALGORITHMS = {
  "MD5": "md5",
  "SHA-1": "sha1",
  "SHA-256": "sha256",
  "SHA-384": "sha384",
  "SHA-512": "sha512",
};

function range(first, last, step) {
  const numbers = [];
  for (let n = first; step > 0 ? n <= last : n >= last; n += step) numbers.push(n);
  return numbers;
}

// What Step Functions adds to JSONata and what it takes away.
// https://docs.aws.amazon.com/step-functions/latest/dg/transforming-data.html
function stepFunctionsDialect(expression) {
  expression.registerFunction("parse", (text) => JSON.parse(text), "<s:x>");
  expression.registerFunction(
    "hash",
    (data, algorithm) => {
      if (!(algorithm in ALGORITHMS)) throw new Error(`$hash does not know ${algorithm}`);
      const text = typeof data === "string" ? data : JSON.stringify(data);
      return createHash(ALGORITHMS[algorithm]).update(text, "utf8").digest("hex");
    },
    "<xs:s>",
  );
  expression.registerFunction("range", range, "<nnn:a>");
  expression.registerFunction(
    "partition",
    (items, size) => range(0, items.length - 1, size).map((n) => items.slice(n, n + size)),
    "<an:a>",
  );
  expression.registerFunction("uuid", () => randomUUID(), "<:s>");
  expression.registerFunction("eval", () => {
    throw new Error("Step Functions does not support $eval");
  });
  return expression;
}

function refuseWhatJsonCannotSay(key, value) {
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`not JSON: ${value}`);
  if (typeof value === "function") throw new Error("not JSON: a function");
  return value;
}

async function answer(line) {
  try {
    const { expression, bindings = {}, input = null } = JSON.parse(line);
    const value = await stepFunctionsDialect(jsonata(expression)).evaluate(input, bindings);
    if (value === undefined) return JSON.stringify({ value: null, undefined: true });
    return JSON.stringify({ value }, refuseWhatJsonCannotSay);
  } catch (error) {
    return JSON.stringify({ error: error.message ?? String(error), code: error.code });
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${await answer(line)}\n`);
}
