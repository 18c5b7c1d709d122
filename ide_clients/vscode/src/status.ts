// The status bar item: the state of the server and the last latency. A click opens the menu.

import * as vscode from "vscode";
import { setting, wants } from "./settings.js";

/** The status notification of the server. */
export interface ServerStatus {
  readonly kind: "starting" | "ready" | "busy" | "error";
  readonly message?: string;
  readonly model?: string;
  readonly device?: string;
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

  /** Show a status. */
  update(status: ServerStatus): void {
    this.status = status;
    this.draw();
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
    const language = vscode.window.activeTextEditor?.document.languageId;
    const isOff = !setting("enabled") || (language !== undefined && !wants(language));
    const latency = this.latencyMs === undefined ? "" : ` ${this.latencyMs} ms`;
    this.item.text = isOff ? "$(circle-slash) draftline" : `${ICONS[this.status.kind]} draftline${latency}`;
    const { kind, message, model, device } = this.status;
    this.item.tooltip = [`draftline: ${isOff ? "off" : kind}`, message, model, device].filter(Boolean).join("\n");
    const isBroken = kind === "error" && !isOff;
    this.item.backgroundColor = isBroken ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
  }
}
