"""Plans the prompt: chooses the parts of the document and the snippets that fit, and lays them out as tokens.

User text never becomes special tokens, even if a source file contains the text of one. The windows of a long document
move in large steps, so that typing does not shift what is cached.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from completion.errors import PromptTooLongError
from completion.model.tokenizer import CodeTokenizer
from completion.prompt.chat_template import ChatTemplate
from completion.prompt.fim_format import FimFormat, detect_format
from completion.prompt.healing import HealedPrefix, heal
from completion.prompt.outline_above import OutlinesAbove, first_line
from completion.prompt.pace import PromptBudget
from completion.request import CompletionRequest, ContextFile, Layout
from completion.syntax.parsing import IN_PROCESS, Parsing
from completion.workspace.unsafe_code import names_unsafe, without_unsafe_prose

_CHARACTERS_PER_TOKEN = 3  # low estimate for code, by which a window is cut before it is tokenised
_MAX_NAME_TOKENS = 128  # maximum length of a path and of a repository's name, of which the end is kept
_MIN_BUDGET_TOKENS = 32  # with a smaller budget a prompt would show the model nothing
_WINDOW_STEPS = 4  # a window moves by a quarter of its length
_HISTORY_SHARE = 0.5  # of the context's budget, at most
_NEW_CHARACTERS = 2_000  # length of a document that is rather begun than continued
_HUNK_START = re.compile(r"^(?=@@$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request as tokens.

    Attributes:
        tokens: Tokens of the prompt; never empty.
        before_cursor: Those tokens that come from the text before the cursor.
        healed: Text before the cursor without its healed run, and that run.
        special_positions: Indices of the format's special tokens in `tokens`.
    """

    tokens: tuple[int, ...]
    before_cursor: tuple[int, ...]
    healed: HealedPrefix
    special_positions: tuple[int, ...]

    @property
    def forced(self) -> bytes:
        """Bytes that the output must start with."""
        return self.healed.forced


class PromptPlanner:
    """Builds prompts for one model. If one has more than `max_tokens` tokens, the budget is halved until it fits."""

    def __init__(
        self,
        tokenizer: CodeTokenizer,
        fim_format: FimFormat,
        max_tokens: int = 1 << 30,
        parsing: Parsing = IN_PROCESS,
        chat: ChatTemplate | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._format = fim_format
        self._max_tokens = max_tokens
        self._chat = chat
        # The suffix and the snippets rarely change between two keystrokes. The prefix does, so it is not cached.
        self._outlines = OutlinesAbove(parsing)
        self._without_unsafe_prose = lru_cache(maxsize=16)(without_unsafe_prose)
        self._encode_cached = lru_cache(maxsize=64)(lambda text: tuple(tokenizer.encode(text)))

    @classmethod
    def of(cls, tokenizer: CodeTokenizer, model: str, folder: Path, max_tokens: int, parsing: Parsing) -> PromptPlanner:
        """Return the planner of a model by its name and the folder of its files."""
        chat = ChatTemplate(folder, tokenizer.special)
        return cls(tokenizer, detect_format(tokenizer.special, model), max_tokens, parsing, chat)

    def forget_texts(self) -> None:
        """Free what was kept of texts for later prompts of the same documents."""
        self._outlines.forget()
        self._without_unsafe_prose.cache_clear()
        self._encode_cached.cache_clear()

    def plan(self, request: CompletionRequest, budget: PromptBudget) -> Prompt:
        """Lay out a request within a budget.

        The layouts come from "Efficient Training of Language Models to Fill in the Middle", section 3.

        Raises:
            ConversationError: The request is a conversation that the model's chat template cannot lay out.
            PromptTooLongError: The request is a conversation that does not fit.
        """
        if request.messages and self._chat is not None:
            return self._conversation(request, self._chat)
        prompt = self._lay_out(request, budget)
        while len(prompt.tokens) > self._max_tokens and budget.tokens > _MIN_BUDGET_TOKENS:
            budget, request = budget.scaled(0.5), replace(request, outline=False)
            prompt = self._lay_out(request, budget)
        return prompt

    def _conversation(self, request: CompletionRequest, chat: ChatTemplate) -> Prompt:
        """Lay out a conversation, with the text that the model's turn starts with."""
        *pieces, last = chat.pieces(request.messages)
        prompt = self.join([*pieces, last + request.prefix])
        if (length := len(prompt.tokens)) > self._max_tokens:
            raise PromptTooLongError(
                f"The conversation has {length} tokens; at most {self._max_tokens} fit. Shorten its messages."
            )
        return prompt

    def join(self, pieces: Sequence[str]) -> Prompt:
        """Return a prompt of pieces: those with an odd index are names of control tokens, the others plain text."""
        parts = [text if at % 2 else tuple(self._tokenizer.encode(text)) for at, text in enumerate(pieces)]
        tokens, special = self._join(parts)
        return Prompt(tokens, (), HealedPrefix("", ""), special)

    def _lay_out(self, request: CompletionRequest, budget: PromptBudget) -> Prompt:
        healed = heal(request.prefix) if request.healing else HealedPrefix(request.prefix, "")
        prefix = self._window_before(healed.shown, request, budget.prefix_tokens)
        suffix = self._window_after(request, budget.suffix_tokens)
        parts: list[str | tuple[int, ...]] = [
            self._format.begin,
            *self._header(request, healed.shown, budget.context_tokens),
        ]
        parts += _arrange(request.layout or self._format.layout, self._format, prefix, suffix)
        tokens, special = self._join(parts)
        return Prompt(tokens, prefix, healed, special)

    def _header(self, request: CompletionRequest, shown: str, budget: int) -> list[str | tuple[int, ...]]:
        """Return the repository's name, the snippets, the edit history and the document's path.

        Return nothing if there are neither snippets nor history, unless the document is short: of a new file, the path
        says the language, the package, and the name of the class or component that it will define.
        """
        separator = self._format.file_separator
        history = self._history_within_budget(request, int(budget * _HISTORY_SHARE)) if separator else ()
        is_new = request.path and len(shown) + len(request.suffix) < _NEW_CHARACTERS
        if not separator or not (request.context or history or is_new):
            return []
        parts: list[str | tuple[int, ...]] = []
        if self._format.repository and request.repository and request.context:
            parts += [self._format.repository, self._encode_cached(request.repository + "\n")[-_MAX_NAME_TOKENS:]]
        for snippet in self._snippets_within_budget(request.context, budget - len(history)):
            parts += [separator, snippet]
        if history:
            parts += [separator, history]
        return [*parts, separator, self._encode_cached(request.path + "\n")[-_MAX_NAME_TOKENS:]]

    def _history_within_budget(self, request: CompletionRequest, budget: int) -> tuple[int, ...]:
        """Return the tokens of a diff with the hunks that fit the budget, chosen from the last; () if none does.

        A hunk that spells out unsafe code is left out, because a model takes its comments for an order.
        """
        name = self._encode_cached(request.path + ".diff\n")[-_MAX_NAME_TOKENS:]
        kept: tuple[int, ...] = ()
        for hunk in reversed(_HUNK_START.split(request.history)):
            tokens = self._encode_cached(hunk)
            if len(name) + len(tokens) + len(kept) <= budget and not names_unsafe(hunk, request.language):
                kept = tokens + kept
        return name + kept if kept else ()

    def _snippets_within_budget(self, snippets: Sequence[ContextFile], budget: int) -> list[tuple[int, ...]]:
        """Return the tokens of the snippets that fit the budget, chosen from the last one, the most useful."""
        kept: list[tuple[int, ...]] = []
        room = budget
        for snippet in reversed(snippets):
            tokens = self._encode_cached(f"{snippet.path}\n{snippet.text}\n")
            if len(tokens) > room:
                continue
            kept.append(tokens)
            room -= len(tokens)
        return kept[::-1]

    def _window_before(self, text: str, request: CompletionRequest, budget: int) -> tuple[int, ...]:
        """Return the tokens of the window before the cursor, after an outline of what is above it."""
        start = window_start(text, budget * _CHARACTERS_PER_TOKEN)
        above, line_break, line = text[start:].rpartition("\n")
        shown = self._without_unsafe_prose(above + line_break, request.language) + line
        tokens = tuple(self._tokenizer.encode(shown))
        tokens = tokens[-2 * budget :]  # some text (no spaces, other scripts) has more tokens than estimated
        if start == 0 or not request.outline:
            return tokens
        outline = self._outlines.above(text[:start], first_line(text[start:]), request.language)
        return self._encode_cached(outline) + tokens

    def _window_after(self, request: CompletionRequest, budget: int) -> tuple[int, ...]:
        window = request.suffix[: window_end(request.suffix, budget * _CHARACTERS_PER_TOKEN)]
        line, line_break, below = window.partition("\n")
        shown = line + line_break + self._without_unsafe_prose(below, request.language)
        return self._encode_cached(shown)[: 2 * budget]

    def _join(self, parts: Sequence[str | tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the tokens of all parts, where a string names a special token, and the special tokens' positions."""
        tokens: list[int] = []
        special: list[int] = []
        for part in parts:
            if isinstance(part, tuple):
                tokens += part
            elif part:
                special.append(len(tokens))
                tokens.append(self._tokenizer.special[part])
        return tuple(tokens), tuple(special)


def _arrange(
    layout: Layout, fim: FimFormat, prefix: tuple[int, ...], suffix: tuple[int, ...]
) -> list[str | tuple[int, ...]]:
    match layout:
        case Layout.PREFIX_FIRST:
            return [fim.prefix, prefix, fim.suffix, suffix, fim.middle]
        case Layout.SUFFIX_FIRST:
            return [fim.prefix, fim.suffix, suffix, fim.middle, prefix]
        case Layout.SUFFIX_BEFORE_PREFIX:
            return [fim.suffix, suffix, fim.prefix, prefix, fim.middle]
        case Layout.PREFIX_ONLY:
            # A prompt is never empty. In an empty document it is the middle token.
            return [prefix or fim.middle]


def window_start(text: str, length: int) -> int:
    """Return the start of a window of at most `length` characters at the end of a text.

    It is the start of a line, and moves by a quarter of `length` at a time as the text grows.
    """
    if len(text) <= length:
        return 0
    step = max(1, length // _WINDOW_STEPS)
    start = -(-(len(text) - length) // step) * step
    line = text.find("\n", start)
    return line + 1 if 0 <= line < start + step else start


def window_end(text: str, length: int) -> int:
    """Return the end of a window of at most `length` characters at the start of a text, after a whole line."""
    if len(text) <= length:
        return len(text)
    line = text.rfind("\n", 0, length)
    return line + 1 if line > 0 else length
