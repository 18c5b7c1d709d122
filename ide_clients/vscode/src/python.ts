// Finds the Python that runs the server: the chosen one, one that has draftline, or a new private environment.

import { execFile } from "node:child_process";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { reasonOf } from "./errors.js";
import { PROBE, scriptArguments, wheelVersion } from "./launch.js";
import { downloadEnvironment, setting } from "./settings.js";

const run = promisify(execFile);
const PROBE_MS = 20_000;
const IS_WINDOWS = process.platform === "win32";
const OLDEST_PYTHON = "3.11";

/** Return the path of Python in a virtual environment. */
function programOf(environment: string): string {
  return IS_WINDOWS ? join(environment, "Scripts", "python.exe") : join(environment, "bin", "python");
}

/** Return the version of the server that a Python can import, "" if it is not installed, undefined if there is none. */
async function serverVersion(python: string, folder: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(python, PROBE, { cwd: folder, timeout: PROBE_MS });
    return stdout.trim();
  } catch {
    return undefined; // the program does not exist or has no draftline: the caller tries the next candidate
  }
}

/** Return the interpreter that is selected in the Python extension, if it is installed. */
async function selectedInterpreter(): Promise<string | undefined> {
  interface PythonExtension {
    environments?: { getActiveEnvironmentPath(): { path: string } };
  }
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  const exported = await extension?.activate().then(undefined, () => undefined); // one that fails is not ours to report
  return exported?.environments?.getActiveEnvironmentPath().path;
}

/** Finds the Python that runs the server, or creates one. */
export class PythonFinder {
  private readonly folder: string;
  private readonly storage: string;
  private readonly installer: string;
  private readonly bundle: string;

  constructor(
    context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.folder = join(context.globalStorageUri.fsPath, "run");
    this.storage = context.globalStorageUri.fsPath;
    this.installer = join(context.extensionPath, "install_server.py");
    this.bundle = join(context.extensionPath, "dist");
  }

  /** Return an empty folder in which processes run. */
  async workingFolder(): Promise<string> {
    await mkdir(this.folder, { recursive: true });
    return this.folder;
  }

  /** Return the first Python that has draftline, or undefined. Bring the private environment up to this extension first. */
  async find(): Promise<string | undefined> {
    const folder = await this.workingFolder();
    for (const python of await this.candidates()) {
      const version = await serverVersion(python, folder);
      if (version !== undefined) {
        this.log.info(`draftline ${version} is in ${python}`);
        const isOutdated = python === (await this.privatePython()) && (await this.isOther(version));
        return isOutdated ? ((await this.install()) ?? python) : python;
      }
      this.log.info(`no draftline in ${python}`);
    }
    return undefined;
  }

  /** Ask for consent, then create a private environment with draftline and show the progress. Return its Python. */
  async offerToInstall(): Promise<string | undefined> {
    const install = "Install";
    const choose = "Choose a Python…";
    const answer = await vscode.window.showInformationMessage(
      "No Python with draftline was found. Install draftline in a private environment of this extension? " +
        "This downloads the model (0.5 GB) and libraries.",
      install,
      choose,
    );
    if (answer === choose) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "draftline.python");
    }
    return answer === install ? await this.install() : undefined;
  }

  /** Create the private environment. Return its Python, or undefined after showing why that failed. */
  private async install(): Promise<string | undefined> {
    const options = { location: vscode.ProgressLocation.Notification, title: "draftline", cancellable: true };
    try {
      return await vscode.window.withProgress(options, async (progress, token) => {
        const sources = setting("installFrom") === "" ? await this.ownVersion() : [setting("installFrom")];
        const cwd = await this.workingFolder();
        const abort = new AbortController();
        token.onCancellationRequested(() => { abort.abort(); });
        const base = await this.basePython(cwd);
        progress.report({ message: "installing draftline and its model; this takes some minutes" });
        const words = scriptArguments(this.installer, this.storage, ...sources);
        const options = { cwd, env: downloadEnvironment(), signal: abort.signal, maxBuffer: 64 * 1024 * 1024 };
        const { stdout, stderr } = await run(base, words, options);
        this.log.info(stderr);
        return stdout.trim();
      });
    } catch (error) {
      this.log.error(reasonOf(error));
      void vscode.window.showErrorMessage("draftline could not be installed; “draftline: Show Log” says why.");
      return undefined;
    }
  }

  /** Return whether a version is not that of the wheel in this extension, after an update of the extension. */
  private async isOther(version: string): Promise<boolean> {
    const wheel = await this.wheel();
    return wheel !== undefined && setting("installFrom") === "" && wheelVersion(wheel) !== version;
  }

  /** Return the name of the wheel in this extension, undefined if it was built without one. */
  private async wheel(): Promise<string | undefined> {
    return (await readdir(this.bundle)).find((name) => name.endsWith(".whl"));
  }

  /** Return the Python of the private environment that is complete, undefined without one. */
  private async privatePython(): Promise<string | undefined> {
    return await readFile(join(this.storage, "python"), "utf-8").catch(() => undefined);
  }

  /** Return the wheel in this extension and what it requires. Its name alone could be anybody's package in an index. */
  private async ownVersion(): Promise<string[]> {
    const wheel = await this.wheel();
    if (wheel === undefined) {
      throw new Error("this extension was built without draftline; set “draftline.installFrom” to its folder or wheel");
    }
    return [join(this.bundle, wheel), join(this.bundle, "requirements.txt")];
  }

  private async basePython(cwd: string): Promise<string> {
    for (const python of ["python3", "python"]) {
      try {
        const code = `import sys; sys.exit(sys.version_info < (${OLDEST_PYTHON.replace(".", ", ")}))`;
        await run(python, ["-c", code], { cwd, timeout: PROBE_MS });
        return python;
      } catch {
        this.log.info(`${python} is not Python ${OLDEST_PYTHON} or newer`);
      }
    }
    throw new Error(`Python ${OLDEST_PYTHON} or newer is not on the PATH; install it, or set “draftline.python”`);
  }

  private async candidates(): Promise<string[]> {
    const chosen = setting("python");
    if (chosen !== "") {
      return [chosen];
    }
    const { isTrusted, workspaceFolders = [] } = vscode.workspace;
    const folders = isTrusted ? workspaceFolders : [];
    const found = [
      isTrusted ? await selectedInterpreter() : undefined, // it can be an environment in the folder
      await this.privatePython(),
      ...folders.map((folder) => programOf(join(folder.uri.fsPath, ".venv"))),
    ];
    return [...new Set([...found, "python3", "python"].filter((python) => python !== undefined))];
  }
}
