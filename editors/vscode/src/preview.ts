// The preview of a drawing, which follows the cursor.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import * as vscode from "vscode";

import { DrawnDocument, DrawnWorkflow, stateAt, workflowAt } from "./graphs";

const DELAY_MS = 300;

type Draw = (document: vscode.TextDocument) => Promise<DrawnDocument>;

/** The panel with the drawing of the document that was active last. */
export class Preview implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private document: vscode.TextDocument | undefined;
  private drawn: DrawnDocument = { graphs: [], message: "" };
  private shown: DrawnWorkflow | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly listeners: vscode.Disposable[];

  constructor(
    private readonly media: vscode.Uri,
    private readonly draw: Draw,
    private readonly handles: (document: vscode.TextDocument) => boolean,
  ) {
    this.listeners = [
      vscode.window.onDidChangeActiveTextEditor((editor) => this.follow(editor)),
      vscode.window.onDidChangeTextEditorSelection((event) => {
        if (event.textEditor.document === this.document) {
          this.select(event.selections[0]?.active);
        }
      }),
      vscode.workspace.onDidChangeTextDocument((event) => {
        if (event.document === this.document) {
          clearTimeout(this.timer);
          this.timer = setTimeout(() => void this.refresh(), DELAY_MS);
        }
      }),
    ];
  }

  /** Show the drawing of a document beside it. */
  async show(document: vscode.TextDocument): Promise<void> {
    this.document = document;
    this.panel ??= this.open();
    this.panel.reveal(undefined, true);
    await this.refresh();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.panel?.dispose();
    vscode.Disposable.from(...this.listeners).dispose();
  }

  private open(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel(
      "asl.graph",
      "Graph",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, localResourceRoots: [this.media] },
    );
    panel.webview.html = this.html(panel.webview);
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.shown = undefined;
    });
    panel.webview.onDidReceiveMessage((message: { type: string; pointer?: string }) => {
      if (message.type === "ready") {
        this.shown = undefined;
        this.post();
      } else if (message.type === "open") {
        void this.reveal(message.pointer);
      }
    });
    return panel;
  }

  /** Return the page: scripts and styles of the extension only, and no other origin. */
  private html(webview: vscode.Webview): string {
    const file = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(this.media, name)).toString();
    const values: Record<string, string> = {
      source: webview.cspSource,
      nonce: randomBytes(16).toString("hex"),
      script: file("preview.js"),
      style: file("preview.css"),
    };
    const page = readFileSync(vscode.Uri.joinPath(this.media, "preview.html").fsPath, "utf8");
    return page.replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? "");
  }

  private follow(editor: vscode.TextEditor | undefined): void {
    if (this.panel !== undefined && editor !== undefined && this.handles(editor.document)) {
      this.document = editor.document;
      void this.refresh();
    }
  }

  private async refresh(): Promise<void> {
    const document = this.document;
    if (this.panel === undefined || document === undefined) {
      return;
    }
    const drawn = await this.draw(document);
    if (document === this.document) {
      this.drawn = drawn;
      this.shown = undefined;
      this.post();
    }
  }

  private post(): void {
    const editor = this.editor();
    this.select(editor?.selection.active ?? new vscode.Position(0, 0));
  }

  /** Show the workflow and mark the state around a position. */
  private select(position: vscode.Position | undefined): void {
    if (this.panel === undefined || position === undefined) {
      return;
    }
    const workflow = workflowAt(this.drawn, position);
    if (workflow === undefined || workflow !== this.shown) {
      this.shown = workflow;
      this.panel.title = workflow?.name ? `Graph of ${workflow.name}` : "Graph";
      void this.panel.webview.postMessage({
        type: "show",
        svg: workflow?.svg ?? "",
        message: this.drawn.message,
      });
    }
    const state = workflow === undefined ? undefined : stateAt(workflow, position);
    void this.panel.webview.postMessage({ type: "select", pointer: state?.pointer ?? "" });
  }

  private async reveal(pointer: string | undefined): Promise<void> {
    const state = this.shown?.states.find((each) => each.pointer === pointer);
    if (state === undefined || this.document === undefined) {
      return;
    }
    const { start } = state.key;
    const at = new vscode.Position(start.line, start.character);
    const selection = new vscode.Range(at, at);
    await vscode.window.showTextDocument(this.document, {
      viewColumn: this.editor()?.viewColumn ?? vscode.ViewColumn.One,
      selection,
    });
  }

  private editor(): vscode.TextEditor | undefined {
    return vscode.window.visibleTextEditors.find((each) => each.document === this.document);
  }
}
