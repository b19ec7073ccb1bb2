// The extension itself, with the real language client and server.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

import { PYTHON, ROOT } from "./server.mjs";
import { fakeEditor } from "./vscode.mjs";

const TEXT = `{
  "StartAt": "First",
  "States": {
    "First": {"Type": "Pass", "Next": "Last"},
    "Last": {"Type": "Succeed"},
    "Unreached": {"Type": "Succeed"}
  }
}
`;
const folder = mkdtempSync(path.join(tmpdir(), "asl-extension-"));
const settings = { command: [PYTHON, "-m", "asl"], files: ["**/*.asl.json"] };
const editor = fakeEditor(settings, folder);
const file = path.join(folder, "order.asl.json");
const document = editor.document(file, TEXT);
const extension = createRequire(import.meta.url)("../dist/extension.js");
const { recorded, events, vscode } = editor;

test("the extension", async (suite) => {
  writeFileSync(file, TEXT);
  vscode.workspace.textDocuments.push(document);
  const at = (line, character) => new vscode.Position(line, character);
  const visible = { document, selection: { active: at(3, 10) }, viewColumn: 1 };
  vscode.window.visibleTextEditors.push(visible);
  await extension.activate({ subscriptions: [], extensionUri: editor.uri(ROOT) });

  await suite.test("starts the server", () => assert.deepEqual(recorded.errors, []));

  await suite.test("shows diagnostics", async () => {
    const published = new Promise((resolve) => recorded.published.event(resolve));
    const [which, found] = recorded.diagnostics.size > 0 ? [...recorded.diagnostics][0] : await published;
    assert.equal(which, String(document.uri));
    assert.equal(found.length, 1);
  });

  await suite.test("draws a document, and follows the cursor", async () => {
    await recorded.commands.get("asl.showGraph")(String(document.uri));
    const [shown, selected] = recorded.posted.slice(-2);
    assert.match(shown.svg, /data-pointer="\/States\/Last"/);
    assert.equal(selected.pointer, "/States/First");
    events.selection.fire({ textEditor: visible, selections: [{ active: at(4, 8) }] });
    assert.deepEqual(recorded.posted.at(-1), { type: "select", pointer: "/States/Last" });
  });

  await suite.test("gives the page one script, its own style, and no other origin", () => {
    const [, nonce] = recorded.page.match(/script-src 'nonce-([0-9a-f]{32})'/);
    assert.ok(recorded.page.includes("default-src 'none'"));
    assert.ok(recorded.page.includes(`<script nonce="${nonce}"`));
    assert.doesNotMatch(recorded.page, /\{\{|https?:/);
  });

  await suite.test("runs a document in a terminal", async () => {
    await recorded.commands.get("asl.run")(String(document.uri), null);
    const { execution } = recorded.tasks.at(-1);
    assert.equal(execution.command, PYTHON);
    assert.deepEqual(execution.args, ["-m", "asl", "run", file]);
  });

  await suite.test("says how to install a missing server", async () => {
    settings.command = [path.join(folder, "missing", "asl")];
    await recorded.commands.get("asl.restart")();
    assert.match(recorded.errors.at(-1), /cannot be started.*pip install/);
  });

  await extension.deactivate();
  rmSync(folder, { recursive: true });
});
