// Validate Amazon States Language with both public validators.
//
//   node validate.mjs FILE...     prints {"FILE": [problem, ...], ...}; exit status 1 if there is a problem
//   node validate.mjs --stream    reads one definition per line, answers one list of problems per line
//
// A problem is {"validator", "code", "message", "where"?}.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import languageService from "amazon-states-language-service";
import aslValidator from "asl-validator";

// Severities of the language server protocol: 1 error, 2 warning, 3 information, 4 hint.
const WARNING = 2;

const service = languageService.getLanguageService({});

async function serviceProblems(text) {
  const document = languageService.TextDocument.create("file:///definition.asl.json", "json", 1, text);
  const found = await service.doValidation(document, service.parseJSONDocument(document));
  return found
    .filter(({ severity }) => (severity ?? 1) <= WARNING)
    .map(({ code, message, range }) => ({
      validator: "amazon-states-language-service",
      code: String(code ?? "INVALID"),
      message,
      where: `${range.start.line + 1}:${range.start.character + 1}`,
    }));
}

function validatorProblems(text) {
  // Parsed here, for this validator alone: it writes QueryLanguage into what it is given.
  const { errors } = aslValidator(JSON.parse(text), { checkPaths: true, checkArn: true });
  return errors.map((error) => ({
    validator: "asl-validator",
    code: error["Error code"],
    message: error.Message,
    ...(error.path ? { where: error.path } : {}),
    ...(error.schemaError
      ? {
          message: `${error.Message}: ${error.schemaError.message}`,
          where: error.schemaError.instancePath,
        }
      : {}),
  }));
}

async function problems(text) {
  try {
    JSON.parse(text);
  } catch (error) {
    return [{ validator: "json", code: "SYNTAX", message: error.message }];
  }
  return [...validatorProblems(text), ...(await serviceProblems(text))];
}

async function stream() {
  for await (const line of createInterface({ input: process.stdin })) {
    // Laid out again, so that the places in the answer are lines people can find.
    const text = JSON.stringify(JSON.parse(line), null, 2);
    process.stdout.write(`${JSON.stringify(await problems(text))}\n`);
  }
}

async function files(paths) {
  const report = {};
  for (const path of paths) report[path] = await problems(readFileSync(path, "utf8"));
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  process.exitCode = Object.values(report).some((found) => found.length > 0) ? 1 : 0;
}

const args = process.argv.slice(2);
if (args.length === 0) {
  process.stderr.write("usage: node validate.mjs FILE... | --stream\n");
  process.exitCode = 2;
} else if (args[0] === "--stream") {
  await stream();
} else {
  await files(args);
}
