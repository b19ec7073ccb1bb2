// aws-local-stepfunctions behind the protocol of the suite (see ../README.md).
//
// node local_stepfunctions.mjs FOLDER   with the package in FOLDER/node_modules
//
// Tasks are answered by the scripts of the case through `taskResourceLocalHandlers`. `Wait` and
// retries take no time: timers fire immediately, or, where a document has timeouts, the package's
// own overrides apply, which do not read the fields of a Wait.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const load = createRequire(resolve(process.argv[2], 'package.json'));
const { StateMachine, ExecutionTimeoutError } = load('aws-local-stepfunctions');

function statesOf(machine) {
  return Object.entries(machine.States ?? {}).flatMap(([name, state]) => [
    [name, state],
    ...(state.Branches ?? []).flatMap(statesOf),
    ...statesOf(state.ItemProcessor ?? state.Iterator ?? {}),
  ]);
}

class TaskFailed extends Error {
  constructor({ Error: error, Cause: cause }) {
    super(cause ?? '');
    this.name = error ?? '';
  }
}

function matches(pattern, value) {
  if (pattern === null || typeof pattern !== 'object') return pattern === value;
  if (Array.isArray(pattern)) {
    return Array.isArray(value) && pattern.length === value.length
      && pattern.every((each, index) => matches(each, value[index]));
  }
  if ('$any' in pattern) return true;
  if ('$partial' in pattern) {
    return Object.entries(pattern.$partial).every(([key, each]) => matches(each, value?.[key]));
  }
  return value !== null && typeof value === 'object'
    && Object.keys(pattern).length === Object.keys(value).length
    && Object.entries(pattern).every(([key, each]) => matches(each, value[key]));
}

function answer(script, payload, calls) {
  if ('sequence' in script) {
    const turn = calls.get(script) ?? 0;
    calls.set(script, turn + 1);
    return answer(script.sequence[Math.min(turn, script.sequence.length - 1)], payload, calls);
  }
  if ('table' in script) {
    const row = script.table.find((each) => !('when' in each) || matches(each.when, payload));
    return answer(row.then, payload, calls);
  }
  if ('raise' in script) throw new TaskFailed(script.raise);
  return 'echo' in script ? payload : structuredClone(script.return);
}

const startTimer = globalThis.setTimeout;
let timeless = false;
globalThis.setTimeout = (action, delay, ...rest) => startTimer(action, timeless ? 0 : delay, ...rest);

function overridesFor(request) {
  const overrides = {
    taskResourceLocalHandlers: {}, waitTimeOverrides: {}, retryIntervalOverrides: {},
  };
  timeless = !JSON.stringify(request.document).includes('"TimeoutSeconds');
  const calls = new Map();
  const tasks = request.resources ?? {};
  for (const [name, state] of statesOf(request.document)) {
    const script = request.mocks?.[name] ?? tasks[state.Resource] ?? tasks['*'];
    if (state.Type === 'Task' && script) {
      overrides.taskResourceLocalHandlers[name] = (payload) => answer(script, payload, calls);
    }
    if (state.Type === 'Wait' && !timeless) overrides.waitTimeOverrides[name] = 0;
    if (state.Retry && !timeless) overrides.retryIntervalOverrides[name] = 0;
  }
  return overrides;
}

function contextOf(request) {
  const name = request.name ?? 'case';
  return {
    Execution: {
      Id: `arn:aws:states:us-east-1:123456789012:execution:machine:${name}`,
      Input: request.input,
      Name: name,
      RedriveCount: 0,
      RoleArn: 'arn:aws:iam::123456789012:role/suite',
      StartTime: new Date().toISOString(),
    },
    StateMachine: {
      Id: 'arn:aws:states:us-east-1:123456789012:stateMachine:machine',
      Name: 'machine',
    },
  };
}

async function observe(request) {
  let machine;
  try {
    machine = new StateMachine(request.document);
  } catch (error) {
    const refusal = { code: error.name, severity: 'error', message: error.message, pointer: '' };
    return { valid: false, diagnostics: [refusal] };
  }
  if (request.observe.every((fact) => fact === 'valid' || fact === 'diagnostics')) {
    return { valid: true, diagnostics: [] };
  }
  try {
    const options = { overrides: overridesFor(request), context: contextOf(request) };
    const run = machine.run(request.input, options);
    return { status: 'SUCCEEDED', output: (await run.result) ?? null };
  } catch (error) {
    if (error instanceof ExecutionTimeoutError) return { status: 'TIMED_OUT' };
    const cause = error.cause ?? error;
    return { status: 'FAILED', error: cause.name, cause: cause.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let facts;
  try {
    facts = await observe(request);
  } catch (error) {
    facts = { crash: String(error) };
  }
  process.stdout.write(`${JSON.stringify({ id: request.id, ...facts })}\n`);
}
