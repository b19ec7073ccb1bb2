// Stands in for the module `vscode`, which exists within the editor only: what the extension
// registers is recorded, and everything else is there and does nothing.

import Module from "node:module";
import { pathToFileURL } from "node:url";

/** Return an object that has every member, can be called, and can be extended. */
function anything(members = {}) {
  const target = Object.assign(function () {}, members);
  return new Proxy(target, {
    get(_, name) {
      if (name === "then" || name === "toJSON") {
        return undefined;
      }
      if (typeof name === "symbol" || name === "prototype") {
        return target[name];
      }
      if (!Object.hasOwn(target, name) || name === "name" || name === "length") {
        target[name] ??= anything();
      }
      return target[name];
    },
    apply: () => anything(),
    construct: (_, args, made) => new Proxy(Object.create(made.prototype ?? {}), {}),
  });
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(start, end) {
    Object.assign(this, { start, end });
  }
}

class EventEmitter {
  listeners = new Set();
  event = (listener) => {
    this.listeners.add(listener);
    return { dispose: () => this.listeners.delete(listener) };
  };
  fire(value) {
    this.listeners.forEach((each) => each(value));
  }
  dispose() {}
}

class CancellationTokenSource {
  token = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose() {} }) };
  cancel() {}
  dispose() {}
}

/** Make `vscode` for a test. */
export function fakeEditor(settings, folder) {
  const recorded = { commands: new Map(), posted: [], errors: [], tasks: [], diagnostics: new Map(), page: "" };
  recorded.published = new EventEmitter();
  const events = { selection: new EventEmitter(), change: new EventEmitter(), message: new EventEmitter() };
  const uri = (path) => ({
    scheme: "file",
    fsPath: path,
    path,
    toString: () => pathToFileURL(path).toString(),
  });
  const document = (path, text) => ({
    uri: uri(path),
    fileName: path,
    languageId: "json",
    version: 1,
    getText: () => text,
    save: async () => true,
  });
  const vscode = anything({
    version: "1.91.0",
    env: anything({ appName: "tests", language: "en" }),
    Position,
    Range,
    EventEmitter,
    CancellationTokenSource,
    ViewColumn: { Beside: -2, One: 1 },
    TaskScope: { Workspace: 2 },
    TaskPanelKind: { Shared: 1 },
    Disposable: Object.assign(
      class {
        constructor(dispose) {
          this.dispose = dispose ?? (() => {});
        }
      },
      { from: (...all) => ({ dispose: () => all.forEach((each) => each.dispose()) }) },
    ),
    Uri: anything({
      joinPath: (base, ...names) => uri([base.fsPath, ...names].join("/")),
      parse: (text) => uri(decodeURIComponent(new URL(text).pathname)),
      file: uri,
    }),
    workspace: anything({
      textDocuments: [],
      notebookDocuments: [],
      workspaceFolders: [{ uri: uri(folder), name: "work", index: 0 }],
      getConfiguration: () => ({ get: (name, other) => settings[name] ?? other }),
      onDidChangeTextDocument: events.change.event,
      openTextDocument: async (which) => vscode.workspace.textDocuments.find((each) => each.fileName === which.fsPath),
    }),
    languages: anything({
      match: (selector, each) => (each.fileName !== undefined ? 10 : 0),
      createDiagnosticCollection: () =>
        anything({
          set: (which, found) => {
            recorded.diagnostics.set(String(which), found);
            recorded.published.fire([String(which), found]);
          },
        }),
    }),
    commands: anything({
      registerCommand: (name, action) => {
        recorded.commands.set(name, action);
        return { dispose() {} };
      },
    }),
    tasks: anything({ executeTask: async (task) => recorded.tasks.push(task) }),
    ShellExecution: class {
      constructor(command, args) {
        Object.assign(this, { command, args });
      }
    },
    Task: class {
      constructor(definition, scope, name, source, execution) {
        Object.assign(this, { definition, scope, name, source, execution });
      }
    },
    window: anything({
      visibleTextEditors: [],
      onDidChangeTextEditorSelection: events.selection.event,
      showErrorMessage: async (text) => void recorded.errors.push(text),
      createWebviewPanel: () =>
        anything({
          webview: {
            cspSource: "vscode-resource:",
            asWebviewUri: (each) => each,
            onDidReceiveMessage: events.message.event,
            postMessage: async (message) => recorded.posted.push(message),
            set html(text) {
              recorded.page = text;
            },
          },
        }),
    }),
  });
  const resolve = Module._load;
  Module._load = (name, ...others) => (name === "vscode" ? vscode : resolve(name, ...others));
  return { vscode, recorded, events, document, uri };
}
