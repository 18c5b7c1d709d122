// The command lines that start Python. `-P` keeps the working folder off the module path, so that a workspace cannot
// replace draftline's modules. `-I` would also ignore PYTHONPATH and the user's packages, where draftline may be.

const SAFE_PATH = "-P";

/** Arguments with which a Python that has the server prints its version, if it is installed, and exits with status 0. */
export const PROBE = [
  SAFE_PATH,
  "-c",
  "import lsp_server.__main__, importlib.metadata as m; print(next((d.version for d in m.distributions(name='draftline')), ''))",
];

/** Return the version in the name of a wheel: `draftline-0.1.0-py3-none-any.whl`. */
export function wheelVersion(name: string): string {
  return name.split("-")[1] ?? "";
}

/** Return the command that starts the language server. */
export function serverCommand(python: string): string[] {
  return [python, SAFE_PATH, "-m", "lsp_server", "--stdio"];
}

/** Return the arguments that run a script of this extension. */
export function scriptArguments(script: string, ...rest: string[]): string[] {
  return [SAFE_PATH, script, ...rest];
}

/** Return an environment with VS Code's proxy (`http.proxy`) for programs that download; one in the environment counts more. */
export function proxied(proxy: string, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return proxy === "" ? environment : { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ...environment };
}

/** Return the arguments that run a draftline command in a terminal and keep the terminal open. */
export function terminalArguments(subcommand: "report" | "doctor"): string[] {
  const code = `from lsp_server.cli.main import main; main(["${subcommand}"]); input("Press Enter to close.")`;
  return [SAFE_PATH, "-c", code];
}
