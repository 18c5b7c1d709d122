"""Secrets that are planted in files of any name, and ordinary files of real packages, which hold none."""

import base64
import random
import string
import sysconfig
from pathlib import Path

import pytest

from completion.workspace.secret_contents import _SLICE, secret_in
from completion.workspace.secret_files import is_secret, is_suspect

PLANTED = 500
ORDINARY = 2_000
ENDINGS = frozenset({
    ".py", ".pyi", ".c", ".h", ".js", ".css", ".html", ".md", ".rst", ".txt", ".json", ".toml", ".cfg", ".yml", ".yaml",
})  # fmt: skip
LETTERS = string.ascii_letters + string.digits


def text_of(rng, size, characters=LETTERS):
    """Return random characters, digits and both cases of letters among them."""
    return "aB3" + "".join(rng.choices(characters, k=size - 3))


def key_file(rng):
    body = base64.b64encode(rng.randbytes(600)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    kind = rng.choice(["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
    return "\n".join([f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"])


SECRETS = (
    key_file,
    lambda rng: f'SIGNING_KEY = """{key_file(rng)}"""',
    lambda rng: '{"private_key": "' + key_file(rng).replace("\n", "\\n") + '"}',
    lambda rng: '{"private_key": "' + key_file(rng).replace("\n", "\\r\\n") + '"}',
    lambda rng: f"aws_access_key_id = AKIA{text_of(rng, 16, string.ascii_uppercase + string.digits).upper()}",
    lambda rng: f"curl -H 'Authorization: token ghp_{text_of(rng, 36)}' https://api.host.net",
    lambda rng: f"slack: xoxb-{text_of(rng, 40)}",
    lambda rng: f"stripe.key = sk_live_{text_of(rng, 24)}",
    lambda rng: f"DATABASE_URL=postgres://app:{text_of(rng, 18)}@db.internal:5432/app",
    lambda rng: f"REDIS_URL=redis://:{text_of(rng, 20)}@cache:6379",
    lambda rng: f"database:\n  user: app\n  password: {text_of(rng, 20)}\n",
    lambda rng: f'const settings = {{ host: "db", dbPassword: "{text_of(rng, 24)}" }};',
    lambda rng: f'export API_KEY="{text_of(rng, 32)}"',
    lambda rng: f"client_secret = {rng.randbytes(20).hex()}",
)
NAMES = ("notes.txt", "app.yml", "conf/site.ini", "src/main.py", "index.ts", "deploy.sh", "a.json", "Makefile", "x.nix")


def lines(rng):
    return "".join(f"value_{number} = read(stream, {rng.randrange(100)})\n" for number in range(rng.randrange(1, 60)))


def test_no_planted_secret_is_missed_whatever_its_file_is_called():
    rng = random.Random(2)
    texts = (f"{lines(rng)}\n{rng.choice(SECRETS)(rng)}\n{lines(rng)}" for _ in range(PLANTED))
    planted = [(rng.choice(NAMES), text.replace("\n", rng.choice(("\n", "\r\n")))) for text in texts]
    missed = [(name, text) for name, text in planted if not (is_secret(name) or secret_in(text, is_suspect=False))]
    assert missed == []


def ordinary_files():
    """Return files of the standard library and the installed packages whose names are of source and documentation.

    The other half chose the bounds of `secret_contents.py`.
    """
    stdlib, installed = (Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib"))
    found = [path for path in stdlib.rglob("*") if "site-packages" not in path.parts] + [*installed.rglob("*")]
    files = sorted({path for path in found if path.suffix in ENDINGS and path.is_file()})
    random.Random(1).shuffle(files)
    return files[1::2]


def test_ordinary_files_of_real_packages_are_not_refused():
    refused, count = [], 0
    for path in ordinary_files():
        if count == ORDINARY:
            break
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        count += 1
        inside = "/".join(path.parts[-3:])
        if is_secret(inside) or secret_in(text, is_suspect=is_suspect(inside)):
            refused.append(path)
    assert count == ORDINARY
    assert len(refused) <= ORDINARY // 1000  # which are read differs by machine; a few packages publish a token


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("auth.json", '{"http-basic": {"repo.host.net": {"username": "me", "password": "hunter2x"}}}'),
        (".env.example", "API_TOKEN=9fj2kd81\n"),
        ("secrets.nix", '{ services.db.password = "k3yb0ard"; }'),
        ("gradle.properties", "repositoryPassword=k3yb0ard\n"),
    ],
)
def test_a_short_value_counts_where_the_name_lets_expect_secrets(name, text):
    assert is_suspect(name)
    assert secret_in(text, is_suspect=True)
    assert not secret_in(text, is_suspect=False)


@pytest.mark.parametrize(
    "text",
    ["API_TOKEN=\n", "API_TOKEN=your-token-1\n", "PASSWORD=changeme1\n", "secret: ${SECRET_1}\n",
     "token = get_token2()\n",
     "password: Enter your password, 8 characters or more\n", "-----BEGIN PUBLIC KEY-----\n", "password = None\n",
     'verify_token="eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9..."\n', "api_key: sk-aB3dE6gH9jK2mN5p…\n"],
)  # fmt: skip
def test_a_placeholder_is_no_secret_even_where_secrets_are_expected(text):
    assert not secret_in(text, is_suspect=True)


@pytest.mark.parametrize("offset", range(-60, 8))
def test_a_secret_on_the_border_of_two_slices_of_a_long_text_is_found(offset):
    before = "x" * (_SLICE + offset) + "\n"
    assert secret_in(f"{before}aws_access_key_id = AKIAQWERTZUIOP345678\n" + "y" * _SLICE, is_suspect=False)
    assert not secret_in(f"{before}aws_access_key_name = AKIA\n" + "y" * _SLICE, is_suspect=False)


@pytest.mark.parametrize("offset", range(-8_000, 64, 500))
def test_a_long_token_on_the_border_of_two_slices_is_found(offset):
    rng = random.Random(3)
    token = f"eyJ{text_of(rng, 40)}.eyJ{text_of(rng, 7_000)}.{text_of(rng, 43)}"
    assert secret_in(f"{'x' * (_SLICE + offset)}\nAuthorization: Bearer {token}\n", is_suspect=False)
