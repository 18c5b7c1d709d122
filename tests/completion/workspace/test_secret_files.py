"""Names of secret files, and names of code that handles secrets."""

import pytest

from completion.workspace.secret_files import ALWAYS, UNLESS_CODE, is_secret, is_secret_folder


@pytest.mark.parametrize(
    "path",
    ["my-secrets.yml", "client_secret_123.apps.json", "clientSecret.json", "secrets/db.yml", "deploy/Secrets/token",
     "terraform.tfvars.json", ".yarnrc.yml", "private_key.txt", "id_ed25519", "deploy_rsa", "passwords.csv",
     "serviceAccountKey.json", "x-firebase-adminsdk-1.json", "google-services.json", "wp-config.php", "secrets.h",
     "kubeconfig", "kubeconfig.yaml", "gcloud/access.db", "authinfo.gpg", "htpasswd",
     ".ssh/config.py", "C:\\work\\secrets.yaml", "secrets.sh", ".bash_history", "config/credentials/prod.yml.enc"],
)  # fmt: skip
def test_names_of_secret_files_are_recognised(path):
    assert is_secret(path)


@pytest.mark.parametrize(
    "path",
    ["secrets.py", "src/secrets/store.go", "CredentialProvider.java", "credentials.ts", "reset_password.html",
     "secrets.tf", "environment.py", "keys.py", "tokens.json", "secretary.txt", "monkey.py", "Makefile", "a.gitkeep",
     "locales/en/auth.json", "public_api.md", "parser.rs", "util/kubeconfig/kubeconfig.go", "authinfo.ts",
     "plugins/gcloud/client.py", "pkg/htpasswd/parse.go", "crypto_rsa/sign.c"],
)  # fmt: skip
def test_code_that_handles_secrets_and_ordinary_files_are_not_secret(path):
    assert not is_secret(path)


def test_a_folder_is_secret_only_if_its_code_is_secret():
    assert is_secret_folder("home/.ssh")
    assert not is_secret_folder("src/secrets")


def test_every_row_says_what_its_files_hold_and_every_pattern_can_match():
    patterns = [pattern for row in (*ALWAYS, *UNLESS_CODE) for pattern in row.patterns]
    assert all(row.holds and row.patterns for row in (*ALWAYS, *UNLESS_CODE))
    assert len(patterns) == len(set(patterns))
    assert all(is_secret(pattern.replace("[._-]", "-").replace("[_-]", "-").replace("*", "x")) for pattern in patterns)
