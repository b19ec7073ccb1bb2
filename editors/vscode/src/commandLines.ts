// The command lines of `asl` that the extension starts.

import * as path from "node:path";

export const INSTALL = "pip install 'agent-state-language[editor]'";

/** Tell whether there is a file. */
export type Exists = (file: string) => boolean;

const SUITE = /\.asl-test\.(json|yaml|yml)$/;

/**
 * Return the command `asl` and its first arguments.
 *
 * The setting is used if there is one, else `asl` of a virtual environment in the folder, else that
 * of the search path.
 */
export function aslCommand(setting: readonly string[], folder: string | undefined, exists: Exists): string[] {
  if (setting.length > 0) {
    return setting.map((each) => each.replaceAll("${workspaceFolder}", folder ?? "."));
  }
  const scripts = process.platform === "win32" ? ["Scripts", "asl.exe"] : ["bin", "asl"];
  for (const environment of folder === undefined ? [] : [".venv", "venv"]) {
    const command = path.join(folder ?? "", environment, ...scripts);
    if (exists(command)) {
      return [command];
    }
  }
  return ["asl"];
}

/**
 * Return the arguments that run a document.
 *
 * The files `NAME.agents.yaml` and `NAME.input.json` next to `NAME.asl.json` are used.
 */
export function runArguments(document: string, resource: string | null, exists: Exists): string[] {
  const found = ["run", document];
  if (resource !== null) {
    found.push("--resource", resource);
  }
  const agents = companion(document, "agents", exists);
  if (agents !== undefined) {
    found.push("--agents", agents);
  }
  const input = companion(document, "input", exists);
  if (input !== undefined) {
    found.push("--input", `@${input}`);
  }
  return found;
}

/** Return the arguments that run the test cases of a file, or those with a text in id or title. */
export function testArguments(suite: string, text: string | null): string[] {
  return ["test", suite, "--verbose", ...(text === null ? [] : ["-k", text])];
}

/** Return the file with the test cases of a document; the document itself if it is one. */
export function suiteOf(document: string, exists: Exists): string | undefined {
  return SUITE.test(document) ? document : companion(document, "asl-test", exists);
}

function companion(document: string, kind: string, exists: Exists): string | undefined {
  const name = path.basename(document).replace(/\.(json|yaml|yml)$/, "").replace(/\.asl$/, "");
  const files = ["yaml", "yml", "json"].map((ending) =>
    path.join(path.dirname(document), `${name}.${kind}.${ending}`),
  );
  return files.find(exists);
}
