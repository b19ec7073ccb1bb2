// The command lines that the extension starts.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import lines from "../dist/commandLines.js";
import { PYTHON } from "./server.mjs";

const NOTHING = () => false;

test("the command is that of the setting, of the folder, or of the search path", () => {
  const setting = ["${workspaceFolder}/tools/asl", "-v"];
  assert.deepEqual(lines.aslCommand(setting, "/project", NOTHING), ["/project/tools/asl", "-v"]);
  const inFolder = (file) => file.startsWith(path.join("/project", "venv"));
  assert.match(lines.aslCommand([], "/project", inFolder)[0], /venv.*asl/);
  assert.deepEqual(lines.aslCommand([], "/project", NOTHING), ["asl"]);
  assert.deepEqual(lines.aslCommand([], undefined, () => true), ["asl"]);
});

test("files next to a document are used", () => {
  const exists = (file) => /order\.(agents\.yaml|input\.json|asl-test\.yml)$/.test(file);
  const document = path.join("/project", "order.asl.json");
  assert.deepEqual(lines.runArguments(document, null, exists), [
    ...["run", document, "--agents", path.join("/project", "order.agents.yaml")],
    ...["--input", `@${path.join("/project", "order.input.json")}`],
  ]);
  assert.deepEqual(lines.runArguments("t.yaml", "Order", NOTHING), ["run", "t.yaml", "--resource", "Order"]);
  assert.equal(lines.suiteOf(document, exists), path.join("/project", "order.asl-test.yml"));
  assert.equal(lines.suiteOf(document, NOTHING), undefined);
  assert.equal(lines.suiteOf("a.asl-test.yaml", NOTHING), "a.asl-test.yaml");
});

test("the interpreter takes the command lines", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "asl-extension-"));
  const asl = (args) => execFileSync(PYTHON, ["-m", "asl", ...args], { cwd: folder, encoding: "utf8" });
  try {
    asl(["init", "."]);
    const document = path.join(folder, "judge.asl.json");
    writeFileSync(path.join(folder, "judge.input.json"), '{"text": "A poem."}');
    const output = asl(lines.runArguments(document, null, existsSync));
    assert.equal(JSON.parse(output).verdict, "accepted");
    const suite = lines.suiteOf(document, existsSync);
    assert.match(asl(lines.testArguments(suite, null)), /passed/i);
    const [, id] = readFileSync(suite, "utf8").match(/id: (.*)/);
    assert.match(asl(lines.testArguments(suite, id)), /passed/i);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
