"""Names of secret files, and names of code that handles secrets."""

import re

import pytest

from completion.workspace.secret_files import ALWAYS, UNLESS_CODE, is_secret, is_secret_folder, is_suspect


@pytest.mark.parametrize(
    "path",
    ["my-secrets.yml", "client_secret_123.apps.json", "clientSecret.json", "secrets/db.yml", "deploy/Secrets/token",
     "terraform.tfvars.json", ".yarnrc.yml", "private_key.txt", "id_ed25519", "deploy_rsa", "passwords.csv",
     "serviceAccountKey.json", "x-firebase-adminsdk-1.json", "google-services.json", "wp-config.php", "secrets.h",
     "kubeconfig", "kubeconfig.yaml", "gcloud/access.db", "authinfo.gpg", "htpasswd",
     ".Renviron", ".dev.vars", "rclone.conf", ".databrickscfg", ".docker/config.json", ".azure/msal_token_cache.json",
     "secrets.yml~", "#credentials.json#", "passwords.txt~",
     ".ssh/config.py", "C:\\work\\secrets.yaml", "secrets.sh", ".bash_history", "config/credentials/prod.yml.enc"],
)  # fmt: skip
def test_names_of_secret_files_are_recognised(path):
    assert is_secret(path)


@pytest.mark.parametrize(
    "path",
    ["secrets.py", "src/secrets/store.go", "CredentialProvider.java", "credentials.ts", "reset_password.html",
     "secrets.tf", "environment.py", "keys.py", "tokens.json", "secretary.txt", "monkey.py", "Makefile", "a.gitkeep",
     "locales/en/auth.json", "public_api.md", "parser.rs", "util/kubeconfig/kubeconfig.go", "authinfo.ts",
     "plugins/gcloud/client.py", "pkg/htpasswd/parse.go", "crypto_rsa/sign.c", "secrets.py~", "#credentials.ts#"],
)  # fmt: skip
def test_code_that_handles_secrets_and_ordinary_files_are_not_secret(path):
    assert not is_secret(path)


def test_a_folder_is_secret_only_if_its_code_is_secret():
    assert is_secret_folder("home/.ssh")
    assert not is_secret_folder("src/secrets")


def test_every_row_says_what_its_files_hold_and_every_pattern_can_match():
    patterns = [pattern for row in (ALWAYS, UNLESS_CODE) for names in row.values() for pattern in names]
    assert all(all(row) and all(row.values()) for row in (ALWAYS, UNLESS_CODE))
    assert len(patterns) == len(set(patterns))
    names = [re.sub(r"\.\*$", ".json", pattern) for pattern in patterns]
    assert all(is_secret(re.sub(r"\[[._-]+\]", "-", name).replace("*", "x")) for name in names)


@pytest.mark.parametrize(
    "path",
    ["app/views/reset_password.html.erb", "modules/KeyVaultSecret.bicep", "hosts/secrets.nix", "src/Credentials.elm",
     "migrations/add_password.sql", ".env.example", "config/locales/passwords.en.yml", "docs/README.asc",
     "web/auth.json", "docs/secrets.md"],
)  # fmt: skip
def test_what_is_in_them_decides_about_files_that_are_named_like_secrets_and_often_are_none(path):
    assert is_suspect(path)


@pytest.mark.parametrize("path", [".azure/pipelines/build.yml", ".docker/Dockerfile", "src/a.py", "environment.yml"])
def test_what_is_next_to_credentials_is_ordinary(path):
    assert not is_secret(path)
    assert not is_suspect(path)
