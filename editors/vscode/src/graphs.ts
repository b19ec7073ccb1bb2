// The answer of the server to the request `asl/graph`, and what the cursor is in.

export const GRAPH_REQUEST = "asl/graph";

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

/** A state of a drawing: the `data-pointer` of its box, and its place in the text. */
export interface DrawnState {
  name: string;
  pointer: string;
  range: Range;
  /** The rest of the line that begins with its name. */
  key: Range;
}

/** A workflow of a document; `name` is that of its resource in a template. */
export interface DrawnWorkflow {
  name: string;
  range: Range;
  svg: string;
  states: DrawnState[];
}

export interface DrawnDocument {
  graphs: DrawnWorkflow[];
  /** Why there is no drawing; empty if there is one. */
  message: string;
}

/** Return the workflow around a position, else the first one. */
export function workflowAt(drawn: DrawnDocument, position: Position): DrawnWorkflow | undefined {
  return drawn.graphs.find((each) => contains(each.range, position)) ?? drawn.graphs[0];
}

/** Return the innermost state around a position. */
export function stateAt(workflow: DrawnWorkflow, position: Position): DrawnState | undefined {
  const around = workflow.states.filter((each) => contains(each.range, position));
  return around.reduce<DrawnState | undefined>(
    (inner, each) => (inner === undefined || contains(inner.range, each.range.start) ? each : inner),
    undefined,
  );
}

function contains(range: Range, position: Position): boolean {
  return !isBefore(position, range.start) && !isBefore(range.end, position);
}

function isBefore(one: Position, other: Position): boolean {
  return one.line < other.line || (one.line === other.line && one.character < other.character);
}
