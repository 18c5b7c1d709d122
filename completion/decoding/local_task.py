"""A request in progress on the local model: its attempts decode from one KV session, with drafts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import neg

from completion.cache.kv_session import KVSession
from completion.decoding.attempt import Attempt
from completion.decoding.constraints import Constraints, ConstraintState
from completion.decoding.decoder import Decoder
from completion.decoding.joint_passes import JointPasses
from completion.decoding.task import Task
from completion.ending.replaced_lines import ReplacedLines
from completion.ending.rule import DropReason
from completion.model.sampling import SampledText
from completion.request import Mode, StopReason, Suggestion
from drafting.session import Drafters, DraftingSession

SHOWN_FROM = math.log(0.5)
"""Least log-probability of what is shown before a search: no text that contradicts it can be likelier than it."""
BLOCK_SHOWN_FROM = math.log(0.2)
"""The same for the first line of a block: less is never shown, see `lsp_server.gate.worth`."""


@dataclass(frozen=True, slots=True)
class LocalTask(Task):
    """A request in progress on the local model.

    Attributes:
        model: The model, whose passes other requests may share.
        session: The document's KV session, which contains the prompt.
        replaced: What was deleted at the cursor.
    """

    model: JointPasses
    session: KVSession
    drafters: Drafters
    replaced: ReplacedLines

    def tokens_that_stay(self, attempt: Attempt) -> int:
        """See `Task`. Before a search, these are the first tokens of plain decoding, as far as they are likely.

        The first line of a block stays as far as it is worth showing: the search would come after the block's last one.
        """
        if not self.searches:
            return attempt.output.tokens
        whole, totals = attempt.output.whole(), list(accumulate(attempt.log_probabilities))
        is_block = _has_lines(whole)
        for count in range(bisect_right(totals, -BLOCK_SHOWN_FROM, key=neg), 0, -1):  # totals only fall
            text = whole[: attempt.output.characters(count)]
            least = BLOCK_SHOWN_FROM if is_block and not _has_lines(text) else SHOWN_FROM
            if totals[count - 1] >= least and not self.replaced.leave_open(text):
                return count
        return 0

    @property
    def searches(self) -> bool:
        """Whether a likelier line is looked for, as `completion.alternatives.likeliest_line` does.

        Only greedy decoding of a line with filters searches.
        """
        request = self.request
        is_greedy_line = request.sampling.temperature <= 0 and self.context.mode is Mode.LINE
        return request.search and request.filters and is_greedy_line and not request.messages

    def source(
        self, constraints: Constraints, written: Sequence[int], state: ConstraintState, *, is_first: bool
    ) -> Decoder:
        """See `Task`. Branches get their drafter together, from `drafter_of_branches`."""
        return Decoder(
            model=self.model,
            session=self.session,
            prompt=[*self.prompt.tokens, *written],
            constraints=constraints,
            drafter=self._drafting() if is_first else None,
            forced_tokens=lambda data: self.tokenizer.encode(data.decode("utf-8", "ignore")),
            sampling=self.request.sampling,
            stop_ids=self.tokenizer.stop_ids,
            state=state,
            company=self.model.company,
            text=self._sampled_text() if is_first and constraints.start.grammar is not None else None,
        )

    def finish(self, attempt: Attempt) -> Suggestion | DropReason:
        """See `Task`. What a sampled text met teaches the document's later ones."""
        text = attempt.source.text if isinstance(attempt.source, Decoder) else None
        if text is not None and attempt.stop is not None:
            ended_by_draw = attempt.stop.reason in {StopReason.STOP_TOKEN, StopReason.GRAMMAR}
            self.session.dead_ends.learn(text, attempt.output.tokens + ended_by_draw)
        return super(LocalTask, self).finish(attempt)  # slots make a new class, which `super()` does not find

    def _sampled_text(self) -> SampledText | None:
        request = self.request
        if request.sampling.temperature <= 0:
            return None
        sampler = replace(request.sampling, seed=0)
        prompt = (self.prompt.tokens, self.prompt.forced, request.prefix, request.language, sampler)
        return self.session.dead_ends.begin(prompt, request.sampling.seed)

    def release(self) -> None:
        """Remove the tokens of an attempt that was cancelled from the cache."""
        self.session.truncate(len(self.prompt.tokens) - 1)

    def drafter_of_branches(self, first: Attempt) -> DraftingSession | None:
        """Return a drafter for branches of the first attempt, which also guesses from that attempt."""
        drafting = self._drafting()
        if drafting is not None:
            drafting.observe_text(self.prompt.before_cursor, first.source.tokens)
        return drafting

    def _drafting(self) -> DraftingSession | None:
        if not self.request.drafting:
            return None
        before, single_line = self.prompt.before_cursor, self.context.mode is Mode.LINE
        drafting = self.drafters.session(self.prompt.tokens, self.request.workspace, before, single_line=single_line)
        if self.request.messages and self.request.last_line:
            drafting.observe_text(*self._unchanged_turn())
        return drafting

    def _unchanged_turn(self) -> tuple[list[int], list[int]]:
        """Return the tokens of a turn that repeats the conversation's code: up to its last line, and that line.

        In the conversation, text follows that line and can change its tokens: blank lines after it are part of them.
        """
        content, start, end = self.request.messages[-1].content, self.request.prefix, self.request.last_line
        code = content[content.find(start) + len(start) :].partition(f"\n{end}")[0]
        return self.tokenizer.encode(f"{code}\n"), self.tokenizer.encode(end)


def _has_lines(text: str) -> bool:
    return "\n" in text.strip()
