"""Files whose text is never read nor shown to the model, whatever an editor sends: credentials and keys."""

from __future__ import annotations

from pathspec import GitIgnoreSpec

# Matched without regard to case against every part of the path, whatever the ignore rules say.
_SECRETS = GitIgnoreSpec.from_lines((
    ".env*", "*.env", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.gpg",
    "*.asc", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*credential*", "secret.*", "secrets.*", "*_secret.*",
    "*_secrets.*", "*.secret", "*.secrets", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd",
    ".dockercfg", "kubeconfig*", "*.kubeconfig", "*.tfstate", "*.tfstate.*", "*.tfvars", "service-account*.json",
    "service_account*.json", ".vault-token", "vault_pass*", "wallet.dat", "authinfo*", ".authinfo*",
    ".ssh/", ".gnupg/", ".aws/", ".azure/", ".kube/", ".docker/", "gcloud/",
))  # fmt: skip


def is_secret(path: str) -> bool:
    """Whether the name of a file, or of a folder above it, says that it may hold secrets."""
    return bool(_SECRETS.match_file(path.replace("\\", "/").lower().lstrip("/")))
