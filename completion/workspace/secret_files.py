"""Recognises secret files (credentials and keys), which are never read or shown to the model.

A file is recognised by its name and the names of its folders, or by its name and what is in it
(`secret_contents.py`). The names come from three lists: the sensitive file names
of gitrob, the path rules of gitleaks, and the files with credentials that the templates of github/gitignore ignore.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

ALWAYS = {
    "environment variables with passwords and tokens": (
        ".env*", "*.env", "http-client.private.env.json", ".renviron", ".dev.vars*",
    ),
    "private keys and key stores": (
        "*.pem", "*.key", "*.keypair", "*.p8", "*.p12", "*.pfx", "*.pkcs12", "*.ppk", "*.jks", "*.keystore",
        "*.keyring", "key.properties", "*.gpg", "otr.private_key", ".gnupg",
    ),
    "SSH keys and known hosts": ("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".ssh"),
    "stores of passwords": (
        "*.kdb", "*.kdbx", "*.psafe3", "*.kwallet", "*.keychain", "*.agilekeychain", ".password-store", "wallet.dat",
    ),
    "logins by host name": (".netrc", "_netrc", ".authinfo*"),
    "tokens of package registries": (
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", "nuget.config", ".terraformrc", "terraform.rc", ".httr-oauth",
    ),
    "database passwords": (".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", "connectionstrings.config"),
    "password hashes of a web or FTP server": (".htpasswd", "proftpdpasswd"),
    "logins of file transfer and remote access": (
        ".ftpconfig", ".remote-sync.json", "sftp-config.json", "filezilla.xml", "recentservers.xml", "*.ovpn", "*.rdp",
        "*.publishsettings", "*.pubxml", "*.azurepubxml", "rclone.conf", ".passwd-s3fs",
    ),
    "credentials of clouds and clusters": (
        ".aws", ".kube", ".boto", ".s3cfg", ".dockercfg", "*.kubeconfig", ".docker/config.json", ".databrickscfg",
        ".azure/*token*", ".azure/azureprofile.json", ".azure/service_principal*", ".sentryclirc", "kaggle.json",
        "service-account*.json", "service_account*.json", "*serviceaccount*.json", "*-firebase-adminsdk-*.json",
        "google-services.json", "googleservice-info.plist", "local.settings.json",
    ),
    "values of an infrastructure's secret variables": (
        "*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", "*.pkrvars.hcl", ".vault-token", "vault_pass*",
        ".vault_pass*",
    ),
    "secrets that a framework keeps in code": (
        "secret_token.rb", "*.secret.exs", "wp-config.php", "localsettings.php", "secrets.h", "arduino_secrets.h",
    ),
    "commands as they were typed, passwords among them": (".*_history",),
}  # fmt: skip
"""Lower-case glob patterns of the names of secret files, with any ending, and of folders, by what these hold."""

UNLESS_CODE = {
    "credentials": ("*credential*",),
    "secrets": (
        "*secret", "*secrets", "*secret.*", "*secrets.*", "secret[_-]*", "secrets[_-]*", "*[._-]secret[_-]*",
        "*[._-]secrets[_-]*",
    ),
    "passwords": ("*password", "*passwords", "*password.*", "*passwords.*", "*passwd", "*passwd.*"),
    "private keys": ("*private_key*", "*private-key*", "*privatekey*"),
    "keys and tokens of an API": (
        "*api_key.*", "*api_keys.*", "*api-key.*", "*api-keys.*", "*apikey.*", "*apikeys.*", "*access_token*",
        "*access-token*", "*.token",
    ),
    "SSH keys": ("*_rsa", "*_dsa", "*_ecdsa", "*_ed25519"),
    "logins by host name, and password hashes": ("authinfo*", "htpasswd"),
    "credentials of clouds and clusters": ("gcloud", "kubeconfig*"),
}  # fmt: skip
"""Names of secret files if their ending is one of data.

`secrets.py`, `CredentialProvider.java`, `secrets/store.go` and `kubeconfig/client.go` are modules that handle secrets,
which their authors edit all day. Data and notes with these names are secret.
"""

_DATA_ENDINGS = frozenset({
    "", ".txt", ".json", ".jsonc", ".yml", ".yaml", ".toml", ".ini", ".cfg", ".conf", ".cnf", ".properties", ".xml",
    ".csv", ".tsv", ".plist", ".db", ".enc", ".token", ".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd", ".log",
})  # fmt: skip
"""Endings of data. Shell scripts count as data: `secrets.sh` mostly exports values. All else is code or prose."""

_TEMPLATE_ENDINGS = frozenset({".example", ".sample", ".template", ".dist", ".tmpl", ".tpl", ".defaults"})
"""Endings of files that name what is to be filled in."""

_TRANSLATION = re.compile(r"\.[a-z]{2}(?:[_-][a-z]{2,4})?\.[a-z]+$")
"""The end of a name with a language: what programs show to users."""

SUSPECT = {
    "settings of tools, with logins or without": (
        "auth.json", "settings.xml", "gradle.properties", "pip.conf", "hosts.yml", "profiles.yml", "*.asc", "*.http",
        "docker-compose*.yml", "compose*.yaml", "application*.properties", "application*.yml", "appsettings*.json",
    ),
}  # fmt: skip
"""Names of files of which what is in them decides, besides code with the names of `UNLESS_CODE`."""

_COPY_ENDINGS = frozenset({".bak", ".backup", ".old", ".orig", ".save", ".tmp"})
"""Endings that users and tools append to the name of a file for a copy of it. Editors write `name~` and `#name#`."""


def is_secret(path: str) -> bool:
    """Return whether a file holds secrets by its name or the name of a folder above it, whatever is in it."""
    *folders, name = _parts(path)
    is_sample = PurePosixPath(name).suffix in _TEMPLATE_ENDINGS
    if is_sample or _TRANSLATION.search(name):
        return is_secret_folder("/".join(folders)) or (not is_sample and _any_matches(_ALWAYS, [name]))
    is_data = PurePosixPath(name.strip("#~")).suffix in _DATA_ENDINGS | _COPY_ENDINGS
    parts = [*folders, name, copied := _copied(name), "/".join((*folders[-1:], copied))]
    return _any_matches(_ALWAYS, parts) or (is_data and _any_matches(_UNLESS_CODE, parts))


def is_suspect(path: str) -> bool:
    """Return whether a file's name lets expect secrets, but what is in it decides."""
    named = any(_any_matches(names, _parts(path)) for names in (_ALWAYS, _UNLESS_CODE, _SUSPECT))
    return named and not is_secret(path)


def is_secret_folder(path: str) -> bool:
    """Return whether every file in a folder is secret."""
    return _any_matches(_ALWAYS, _parts(path))


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").lower().split("/")


def _copied(name: str) -> str:
    """Return the name of the file that a file is a copy of; the name itself if it names no copy."""
    name = name.strip("#~")
    ending = PurePosixPath(name).suffix
    return name.removesuffix(ending) if ending in _COPY_ENDINGS else name


def _any_matches(names: re.Pattern[str], parts: list[str]) -> bool:
    return any(map(names.match, parts))


def _compiled(table: Mapping[str, tuple[str, ...]]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for patterns in table.values() for pattern in patterns))


_ALWAYS = _compiled(ALWAYS)
_UNLESS_CODE = _compiled(UNLESS_CODE)
_SUSPECT = _compiled(SUSPECT)
