// Starts a real Python as the extension does, in a folder with modules that have draftline's names.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { PROBE, proxied, scriptArguments, serverCommand, terminalArguments, wheelVersion } from "./launch.js";

const PYTHON = process.env["PYTHON"] ?? "python3";
const MODULES = ["lsp_server/__init__.py", "lsp_server/__main__.py", "lsp_server/cli/main.py", "venv/__init__.py"];

/** Write modules that print a text when they are executed, with a `main` that does nothing. */
function writeModules(folder: string, says: string): void {
  for (const name of MODULES) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), `print(${JSON.stringify(says)})\ndef main(words): pass\n`);
  }
}

/** Return what Python prints in a workspace with such modules, while the same modules are installed as a version. */
function printed(words: string[], version = "1.2.3"): string {
  const folder = mkdtempSync(join(tmpdir(), "draftline-"));
  const [workspace, installed] = [join(folder, "workspace"), join(folder, "installed")];
  try {
    writeModules(workspace, "of the workspace");
    writeModules(installed, "of the user");
    const metadata = join(installed, `draftline-${version}.dist-info`);
    mkdirSync(metadata);
    writeFileSync(join(metadata, "METADATA"), `Name: draftline\nVersion: ${version}\n`);
    const env = { ...process.env, PYTHONPATH: installed };
    const { error, stdout } = spawnSync(PYTHON, words, { cwd: workspace, env, input: "\n", encoding: "utf-8" });
    assert.equal(error, undefined);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// A script that imports the server, as the installation does.
const ownScript = join(mkdtempSync(join(tmpdir(), "draftline-")), "script.py");
writeFileSync(ownScript, "import lsp_server\n");

const STARTS: Record<string, string[]> = {
  "the search for a Python": PROBE,
  "the server": serverCommand(PYTHON).slice(1),
  "Report": terminalArguments("report"),
  "Doctor": terminalArguments("doctor"),
  "the installation": scriptArguments(ownScript),
};

for (const [name, words] of Object.entries(STARTS)) {
  test(`${name} runs the installed modules and none of the workspace`, () => {
    const output = printed(words);
    assert.match(output, /of the user/);
    assert.doesNotMatch(output, /of the workspace/);
  });
}

test("the search for a Python finds the installed version, which a wheel's name can be compared with", () => {
  assert.equal(printed(PROBE, "4.5.6rc1").trim().split("\n").at(-1), "4.5.6rc1");
  assert.equal(wheelVersion("draftline-4.5.6rc1-py3-none-any.whl"), "4.5.6rc1");
});

test("programs that download get VS Code's proxy unless the environment names one", () => {
  assert.deepEqual(proxied("", { PATH: "/bin" }), { PATH: "/bin" });
  const proxy = "http://proxy.example:3128";
  assert.deepEqual(proxied(proxy, { PATH: "/bin" }), { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, PATH: "/bin" });
  assert.equal(proxied(proxy, { HTTPS_PROXY: "http://own.example" })["HTTPS_PROXY"], "http://own.example");
});
