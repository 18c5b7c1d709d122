"""Plans the prompt: which part of the document and the workspace the model sees, in its own layout, as tokens.

User text is tokenised with special tokens off: a source file that contains a FIM token's text is data. Windows over
long documents move in large steps, so that typing does not shift what is cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from completion.prompt.fim_format import FimFormat
from completion.prompt.healing import HealedPrefix, heal
from completion.prompt.outline_above import OutlinesAbove, first_line
from completion.prompt.pace import PromptBudget
from completion.request import CompletionRequest, ContextFile, Layout
from completion.syntax.parser_process import IN_PROCESS, Parsing

_CHARACTERS_PER_TOKEN = 3  # a low estimate for code: the window in characters is cut before tokenising
_NAME_TOKENS = 128  # of the end of a path and of a repository's name
_FEWEST_TOKENS = 32  # a prompt of smaller parts shows the model nothing
_WINDOW_STEPS = 4  # a window that slides moves by a quarter of its length


class Tokenizer(Protocol):
    """What a prompt needs of a tokenizer."""

    @property
    def special(self) -> Mapping[str, int]:
        """Ids of the special tokens by their text."""

    def encode(self, text: str) -> list[int]:
        """Tokens of user text; special tokens are never produced."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A planned prompt.

    Attributes:
        tokens: What the model is shown; never empty.
        before_cursor: The tokens of the text before the cursor that is shown.
        healed: The text before the cursor, and the run at its end that the output must start with.
        special_positions: Indices into `tokens` of the format's own special tokens.
        layout: The order that was used.
    """

    tokens: tuple[int, ...]
    before_cursor: tuple[int, ...]
    healed: HealedPrefix
    special_positions: tuple[int, ...]
    layout: Layout

    @property
    def forced(self) -> bytes:
        """Bytes that the output must start with."""
        return self.healed.forced


class PromptPlanner:
    """Builds prompts for one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        fim_format: FimFormat,
        budget: PromptBudget,
        most_tokens: int = 1 << 30,
        parsing: Parsing = IN_PROCESS,
    ) -> None:
        """Make a planner.

        Args:
            tokenizer: The model's.
            fim_format: The model's.
            budget: Tokens for each part of a prompt, where a call names no other.
            most_tokens: Maximum length of a prompt; text of unusual density gets smaller parts until it fits.
            parsing: Calls what parses.
        """
        self._tokenizer = tokenizer
        self._format = fim_format
        self._budget = budget
        self._most_tokens = most_tokens
        # Suffix and context rarely change between two keystrokes; the prefix does, and is short to tokenise.
        self._outlines = OutlinesAbove(parsing)
        self._encode_cached = lru_cache(maxsize=64)(lambda text: tuple(tokenizer.encode(text)))

    def plan(self, request: CompletionRequest, budget: PromptBudget | None = None) -> Prompt:
        """Lay out one request, within the planner's own budget where none is given.

        The layouts are named in "Efficient Training of Language Models to Fill in the Middle", section 3.
        """
        budget = budget or self._budget
        prompt = self._lay_out(request, budget)
        while len(prompt.tokens) > self._most_tokens and budget.tokens > _FEWEST_TOKENS:
            budget, request = budget.scaled(0.5), replace(request, outline=False)
            prompt = self._lay_out(request, budget)
        return prompt

    def _lay_out(self, request: CompletionRequest, budget: PromptBudget) -> Prompt:
        layout = request.layout or self._format.layout
        healed = heal(request.prefix) if request.healing else HealedPrefix(request.prefix, "")
        prefix = self._window_before(healed.shown, request, budget.prefix_tokens)
        suffix = self._window_after(request.suffix, budget.suffix_tokens)
        parts: list[str | tuple[int, ...]] = [self._format.begin, *self._header(request, budget.context_tokens)]
        parts += _arrange(layout, self._format, prefix, suffix)
        tokens, special = self._join(parts)
        return Prompt(tokens, prefix, healed, special, layout)

    def _header(self, request: CompletionRequest, budget: int) -> list[str | tuple[int, ...]]:
        """Repository name, then a path and a text for each piece; only where there is context to introduce."""
        if not request.context or not self._format.file_separator:
            return []
        parts: list[str | tuple[int, ...]] = []
        if self._format.repository and request.repository:
            parts += [self._format.repository, self._encode_cached(request.repository + "\n")[-_NAME_TOKENS:]]
        for piece in self._context_within_budget(request.context, budget):
            parts += [self._format.file_separator, piece]
        return [*parts, self._format.file_separator, self._encode_cached(request.path + "\n")[-_NAME_TOKENS:]]

    def _context_within_budget(self, context: Sequence[ContextFile], budget: int) -> list[tuple[int, ...]]:
        """The last pieces are the most useful: they are kept first, whole, while the budget lasts."""
        kept: list[tuple[int, ...]] = []
        left = budget
        for piece in reversed(context):
            tokens = self._encode_cached(f"{piece.path}\n{piece.text}\n")
            if len(tokens) > left:
                continue
            kept.append(tokens)
            left -= len(tokens)
        return kept[::-1]

    def _window_before(self, text: str, request: CompletionRequest, budget: int) -> tuple[int, ...]:
        """The window, below an outline of what it leaves out."""
        start = window_start(text, budget * _CHARACTERS_PER_TOKEN)
        tokens = tuple(self._tokenizer.encode(text[start:]))
        tokens = tokens[-2 * budget :]  # text of unusual density (no spaces, other scripts) has more tokens
        if start == 0 or not request.outline:
            return tokens
        outline = self._outlines.above(text[:start], first_line(text[start:]), request.language)
        return self._encode_cached(outline) + tokens

    def _window_after(self, text: str, budget: int) -> tuple[int, ...]:
        tokens = self._encode_cached(text[: window_end(text, budget * _CHARACTERS_PER_TOKEN)])
        return tokens[: 2 * budget]

    def _join(self, parts: Sequence[str | tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tokens of all parts (a string names a special token) and the places of the special ones."""
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
            # A prompt is never empty: the middle token alone asks for the start of a file.
            return [prefix or fim.middle]


def window_start(text: str, length: int) -> int:
    """Where a window of at most `length` characters that ends with the text begins.

    It begins at a line, and moves by a quarter of `length` at a time as the text grows.
    """
    if len(text) <= length:
        return 0
    step = max(1, length // _WINDOW_STEPS)
    start = -(-(len(text) - length) // step) * step
    line = text.find("\n", start)
    return line + 1 if 0 <= line < start + step else start


def window_end(text: str, length: int) -> int:
    """Where a window of at most `length` characters that starts with the text ends, after a whole line."""
    if len(text) <= length:
        return len(text)
    line = text.rfind("\n", 0, length)
    return line + 1 if line > 0 else length
