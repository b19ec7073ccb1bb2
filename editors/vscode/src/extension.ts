// Starts `asl lsp` and adds its commands.

import { existsSync } from "node:fs";
import * as vscode from "vscode";
import { LanguageClient, Location, Position } from "vscode-languageclient/node";

import { aslCommand, INSTALL, runArguments, suiteOf, testArguments } from "./commandLines";
import { DrawnDocument, GRAPH_REQUEST } from "./graphs";
import { Preview } from "./preview";

const COMMANDS = ["asl.run", "asl.test", "asl.showGraph", "asl.showReferences"];

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const media = vscode.Uri.joinPath(context.extensionUri, "media");
  const preview = new Preview(media, draw, handles);
  context.subscriptions.push(
    preview,
    vscode.commands.registerCommand("asl.restart", start),
    vscode.commands.registerCommand("asl.run", run),
    vscode.commands.registerCommand("asl.test", test),
    vscode.commands.registerCommand("asl.showReferences", showReferences),
    vscode.commands.registerCommand("asl.showGraph", async (uri?: string) => {
      const document = await documentOf(uri);
      if (document !== undefined) {
        await preview.show(document);
      }
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("asl")) {
        void start();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
  client = undefined;
}

/** Start the language server, instead of the one that is running. */
async function start(): Promise<void> {
  await deactivate();
  const [command = "asl", ...args] = asl();
  client = new LanguageClient(
    "asl",
    "Agent State Language",
    { command, args: [...args, "lsp"] },
    {
      documentSelector: patterns().map((pattern) => ({ scheme: "file", pattern })),
      initializationOptions: { commands: COMMANDS },
    },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined; // there is nothing to stop
    await explain(command, error);
  }
}

/** Say that the server cannot be started, and how to install it. */
async function explain(command: string, error: unknown): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error);
  const chosen = await vscode.window.showErrorMessage(
    `The language server '${command} lsp' cannot be started: ${reason}. ` +
      `Install it with: ${INSTALL}, or set 'asl.command'.`,
    "Copy command",
    "Open settings",
  );
  if (chosen === "Copy command") {
    await vscode.env.clipboard.writeText(INSTALL);
  } else if (chosen === "Open settings") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "asl.command");
  }
}

function asl(): string[] {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const setting = vscode.workspace.getConfiguration("asl").get<string[]>("command", []);
  return aslCommand(setting, folder, existsSync);
}

function patterns(): string[] {
  return vscode.workspace.getConfiguration("asl").get<string[]>("files", []);
}

function handles(document: vscode.TextDocument): boolean {
  return patterns().some((pattern) => vscode.languages.match({ scheme: "file", pattern }, document) > 0);
}

async function draw(document: vscode.TextDocument): Promise<DrawnDocument> {
  if (client === undefined || !client.isRunning()) {
    return { graphs: [], message: "the language server is not running" };
  }
  const textDocument = client.code2ProtocolConverter.asTextDocumentIdentifier(document);
  return client.sendRequest<DrawnDocument>(GRAPH_REQUEST, { textDocument });
}

async function documentOf(uri: string | undefined): Promise<vscode.TextDocument | undefined> {
  return uri === undefined
    ? vscode.window.activeTextEditor?.document
    : vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
}

async function run(uri?: string, resource: string | null = null): Promise<void> {
  const document = await documentOf(uri);
  if (document !== undefined) {
    await document.save();
    await execute("run", document.uri, runArguments(document.fileName, resource, existsSync));
  }
}

async function test(uri?: string, text: string | null = null): Promise<void> {
  const document = await documentOf(uri);
  const suite = document === undefined ? undefined : suiteOf(document.fileName, existsSync);
  if (suite === undefined) {
    void vscode.window.showInformationMessage(
      "There is no file NAME.asl-test.yaml next to this document: 'asl test init' writes one.",
    );
    return;
  }
  await vscode.workspace.saveAll(false);
  await execute("test", vscode.Uri.file(suite), testArguments(suite, text));
}

/** Run `asl` in a terminal. */
async function execute(name: string, uri: vscode.Uri, args: string[]): Promise<void> {
  const [command = "asl", ...first] = asl();
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  const task = new vscode.Task(
    { type: "asl", name },
    folder ?? vscode.TaskScope.Workspace,
    name,
    "asl",
    new vscode.ShellExecution(command, [...first, ...args]),
  );
  task.presentationOptions = { clear: true, panel: vscode.TaskPanelKind.Shared };
  await vscode.tasks.executeTask(task);
}

async function showReferences(uri: string, position: Position, places: Location[]): Promise<void> {
  const converter = client?.protocol2CodeConverter;
  if (converter !== undefined) {
    await vscode.commands.executeCommand(
      "editor.action.showReferences",
      vscode.Uri.parse(uri),
      converter.asPosition(position),
      places.map((each) => converter.asLocation(each)),
    );
  }
}
