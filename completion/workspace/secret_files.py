"""Files whose text is never read nor shown to the model, whatever an editor sends: credentials and keys.

A file is known by its name and the names of the folders above it. The names come from three lists: the file names that
gitrob reports as sensitive, the path rules of gitleaks, and what the templates of github/gitignore keep out of a
repository because it holds credentials.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class SecretNames:
    """Glob patterns of file or folder names, in lower case, and what such a file holds."""

    holds: str
    patterns: tuple[str, ...]


ALWAYS = (
    SecretNames("environment variables with passwords and tokens", (".env*", "*.env", "http-client.private.env.json")),
    SecretNames(
        "private keys and key stores",
        ("*.pem", "*.key", "*.keypair", "*.p8", "*.p12", "*.pfx", "*.pkcs12", "*.ppk", "*.jks", "*.keystore",
         "*.keyring", "*.gpg", "*.asc", "otr.private_key", ".gnupg"),
    ),
    SecretNames(
        "SSH keys and known hosts",
        ("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519", ".ssh"),
    ),
    SecretNames(
        "stores of passwords",
        ("*.kdb", "*.kdbx", "*.psafe3", "*.kwallet", "*.keychain", "*.agilekeychain", ".password-store", "wallet.dat"),
    ),
    SecretNames("logins by host name", (".netrc", "_netrc", "authinfo*", ".authinfo*")),
    SecretNames("tokens of package registries", (".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", "nuget.config")),
    SecretNames("database passwords", (".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf")),
    SecretNames("password hashes of a web or FTP server", (".htpasswd", "htpasswd", "proftpdpasswd")),
    SecretNames(
        "logins of file transfer and remote access",
        (".ftpconfig", ".remote-sync.json", "sftp-config.json", "filezilla.xml", "recentservers.xml", "*.ovpn",
         "*.rdp", "*.publishsettings", "*.pubxml", "*.azurepubxml"),
    ),
    SecretNames(
        "credentials of clouds and clusters",
        (".aws", ".azure", ".kube", ".docker", "gcloud", ".boto", ".s3cfg", ".dockercfg", "kubeconfig*",
         "*.kubeconfig", "service-account*.json", "service_account*.json", "*serviceaccount*.json",
         "*-firebase-adminsdk-*.json", "google-services.json", "googleservice-info.plist", "local.settings.json"),
    ),
    SecretNames(
        "values of an infrastructure's secret variables",
        ("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".vault-token", "vault_pass*", ".vault_pass*"),
    ),
    SecretNames("secrets that a framework keeps in code", ("secret_token.rb", "*.secret.exs", "wp-config.php",
                                                           "localsettings.php", "secrets.h", "arduino_secrets.h")),
    SecretNames("commands as they were typed, passwords among them", (".*_history",)),
)  # fmt: skip
"""Names that say it whatever the file's ending is."""

UNLESS_CODE = (
    SecretNames("credentials", ("*credential*",)),
    SecretNames(
        "secrets",
        ("*secret", "*secrets", "*secret.*", "*secrets.*", "secret[_-]*", "secrets[_-]*", "*[._-]secret[_-]*",
         "*[._-]secrets[_-]*"),
    ),
    SecretNames("passwords", ("*password", "*passwords", "*password.*", "*passwords.*", "*passwd", "*passwd.*")),
    SecretNames("private keys", ("*private_key*", "*private-key*", "*privatekey*")),
    SecretNames(
        "keys and tokens of an API",
        ("*api_key.*", "*api_keys.*", "*api-key.*", "*api-keys.*", "*apikey.*", "*apikeys.*", "*access_token*",
         "*access-token*", "*.token"),
    ),
)  # fmt: skip
"""Words that also name the code that handles secrets.

`secrets.py`, `CredentialProvider.java` and `secrets/store.go` are modules like any other, which their authors edit all
day: a name of this table does not count for a file of code. It counts for everything else, data and notes alike.
"""

_CODE_ENDINGS = frozenset({
    ".py", ".pyi", ".pyx", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte", ".go",
    ".rs", ".java", ".kt", ".kts", ".scala", ".groovy", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".m",
    ".mm", ".swift", ".cs", ".fs", ".vb", ".rb", ".php", ".pl", ".pm", ".lua", ".ex", ".exs", ".erl", ".hs",
    ".ml", ".mli", ".clj", ".cljs", ".dart", ".r", ".jl", ".zig", ".nim", ".sol", ".proto", ".graphql", ".tf",
    ".html", ".css", ".scss", ".less",
})  # fmt: skip
"""Endings of code. Shell scripts are not code here: `secrets.sh` mostly exports values."""


def is_secret(path: str) -> bool:
    """Whether the name of a file, or of a folder above it, says that it may hold secrets."""
    parts = _parts(path)
    is_code = PurePosixPath(parts[-1]).suffix in _CODE_ENDINGS
    return _any_matches(_ALWAYS, parts) or (not is_code and _any_matches(_UNLESS_CODE, parts))


def is_secret_folder(path: str) -> bool:
    """Whether every file in a folder is secret."""
    return _any_matches(_ALWAYS, _parts(path))


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").lower().split("/")


def _any_matches(names: re.Pattern[str], parts: list[str]) -> bool:
    return any(map(names.match, parts))


def _compiled(table: tuple[SecretNames, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for row in table for pattern in row.patterns))


_ALWAYS = _compiled(ALWAYS)
_UNLESS_CODE = _compiled(UNLESS_CODE)
