"""Candidates of models that were trained for next edits: the model writes the lines around the last edit anew.

Most of them stay as they are, so their present text is a draft. Source of the idea: "Instantaneous Grammatical Error
Correction with Shallow Aggressive Decoding", section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from completion.cache.kv_session import KVSession
from completion.cache.kv_sessions import KVSessions
from completion.cancellation import CancelToken
from completion.decoding.constraints import FREE, Constraints
from completion.decoding.decoder import Decoder
from completion.edits import MAX_LINE_CHARACTERS, LineEdit, NextEditRequest, common_length
from completion.ending.context import cursor_context
from completion.ending.unsafe import unsafe
from completion.model.loading import LoadedModel
from completion.next_edit.candidates import MAX_EDITS
from completion.next_edit.rewrites import Candidate, tokens_of
from completion.prompt.edit_format import EditFormat
from completion.prompt.planner import Prompt, PromptPlanner
from completion.request import CacheMode, CompletionRequest, Sampling
from drafting.session import Drafters

WRITTEN = "\0written edit"
"""End of the key of a document's KV session for writing."""
MAX_ANSWER_TOKENS = 384
"""Maximum length of an answer. A region with more tokens than three quarters of it is not written."""
_MAX_PROMPT_TOKENS = 1_536  # a longer prompt loses its oldest edits


@dataclass(frozen=True, slots=True)
class EditWriter:
    """Writes next edits with one model, in the form of its family."""

    loaded: LoadedModel
    planner: PromptPlanner
    drafters: Drafters
    sessions: KVSessions
    form: EditFormat

    def candidates(self, request: NextEditRequest, cancel: CancelToken) -> list[Candidate]:
        """Return what the model changes around the last edit; nothing if that does not fit, or is not complete.

        Raises:
            CancelledError: Within one layer of a pass after `cancel`.
        """
        edits = [edit for edit in request.edits[-MAX_EDITS:] if edit.hunk()]
        if not edits or not request.lines:
            return []
        shown = self.form.region(request.lines, edits)
        old = request.lines[shown.start : shown.stop]
        draft = self.loaded.tokenizer.encode(self.form.answer.replace("{}", "\n".join(old)))
        if max(map(len, old)) > MAX_LINE_CHARACTERS or 4 * len(draft) > 3 * MAX_ANSWER_TOKENS:
            return []
        for first in range(len(edits)):
            prompt = self.planner.join(self.form.pieces(request.lines, edits[first:], request.path))
            if len(prompt.tokens) <= _MAX_PROMPT_TOKENS:
                own = request.document + WRITTEN
                with self.sessions.pinned(own):
                    text = self._written(prompt, draft, self.sessions.open(own, in_background=True), cancel)
                return [] if text is None else changes(request, shown, text)
        return []

    def _written(self, prompt: Prompt, draft: Sequence[int], session: KVSession, cancel: CancelToken) -> str | None:
        """Return the region that the model writes, None if its answer does not end or has another form."""
        session.prepare(prompt, CacheMode.PIE, cancel)
        tokenizer, drafting = self.loaded.tokenizer, self.drafters.session(prompt.tokens, WRITTEN)
        self.drafters.close_workspace(WRITTEN)  # what the answer teaches ends with it, so that no other user gets it
        drafting.observe_text(prompt.tokens, draft)
        greedy = Constraints(tokenizer, b""), drafting, lambda _: (), Sampling(), tokenizer.stop_ids, FREE
        decoder = Decoder(self.loaded.model, session, prompt.tokens, *greedy)
        try:
            for _ in decoder.steps(cancel):
                stopped = decoder.tokens[-1] in tokenizer.stop_ids
                answer = tokenizer.decode(decoder.tokens[: -1 if stopped else None]).decode("utf-8", "replace")
                region = self.form.rewritten(answer, stopped=stopped)
                if region is not None or len(decoder.tokens) >= MAX_ANSWER_TOKENS:
                    return region
        finally:
            session.truncate(len(prompt.tokens) - 1)
        return None


def changes(request: NextEditRequest, region: range, text: str) -> list[Candidate]:
    """Return each difference that a new text of some lines makes; an insertion with a line next to it.

    What brings back a line that the user has taken away is left out, and unsafe code.
    """
    lines, last, found = request.lines, len(request.edits) - 1, list[Candidate]()
    old, new = lines[region.start : region.stop], text.split("\n")
    edited = {number for edit in request.edits for number in range(edit.line, edit.line + len(edit.new))}
    for tag, first, end, *span in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        line, gone, came = region.start + first, tuple(old[first:end]), tuple(new[slice(*span)])
        if tag == "insert" and line and (line == len(lines) or line in edited):
            line, gone, came = line - 1, (lines[line - 1],), (lines[line - 1], *came)
        elif tag == "insert":
            gone, came = (lines[line],), (*came, lines[line])
        if tag != "equal":
            column, pattern = common_length(gone[0], "\n".join(came)), sum(tokens_of(gone).values())
            at, kinds = (request.edits[last].line, 0), frozenset({"written"})
            found.append(Candidate(line, gone, came, kinds, last, column, taught_at=at, pattern=pattern))
    return [each for each in found if not _brings_back(each, request.edits) and not _is_unsafe(each, request)]


def _brings_back(candidate: Candidate, edits: Sequence[LineEdit]) -> bool:
    """Return whether a candidate adds a line that an edit has taken away."""
    gone = {line.strip() for edit in edits for line in {*edit.old} - {*edit.new}} - {""}
    return not gone.isdisjoint(line.strip() for line in {*candidate.new} - {*candidate.old})


def _is_unsafe(candidate: Candidate, request: NextEditRequest) -> bool:
    """Return whether a completion with the candidate's lines would be cut."""
    above = "".join(f"{line}\n" for line in request.lines[: candidate.line])
    below = "".join(f"\n{line}" for line in request.lines[candidate.end :])
    text = "\n".join(candidate.new)
    return unsafe(text, cursor_context(CompletionRequest(above, below, request.language))).maybe < len(text)
