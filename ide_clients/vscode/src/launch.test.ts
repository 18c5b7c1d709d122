// Real Python, started as the extension starts it, in a folder that holds modules of draftline's names.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { PROBE, moduleArguments, serverCommand, terminalArguments } from "./launch.js";

const PYTHON = process.env["PYTHON"] ?? "python3";
const MODULES = ["lsp_server/__init__.py", "lsp_server/__main__.py", "lsp_server/cli/main.py", "venv/__init__.py"];

/** Modules that print where they lie when they are executed, and a `main` that does nothing. */
function writeModules(folder: string, says: string): void {
  for (const name of MODULES) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), `print(${JSON.stringify(says)})\ndef main(words): pass\n`);
  }
}

/** What Python prints when it is started in a workspace with such modules, while the same are installed. */
function printed(words: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "draftline-"));
  const [workspace, installed] = [join(folder, "workspace"), join(folder, "installed")];
  try {
    writeModules(workspace, "of the workspace");
    writeModules(installed, "of the user");
    const env = { ...process.env, PYTHONPATH: installed };
    const { error, stdout } = spawnSync(PYTHON, words, { cwd: workspace, env, input: "\n", encoding: "utf-8" });
    assert.equal(error, undefined);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const STARTS: Record<string, string[]> = {
  "the search for a Python": PROBE,
  "the server": serverCommand(PYTHON).slice(1),
  "Report": terminalArguments("report"),
  "Doctor": terminalArguments("doctor"),
  "the installation": moduleArguments("venv"),
};

for (const [name, words] of Object.entries(STARTS)) {
  test(`${name} runs the user's modules and none of the workspace`, () => {
    const output = printed(words);
    assert.match(output, /of the user/);
    assert.doesNotMatch(output, /of the workspace/);
  });
}
