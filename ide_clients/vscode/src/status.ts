// The status bar item: the state of the server and the last latency. A click opens the menu.

import * as vscode from "vscode";
import { setting } from "./settings.js";

/** The status notification of the server. */
export interface ServerStatus {
  readonly kind: "starting" | "ready" | "busy" | "error";
  readonly message?: string;
  readonly model?: string;
  readonly device?: string;
  /** Why there are no automatic suggestions where the user types; empty if there are. */
  readonly quiet?: string;
}

const ICONS = { starting: "$(loading~spin)", ready: "$(sparkle)", busy: "$(sync~spin)", error: "$(error)" } as const;

export class StatusItem implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private status: ServerStatus = { kind: "starting" };
  private latencyMs: number | undefined;
  private readonly subscriptions: vscode.Disposable;

  constructor() {
    this.item = vscode.window.createStatusBarItem("draftline.status", vscode.StatusBarAlignment.Right, 100);
    this.item.name = "draftline";
    this.item.command = "draftline.showMenu";
    this.subscriptions = vscode.Disposable.from(
      this.item,
      vscode.window.onDidChangeActiveTextEditor(() => { this.draw(); }),
      vscode.workspace.onDidChangeConfiguration(() => { this.draw(); }),
    );
    this.draw();
    this.item.show();
  }

  /** Show a status, and return the one before. */
  update(status: ServerStatus): ServerStatus {
    const before = this.status;
    this.status = status;
    this.draw();
    return before;
  }

  /** Show the time to the first text of the last suggestion. */
  latency(milliseconds: number): void {
    this.latencyMs = Math.round(milliseconds);
    this.draw();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private draw(): void {
    const isOff = !setting("enabled");
    const latency = this.latencyMs === undefined ? "" : ` ${this.latencyMs} ms`;
    const { kind, message, model, device, quiet = "" } = this.status;
    const icon = kind === "ready" && quiet !== "" ? "$(bell-slash)" : ICONS[kind];
    this.item.text = isOff ? "$(circle-slash) draftline" : `${icon} draftline${latency}`;
    this.item.tooltip = [`draftline: ${isOff ? "off" : kind}`, quiet, message, model, device].filter(Boolean).join("\n");
    const isBroken = kind === "error" && !isOff;
    this.item.backgroundColor = isBroken ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
  }
}
