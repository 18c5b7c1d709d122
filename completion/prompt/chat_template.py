"""Chat templates: lay out a conversation as the model was trained on it. Messages never become control tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from completion.errors import ConversationError
from completion.model.store.converted_models import CHAT_TEMPLATE_NAME
from completion.request import Message

if TYPE_CHECKING:
    from jinja2 import Template

_PRIVATE_USE = range(0xE000, 0xF900)  # characters without a meaning, one of which breaks up markers in messages


class ChatTemplate:
    """The chat template of one model, which is read when it is used for the first time.

    Args:
        special: Ids of the control tokens by their text.
    """

    def __init__(self, folder: Path, special: Mapping[str, int]) -> None:
        self._folder = folder
        self._special = special
        self._marker = re.compile(
            "|".join(re.escape(text) for text in sorted(special, key=len, reverse=True)) or r"\Z."
        )

    def pieces(self, messages: Sequence[Message]) -> list[str]:
        """Return the laid out conversation, up to where the model's turn starts.

        Entries with an odd index are names of control tokens, the others plain text.

        Raises:
            ConversationError: The model has no template, or it refuses the messages.
        """
        from jinja2 import TemplateError  # noqa: PLC0415 -- importing it takes 20 ms, and completions do without it

        contents = "".join(message.content for message in messages)
        mark = next(chr(code) for code in _PRIVATE_USE if chr(code) not in contents)
        turns = [{"role": each.role, "content": self._broken_up(each.content, mark)} for each in messages]
        try:
            laid_out = self._template.render(messages=turns, add_generation_prompt=True, **self._ends)
        except (TemplateError, TypeError) as error:
            raise ConversationError(f"The model's chat template refuses the messages: {error}") from None
        return [piece.replace(mark, "") for piece in re.split(f"({self._marker.pattern})", laid_out)]

    def _broken_up(self, text: str, mark: str) -> str:
        """Return the text with `mark` inside everything that reads like a control token."""
        parts, start = list[str](), 0
        while found := self._marker.search(text, start):
            parts.append(text[start : found.start() + 1])
            start = found.start() + 1
        return mark.join([*parts, text[start:]])

    @cached_property
    def _template(self) -> Template:
        from jinja2 import TemplateError  # noqa: PLC0415 -- see `pieces`
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

        source = _read(self._folder)
        if not source:
            raise ConversationError(
                "The model has no chat template: it completes code, but follows no instructions. Use an instruct model."
            )
        # The options and names that transformers gives to templates (utils/chat_template_utils.py).
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        try:
            return environment.from_string(source)
        except TemplateError as error:
            raise ConversationError(f"The model's chat template cannot be read: {error}") from None

    @cached_property
    def _ends(self) -> dict[str, str]:
        """Text of the tokens at the beginning and the end of a text, as `bos_token` and `eos_token`."""
        config = json.loads((self._folder / "config.json").read_text(encoding="utf-8"))
        names = {token: text for text, token in self._special.items()}
        return {f"{end}_token": names.get(config.get(f"{end}_token_id"), "") for end in ("bos", "eos")}


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError  # noqa: PLC0415 -- see `pieces`

    raise TemplateError(message)


def _read(folder: Path) -> str:
    """Return the template in a model's files: its own, or the tokenizer's settings; "" if there is none."""
    own, settings = folder / CHAT_TEMPLATE_NAME, folder / "tokenizer_config.json"
    if own.is_file():
        return own.read_text(encoding="utf-8")
    if not settings.is_file():
        return ""
    found = json.loads(settings.read_text(encoding="utf-8")).get("chat_template") or ""
    named = {each["name"]: each["template"] for each in found} if type(found) is list else {"default": found}
    return str(named.get("default", ""))
