// The command lines that start Python. `-P` keeps the folder that it runs in off its module path: a workspace must not
// be able to replace draftline's modules. `-I` would also ignore PYTHONPATH and the user's own packages, where draftline
// may be.

const SAFE_PATH = "-P";

/** The arguments that tell by the exit status whether a Python has the server. */
export const PROBE = [SAFE_PATH, "-c", "import lsp_server.__main__"];

/** The command that starts the language server. */
export function serverCommand(python: string): string[] {
  return [python, SAFE_PATH, "-m", "lsp_server", "--stdio"];
}

/** The arguments that run one of Python's own modules. */
export function moduleArguments(module: string, ...rest: string[]): string[] {
  return [SAFE_PATH, "-m", module, ...rest];
}

/** The arguments that run a draftline command in a terminal and keep its output on the screen. */
export function terminalArguments(subcommand: "report" | "doctor"): string[] {
  const code = `from lsp_server.cli.main import main; main(["${subcommand}"]); input("Enter closes this.")`;
  return [SAFE_PATH, "-c", code];
}
