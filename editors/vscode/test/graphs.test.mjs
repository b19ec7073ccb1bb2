// The preview's view of the answers of the real server.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

import graphs from "../dist/graphs.js";
import { ROOT, withServer } from "./server.mjs";

const TEXT = `{
  "StartAt": "Each",
  "States": {
    "Each": {
      "Type": "Map",
      "ItemProcessor": {"StartAt": "Inner", "States": {"Inner": {"Type": "Pass", "End": true}}},
      "Next": "Done"
    },
    "Done": {"Type": "Succeed"}
  }
}
`;
const URI = "file:///order.asl.json";

async function opened(connection, text) {
  const textDocument = { uri: URI, languageId: "json", version: 1, text };
  await connection.sendNotification("textDocument/didOpen", { textDocument });
  return connection.sendRequest(graphs.GRAPH_REQUEST, { textDocument: { uri: URI } });
}

test("the state around the cursor is the innermost one", async () => {
  const code = await withServer([], async (connection) => {
    const drawn = await opened(connection, TEXT);
    assert.equal(drawn.message, "");
    const workflow = graphs.workflowAt(drawn, { line: 0, character: 0 });
    assert.match(workflow.svg, /^<svg[^]*data-pointer="\/States\/Each"/);
    const at = (line, character) => graphs.stateAt(workflow, { line, character })?.name;
    assert.equal(at(1, 5), undefined);
    assert.equal(at(4, 10), "Each");
    assert.equal(at(5, TEXT.split("\n")[5].indexOf("Pass")), "Inner");
    assert.equal(at(6, 10), "Each");
    assert.equal(at(8, 8), "Done");
  });
  assert.equal(code, 0);
});

test("a text without a workflow has a message", async () => {
  await withServer([], async (connection) => {
    const drawn = await opened(connection, "{}");
    assert.deepEqual(drawn.graphs, []);
    assert.match(drawn.message, /no workflow/);
    assert.equal(graphs.workflowAt(drawn, { line: 0, character: 0 }), undefined);
  });
});

test("lenses have the commands that the extension adds", async () => {
  const manifest = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
  const source = readFileSync(path.join(ROOT, "src/extension.ts"), "utf8");
  const [, listed] = source.match(/COMMANDS = \[(.*)\]/);
  const commands = JSON.parse(`[${listed}]`);
  for (const each of [...commands, ...manifest.contributes.commands.map(({ command }) => command)]) {
    assert.ok(source.includes(`registerCommand("${each}"`), each);
  }
  await withServer(commands, async (connection, capabilities) => {
    assert.ok(capabilities.codeLensProvider);
    await opened(connection, TEXT);
    const lenses = await connection.sendRequest("textDocument/codeLens", { textDocument: { uri: URI } });
    const titles = lenses.map(({ command }) => [command.command, command.title]);
    assert.deepEqual(titles.slice(0, 3), [
      ["asl.run", "Run"],
      ["asl.showGraph", "Graph"],
      ["asl.showReferences", "1 reference"],
    ]);
    const [uri, position, places] = lenses[2].command.arguments;
    assert.equal(uri, URI);
    assert.deepEqual(position, { line: 3, character: 5 });
    assert.equal(places[0].range.start.line, 1);
  });
});
