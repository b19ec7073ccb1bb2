// The runtime of Node functions: reads events from the Runtime API and calls the handler.
//
// Errors have the form of Lambda's own runtime for Node.

import { existsSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const PREFIX = "/2018-06-01/runtime/";
const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

class RuntimeFault extends Error {
  constructor(name, message, trace) {
    super(message);
    this.name = name;
    if (trace !== undefined) this.stack = trace;
  }
}

function request(method, name, body = "") {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Length": Buffer.byteLength(body) };
    const sent = http.request({ host, port, agent, method, path: PREFIX + name, headers }, (response) => {
      const pieces = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("end", () =>
        resolve({ headers: response.headers, text: Buffer.concat(pieces).toString() })
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

async function importModule(file) {
  try {
    const require = createRequire(pathToFileURL(file));
    return file.endsWith(".cjs") ? require(file) : await import(pathToFileURL(file).href);
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new RuntimeFault("Runtime.UserCodeSyntaxError", String(error), error.stack);
    }
    if (error?.code === "MODULE_NOT_FOUND" || error?.code === "ERR_MODULE_NOT_FOUND") {
      throw new RuntimeFault("Runtime.ImportModuleError", String(error), error.stack);
    }
    throw error;
  }
}

async function loadHandler(name) {
  const [stem, ...parts] = path.basename(name).split(".");
  if (!stem || parts.length === 0) {
    throw new RuntimeFault("Runtime.MalformedHandlerName", "Bad handler");
  }
  const base = path.resolve(process.env.LAMBDA_TASK_ROOT, path.dirname(name), stem);
  const file = [".js", ".mjs", ".cjs"].map((ending) => base + ending).find(existsSync);
  if (file === undefined) {
    throw new RuntimeFault("Runtime.ImportModuleError", `Error: Cannot find module '${stem}'`);
  }
  const module = await importModule(file);
  const find = (found) => parts.reduce((each, part) => each?.[part], found);
  const handler = find(module) ?? find(module.default);
  if (handler === undefined) {
    throw new RuntimeFault("Runtime.HandlerNotFound", `${name} is undefined or not exported`);
  }
  if (typeof handler !== "function") {
    throw new RuntimeFault("Runtime.HandlerNotFound", `${name} is not a function`);
  }
  return handler;
}

function contextOf(headers, finish) {
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  const client = headers["lambda-runtime-client-context"];
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    awsRequestId: headers["lambda-runtime-aws-request-id"],
    invokedFunctionArn: headers["lambda-runtime-invoked-function-arn"],
    clientContext: client === undefined ? undefined : JSON.parse(client),
    identity: undefined,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
    done: finish,
    fail: (error) => finish(error ?? "handled"),
    succeed: (result) => finish(null, result),
  };
}

// Resolves to null where the event loop is empty before there is a result, as in Lambda.
function call(handler, event, headers) {
  return new Promise((resolve, reject) => {
    const finish = (error, result) =>
      error === undefined || error === null ? resolve(result) : reject(error);
    process.removeAllListeners("beforeExit");
    process.once("beforeExit", () => resolve(null));
    const result = handler(event, contextOf(headers, finish), finish);
    if (typeof result?.then === "function") result.then(resolve, reject);
  });
}

function write(value) {
  try {
    return JSON.stringify(value === undefined ? null : value) ?? "null";
  } catch (error) {
    throw new RuntimeFault("Runtime.MarshalError", `Unable to stringify response body: ${error}`);
  }
}

function describe(error) {
  if (!(error instanceof Error)) {
    return { errorType: typeof error, errorMessage: String(error), trace: [] };
  }
  return {
    errorType: error.name,
    errorMessage: error.message,
    trace: (error.stack ?? "").split("\n").filter((line) => !line.includes("/bootstrap.mjs")),
  };
}

async function report(error, requestId) {
  const fields = describe(error);
  const trace = fields.trace.length > 0 ? fields.trace.join("\n") : fields.errorMessage;
  console.error(`[ERROR] ${trace}`);
  await request("POST", `invocation/${requestId}/error`, JSON.stringify(fields));
}

let current = null;

// An error outside of the promise of the handler ends the process, as in Lambda.
process.on("uncaughtException", async (error) => {
  if (current === null) process.exit(1);
  await report(error, current);
  process.exit(129);
});
process.on("unhandledRejection", async (reason) => {
  const fault = new RuntimeFault("Runtime.UnhandledPromiseRejection", String(reason), reason?.stack);
  if (current === null) process.exit(1);
  await report(fault, current);
  process.exit(128);
});

let handler = null;
let fault = null;
try {
  handler = await loadHandler(process.env._HANDLER);
} catch (error) {
  fault = error;
}
for (;;) {
  const { headers, text } = await request("GET", "invocation/next").catch(() => process.exit(1));
  current = headers["lambda-runtime-aws-request-id"];
  if (handler === null) {
    await report(fault, current);
    process.exit(1); // so that the next event imports the code again
  }
  let body = null;
  try {
    body = write(await call(handler, JSON.parse(text), headers));
  } catch (error) {
    await report(error, current);
  }
  if (body !== null) await request("POST", `invocation/${current}/response`, body);
  current = null;
}
