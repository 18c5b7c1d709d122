"""Secret files in a workspace that the language server's real feed reads, and what the engine sees of them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from lsprotocol import types

from completion.request import Closing, CompletionRequest, WorkspaceUpdate
from completion.workspace.context import WorkspaceContext
from lsp_server.documents.documents import DocumentStore
from lsp_server.documents.workspace_feed import WorkspaceFeed
from lsp_server.documents.workspace_folders import WorkspaceFolders
from lsp_server.settings.table import Settings

NAMES = (
    ".env", ".env.local", "config/prod.env", ".envrc", "server.pem", "tls/private.key", "id_rsa", "keys/id_ed25519",
    "deploy_rsa", "store.jks", "store.p12", ".ssh/config", ".aws/credentials", ".azure/tokens.json", ".kube/config",
    ".docker/config.json", ".netrc", ".npmrc", ".pypirc", ".yarnrc.yml", ".pgpass", ".my.cnf", ".htpasswd",
    "secrets.yaml", "my-secrets.yml", "secrets.json", "config/secret.toml", "credentials.json", "client_secret_1.json",
    "aws_credentials.ini", "service-account-prod.json", "google-services.json", "terraform.tfstate",
    "prod.tfvars", "terraform.tfvars.json", "vault_pass.txt", ".vault-token", "private_key.txt", "passwords.txt",
    "api_key.txt", "access_token.json", "wp-config.php", ".bash_history", "kubeconfig.yaml", "secrets/prod.yaml",
    "ignored.py", "build/ignored.py",
)  # fmt: skip
"""Names of credentials, and files that the workspace's own .gitignore keeps private."""
BUDGET_TOKENS = 100_000
"""More than all files have: a prompt takes in whatever may be shown."""


def secrets_read() -> tuple[int, list[str]]:
    """Return the number of planted files, and the names of those whose text was sent or chosen for a prompt."""
    with tempfile.TemporaryDirectory() as folder:
        return len(NAMES), asyncio.run(_read(Path(folder).resolve()))


async def _read(root: Path) -> list[str]:
    files = {name: f"canary_{number} = load_value(stream, header, offset)\n" for number, name in enumerate(NAMES)}
    ordinary = "def load_value(stream, header, offset):\n    return stream.read(header, offset)\n"
    _write(root, files | {".gitignore": "ignored.py\n", "values.py": ordinary})
    folders, documents, engine = WorkspaceFolders(), DocumentStore(), _Engine()
    folders.add([types.WorkspaceFolder(root.as_uri(), "project")])
    feed = WorkspaceFeed(folders, documents, engine, lambda _uri: Settings(), pause_s=0)
    await feed.scan()
    await feed.idle()
    for name, text in files.items():  # opened, edited and closed in the editor, and changed on disk
        document = documents.open(types.TextDocumentItem((root / name).as_uri(), "plaintext", 1, text))
        feed.changed(document)
        await feed.idle()
        documents.close(document.uri)
        feed.closed(document)
    await feed.files_changed([types.FileEvent((root / n).as_uri(), types.FileChangeType.Changed) for n in files])
    await feed.idle()
    await feed.close()
    if "def load_value" not in engine.sent:
        raise SystemExit("The feed did not send the ordinary file values.py, so nothing was measured.")
    seen = engine.sent + engine.prompt(files)
    return [name for number, name in enumerate(NAMES) if f"canary_{number} " in seen]


class _Engine:
    """Takes the feed's updates, as the engine does."""

    def __init__(self) -> None:
        self._context = WorkspaceContext()
        self.sent = ""

    async def __call__(self, message: WorkspaceUpdate | Closing) -> None:
        if isinstance(message, WorkspaceUpdate):
            self._context.update(message)
            self.sent += "".join(file.text for file in message.changed)

    def prompt(self, files: dict[str, str]) -> str:
        """Return the text of other files in the prompts of documents that use every planted name."""
        above = "from values import load_value\n" + "".join(files.values())
        request = CompletionRequest(above, language="python", path="main.py")
        return "".join(piece.text for piece in self._context.choose(request, BUDGET_TOKENS))


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
