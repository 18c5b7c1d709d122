"""Emacs with eglot, with eglot and company, and with lsp-mode, each with what docs/editors.md says and no more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tests.e2e.clients.client import Client, line_and_column
from tests.e2e.clients.cursors import Cursor
from tests.e2e.clients.documented import set_up
from tests.e2e.clients.programs import unpacked

INIT = """
(setq native-comp-enable-subr-trampolines nil
      make-backup-files nil auto-save-default nil create-lockfiles nil native-comp-jit-compilation nil
      debug-on-error nil use-short-answers t)
(defun tests-wait (condition)
  (with-timeout (20 nil)
    (while (not (funcall condition)) (accept-process-output nil 0.02))
    t))
(defun tests-put-cursor (file line column)
  (find-file file)
  (tests-connect)
  (goto-char (point-min))
  (forward-line (1- line))
  (forward-char column))
"""


class _Emacs(Client):
    init: ClassVar[str]
    keys: ClassVar[str]
    plugin: ClassVar[str]

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        paths = unpacked()
        [image] = Path(paths["root"]).glob("usr/libexec/emacs/*/*/*.pdmp")
        [share] = Path(paths["root"]).glob("usr/share/emacs/[0-9]*")
        etc = str(share / "etc")
        packages = Path(paths["root"]).glob("usr/share/emacs/site-lisp/elpa-src/*")
        script = folder / "init.el"
        loads = "".join(f"(add-to-list 'load-path {json.dumps(str(one))})\n" for one in packages)
        script.write_text(loads + INIT + self.init, encoding="utf-8")
        self.socket = folder / "emacs"
        folders = {
            "EMACSLOADPATH": f"{share / 'lisp'}:", "EMACSDATA": etc, "EMACSDOC": etc, "HOME": str(folder),
            "EMACSPATH": "/usr/bin:/bin",
        }  # fmt: skip
        self.variables = {**environment, **folders}
        self.client = paths["emacsclient"]
        self.log = (folder / "emacs.log").open("wb")
        self.process = subprocess.Popen(
            [paths["emacs"], f"--dump-file={image}", "-Q", f"--fg-daemon={self.socket}", "-l", str(script)],
            env=self.variables, stdout=self.log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        while self.run("t").returncode != 0:
            assert self.process.poll() is None, (folder / "emacs.log").read_text()
        self.version = json.loads(self.evaluate(f'(format "%s, %s" emacs-version {self.plugin})'))

    def run(self, expression: str) -> subprocess.CompletedProcess[str]:
        """Let Emacs evaluate an expression; this fails while Emacs starts."""
        command = [self.client, "-s", str(self.socket), "--eval", expression]
        return subprocess.run(command, env=self.variables, capture_output=True, text=True, timeout=60, check=False)

    def evaluate(self, expression: str) -> str:
        """Return the printed value of an expression."""
        done = self.run(expression)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout.strip()

    def accept(self, file: Path, cursor: Cursor) -> None:
        """Put the cursor, ask, and accept by the keys."""
        line, column = line_and_column(cursor)
        self.evaluate(
            f"(progn (tests-put-cursor {json.dumps(str(file))} {line} {column})"
            f' (with-demoted-errors "%S" (tests-ask) (execute-kbd-macro (kbd {json.dumps(self.keys)})))'
            " (save-buffer) (kill-buffer))"
        )

    def close(self) -> None:
        """End Emacs."""
        self.process.kill()
        self.process.wait(10)
        self.log.close()


EGLOT = set_up("Emacs", "elisp").replace("python-mode .", "(python-mode js-mode c-mode java-mode css-mode) .")
EGLOT += """
(setq eglot-sync-connect 30)
(defun tests-connect () (eglot-ensure) (run-hooks 'post-command-hook))
(defun tests-ask ())
"""
PACKAGE_VERSION = (
    '(with-temp-buffer (insert-file-contents (locate-library "{0}.el")) (require (quote lisp-mnt)) '
    '(concat "{0} " (lm-header "version")))'
)


class Eglot(_Emacs):
    """Completion at point."""

    name = "Emacs, eglot"
    shows = "completion at point"
    init = EGLOT
    keys = "C-M-i"
    plugin = PACKAGE_VERSION.format("eglot")


class Company(_Emacs):
    """The menu of company."""

    name = "Emacs, eglot, company"
    shows = "the completion menu"
    # company shows no menu in a keyboard macro, so its commands are called
    init = f"""{EGLOT}
(require 'company)
(defun tests-ask () (company-mode 1) (company-manual-begin) (company-complete-selection))
"""
    keys = ""
    plugin = PACKAGE_VERSION.format("company")


class LspMode(_Emacs):
    """lsp-mode's inline completion."""

    name = "Emacs, lsp-mode"
    shows = "ghost text, complete"
    init = f"""
(setq lsp-keymap-prefix "C-c l" lsp-client-packages nil lsp-warn-no-matched-clients nil lsp-enable-snippet nil)
(load "lsp-mode-autoloads" nil t)
(require 'lsp-mode)
{set_up("Emacs", "elisp", 1)}
(defun tests-connect ()
  (lsp-workspace-folders-add (directory-file-name default-directory))
  (lsp)
  (tests-wait (lambda () (seq-some (lambda (one) (eq 'initialized (lsp--workspace-status one))) (lsp-workspaces)))))
(defun tests-ask () (lsp-inline-completion-display))
"""
    keys = "C-<return>"
    plugin = PACKAGE_VERSION.format("lsp-mode")
