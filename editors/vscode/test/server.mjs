// A connection to the real server, `asl lsp`, over stdio.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import rpc from "vscode-jsonrpc/node.js";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const REPOSITORY = path.resolve(ROOT, "../..");
const LOCAL = path.join(REPOSITORY, ".venv/bin/python");

/** The Python that has `asl`. */
export const PYTHON = process.env.ASL_PYTHON ?? (existsSync(LOCAL) ? LOCAL : "python3");

/** Start the server, use a connection to it, and end it. */
export async function withServer(commands, use) {
  const server = spawn(PYTHON, ["-m", "asl", "lsp"], {
    cwd: REPOSITORY,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(server.stdout),
    new rpc.StreamMessageWriter(server.stdin),
  );
  connection.listen();
  try {
    const { capabilities } = await connection.sendRequest("initialize", {
      processId: process.pid,
      rootUri: null,
      capabilities: {},
      initializationOptions: { commands },
    });
    await connection.sendNotification("initialized", {});
    await use(connection, capabilities);
    await connection.sendRequest("shutdown");
    await connection.sendNotification("exit");
    return await ended;
  } finally {
    connection.dispose();
    server.kill();
  }
}
