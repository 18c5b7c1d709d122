"""What the user's settings and remembered answers say about a workspace."""

from dataclasses import replace
from pathlib import Path

import pytest

from lsp_server.engine.consent import KEEP, SEND, Consent, by_rules, question
from lsp_server.settings.config import remote_address
from lsp_server.settings.shared_file import HashedAnswers
from lsp_server.settings.table import DEFAULTS
from tests.lsp_server.scripted_editor import settle

URL = "https://gpu.example:8080"
APP = Path("/home/ada/work/app")


class User:
    """A user who answers all questions alike."""

    def __init__(self, path, answer=None, **settings):
        self.asked, self.faults = [], []
        self.answer = answer
        self.settings = replace(DEFAULTS, **{"engine_url": URL, **settings})
        self.consent = Consent(HashedAnswers(path), lambda: self.settings, self._ask, self.faults.append)

    async def _ask(self, message, answers):
        assert answers == (SEND, KEEP)
        self.asked.append(message)
        return self.answer

    async def allows(self, folder=APP):
        """Return what holds before and after an answer."""
        before = self.consent.allows(folder.as_uri(), folder.name, folder / "a.py")
        await settle()
        return before, self.consent.allows(folder.as_uri(), folder.name, folder / "a.py")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["*"], True),
        (["!*"], False),
        (["/home/ada/work"], True),
        (["/home/ada/work/app"], True),
        (["/home/ada/work/ap"], None),
        (["/home/ada/work/app/inner"], None),
        (["work"], None),
        (["*", "!/home/ada/work"], False),
        (["!/home/ada/work", "*"], False),
        (["!/home/ada/work", "/home/ada/work/app", "*"], True),
        (["*", "!/home/ada/work/app/a.py"], False),
        (["*", "!~no-such-user/work"], True),
    ],
)
async def test_the_longest_folder_of_the_setting_that_contains_the_file_decides(tmp_path, rules, expected):
    user = User(tmp_path / "consent.json", engine_send=tuple(rules))
    assert await user.allows() == (expected is True, expected is True)
    assert bool(user.asked) == (expected is None)


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        (["*", "!{}/secret"], "open/link.py", False),
        (["{}/open"], "open/link.py", None),
        (["{}/open", "{}/secret"], "open/link.py", True),
        (["{}/secret", "!{}/open"], "open/link.py", False),
        (["*", "!{}/open"], "door/a.py", False),
        (["*", "!{}/door"], "open/a.py", False),
        (["{}/door"], "door/a.py", True),
        (["{}/open"], "door/a.py", None),
        (["{}/door"], "open/a.py", None),
    ],
)
def test_a_rule_forbids_the_name_of_a_file_and_where_its_links_lead_and_allows_both_only(
    tmp_path, rules, name, expected
):
    for folder in ("open", "secret"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").touch()
    (tmp_path / "door").symlink_to("open")
    (tmp_path / "open" / "link.py").symlink_to("../secret/a.py")
    assert by_rules([rule.format(tmp_path) for rule in rules], tmp_path / name) is expected


async def test_without_a_server_nobody_is_asked_and_nothing_may_be_sent(tmp_path):
    user = User(tmp_path / "consent.json", engine_url="", engine_send=("*",))
    assert await user.allows() == (False, False)
    assert user.asked == []


async def test_an_answer_holds_for_one_server_of_one_kind_and_one_workspace(tmp_path):
    path = tmp_path / "consent.json"
    assert await User(path, SEND).allows() == (False, True)
    assert await User(path).allows() == (True, True)
    for settings, folder in (
        ({"engine_url": "https://other.example"}, APP),
        ({"engine_kind": "draftline"}, APP),
        ({}, APP / "inner"),
    ):
        user = User(path, **settings)
        assert await user.allows(folder) == (False, False)
        assert len(user.asked) == 1


async def test_a_setting_counts_before_the_answer_and_a_deleted_file_forgets_it(tmp_path):
    path = tmp_path / "consent.json"
    user = User(path, SEND)
    assert await user.allows() == (False, True)
    user.settings = replace(user.settings, engine_send=("!*",))
    assert await user.allows() == (False, False)
    user.settings = replace(user.settings, engine_send=())
    path.unlink()
    assert await user.allows() == (False, False)


async def test_an_answer_that_cannot_be_remembered_holds_until_the_server_ends(tmp_path):
    (tmp_path / "file").touch()
    user = User(tmp_path / "file" / "consent.json", SEND)
    assert await user.allows() == (False, True)
    assert user.faults[0].startswith("The answer holds until the server ends. ")


async def test_a_damaged_file_allows_nothing(tmp_path):
    path = tmp_path / "consent.json"
    for text in ("", "[]", '{"salt": "s", "answers": {"x": 1}}', '{"answers": true}'):
        path.write_text(text)
        assert await User(path).allows() == (False, False)


def test_the_question_says_what_goes_where():
    settings = replace(DEFAULTS, engine_url="https://user:secret@gpu.example")
    prompt = question(remote_address(settings), "app")
    files = question(remote_address(replace(settings, engine_kind="draftline")), "")
    assert "secret" not in prompt.replace("Files of secrets", "")
    assert "“app”" in prompt
    assert "https://gpu.example" in prompt
    assert "open files" in files
    assert "no open folder" in files
