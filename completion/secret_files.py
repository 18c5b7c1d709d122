"""Files whose text is never shown to the model, whatever an editor sends: credentials and keys."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_NAMES = re.compile(
    r"""
    \.env(\..+)? | .+\.env | \.envrc | \.netrc | _netrc | \.npmrc | \.pypirc | \.pgpass | \.htpasswd | \.git-credentials
    | \.dockercfg | \.my\.cnf | id_(rsa|dsa|ecdsa|ed25519)(\.pub)? | .*\.(pem|key|p12|pfx|jks|keystore|kdbx|asc|gpg|ppk)
    | (client_)?secrets?(\.\w+)? | credentials(\.\w+)? | service[-_]account.*\.json | .*\.tfstate(\..+)? | .*\.tfvars
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker", ".git"})


def is_secret(path: str) -> bool:
    """Whether a path names a file of credentials or keys, or lies in a folder of such."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return bool(parts) and (_NAMES.fullmatch(parts[-1]) is not None or not _FOLDERS.isdisjoint(parts[:-1]))
