"""Prompts of the model families that were trained to write a region of a document anew after edits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from completion.edits import LineEdit, changed_span, undone

_CONTROL = re.compile(r"(<\|file_sep\|>|<\[fim-\w+\]>|<filename>)")
_REST_OF_WORD = re.compile(r"(?:(?<=\w)\w+)?")


@dataclass(frozen=True, slots=True)
class EditFormat:
    """The prompt of a family, and the form of its answers. `_fields` and `_edit_fields` say what stands for a field.

    Attributes:
        named: Regular expression that finds a family's models by their names, in lower case.
        edit: Template of each edit in it, the latest last.
        answer: Answer, with `{}` for the new region. What comes after it ends an answer, or else a stop token.
        around: Number of lines of the region before the cursor's line and after it.
        context: Number of lines that the prompt shows on each side of the region.
        cursor: Mark at the cursor; "" for none.
    """

    named: str
    prompt: str
    edit: str
    answer: str
    around: tuple[int, int] = (10, 10)
    context: int = 8
    cursor: str = ""

    def region(self, lines: Sequence[str], edits: Sequence[LineEdit]) -> range:
        """Return the lines around the last edit that the model writes anew, without blank ones at both ends."""
        line, _ = _cursor(lines, edits[-1])
        near = range(max(0, line - self.around[0]), min(len(lines), line + self.around[1] + 1))
        filled = [number for number in near if lines[number].strip() or number == line]
        return range(filled[0], filled[-1] + 1)

    def pieces(self, lines: Sequence[str], edits: Sequence[LineEdit], path: str) -> list[str]:
        """Return the prompt for a document after its edits, as `PromptPlanner.join` takes it. None of both is empty."""
        (head, tail), fields = self.prompt.split("{edits}"), self._fields(lines, edits)
        parts = [(head, fields), *((self.edit, _edit_fields(lines, edit)) for edit in edits), (tail, fields)]
        pieces = [""]
        for template, values in parts:
            first, *others = (piece.format(path=path, **values) for piece in _CONTROL.split(template))
            pieces[-1] += first
            pieces += others
        return pieces

    def rewritten(self, answer: str, *, stopped: bool) -> str | None:
        """Return the new region in what a model wrote, up to a stop token if `stopped`; None if that is no answer."""
        start, end = self.answer.split("{}")
        text, found, _ = answer.partition(end.strip("\n")) if end else (answer, stopped, "")
        if not found or not text.startswith(start):
            return None
        text = text.removeprefix(start).removesuffix("\n").replace("\r", "")
        return text.replace(self.cursor, "") if self.cursor else text

    def _fields(self, lines: Sequence[str], edits: Sequence[LineEdit]) -> dict[str, str | int]:
        shown, (line, column) = self.region(lines, edits), _cursor(lines, edits[-1])
        first, end = max(0, shown.start - self.context), shown.stop + self.context
        marked = lines[line][:column] + self.cursor + lines[line][column:]
        inside = [edit for edit in edits if shown.start <= edit.line and edit.line + len(edit.new) <= shown.stop]
        previous, original = (undone(lines[: shown.stop], some)[shown.start :] for some in (inside[-1:], inside))
        below = "".join(f"\n{each}" for each in lines[shown.stop : end])
        return {
            "region": "\n".join([*lines[shown.start : line], marked, *lines[line + 1 : shown.stop]]),
            "previous": "\n".join(previous),  # before the last edit
            "original": "\n".join(original),  # before all edits
            "above": "".join(f"{each}\n" for each in lines[first : shown.start]),
            "start_of_file": "" if first else "<|start_of_file|>\n",
            "below": below,
            "suffix": below if below.endswith("\n") else f"{below}\n",
            "file": "\n".join(undone(lines, edits)[first:end]),
            "start": line - shown.start + 1,
            "end": line - shown.start + 1 + len(shown),
        }


def _edit_fields(lines: Sequence[str], edit: LineEdit) -> dict[str, str | int]:
    """Return an edit's lines, alone, with one unchanged line on each side, and as a unified diff with three."""
    above, below = lines[max(0, edit.line - 3) : edit.line], lines[edit.line + len(edit.new) :][:3]
    start, kept = edit.line - len(above) + 1, len(above) + len(below)
    rows = [(" ", above), ("-", edit.old), ("+", edit.new), (" ", below)]
    return {
        "old": "\n".join(edit.old),
        "new": "\n".join(edit.new),
        "before": "\n".join([*above[-1:], *edit.old, *below[:1]]).strip("\n"),
        "after": "\n".join([*above[-1:], *edit.new, *below[:1]]).strip("\n"),
        "diff": f"@@ -{start},{kept + len(edit.old)} +{start},{kept + len(edit.new)} @@\n"
        + "".join(f"{mark}{line}\n" for mark, side in rows for line in side),
        "start": start,
        "end": start + kept + len(edit.new) - 1,
    }


def _cursor(lines: Sequence[str], edit: LineEdit) -> tuple[int, int]:
    """Return line and column of the end of what an edit changed, or of the word that it changed."""
    new = "\n".join(edit.new)
    rest = _REST_OF_WORD.match(new, changed_span("\n".join(edit.old), new)[2])
    before = new[: rest.end() if rest else None]
    line = min(edit.line + before.count("\n"), len(lines) - 1)
    return line, min(len(before) - before.rfind("\n") - 1, len(lines[line]))


_ZETA = (
    "### Instruction:\nYou are a code completion assistant and your task is to analyze user edits and then rewrite an "
    "excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking into account the "
    "cursor location.\n\n### User Edits:\n\n{edits}### User Excerpt:\n\n```{path}\n{start_of_file}{above}"
    "<|editable_region_start|>\n{region}\n<|editable_region_end|>{below}\n```\n\n### Response:\n"
)
_ZETA_2 = "<[fim-suffix]>{suffix}<[fim-prefix]><filename>edit_history\n{edits}\n<filename>{path}\n{above}"
_ZETA_2_EDIT = "--- a/{path}\n+++ b/{path}\n{diff}"
_SWEEP_2 = (
    "<|file_sep|>{path}\n{file}\n{edits}<|file_sep|>original/{path}:{start}:{end}\n{original}\n"
    "<|file_sep|>current/{path}:{start}:{end}\n{region}\n<|file_sep|>updated/{path}:{start}:{end}\n"
)

EDIT_FORMATS: tuple[EditFormat, ...] = (
    EditFormat(  # the package sweep-autocomplete 0.1.1, which counts lines from the region's first one
        r"sweep-next-edit.*(0\.5b|v2)",
        _SWEEP_2,
        "<|file_sep|>{path}:{start}:{end}\noriginal:\n{before}\nupdated:\n{after}\n",
        "{}",
        around=(2, 5),
        context=40,
        cursor="<|cursor|>",
    ),
    EditFormat(  # sweepai/sweep-next-edit-1.5B, run_model.py; 21 lines: blog.sweep.dev/posts/oss-next-edit
        "sweep-next-edit",
        "{edits}<|file_sep|>original/{path}\n{previous}\n<|file_sep|>current/{path}\n{region}\n<|file_sep|>updated/{path}",
        "<|file_sep|>{path}.diff\noriginal:\n{old}\nupdated:\n{new}\n",
        "\n{}",
    ),
    EditFormat(  # zed-industries/zed, crates/zeta_prompt: V0318SeedMultiRegions; below 12 lines it has two markers
        r"(?<![a-z])zeta-?2[.-]1",
        f"{_ZETA_2}<|marker_1|>{{region}}<|marker_2|>\n<[fim-middle]>",
        _ZETA_2_EDIT,
        "<|marker_1|>{}<|marker_2|>",
        around=(5, 5),
        cursor="<|user_cursor|>",
    ),
    EditFormat(  # the same crate: V0211SeedCoder
        r"(?<![a-z])zeta-?2(?!\.?\d)",
        f"{_ZETA_2}<<<<<<< CURRENT\n{{region}}\n=======\n<[fim-middle]>",
        _ZETA_2_EDIT,
        "{}\n>>>>>>> UPDATED\n",
        cursor="<|user_cursor|>",
    ),
    EditFormat(  # the same crate: zeta1
        r"(?<![a-z])zeta(?!-?v?\d|[a-z])",
        _ZETA,
        "User edited {path}:\n```diff\n{diff}\n```\n\n",
        "<|editable_region_start|>\n{}\n<|editable_region_end|>",
        cursor="<|user_cursor_is_here|>",
    ),
)
"""Known formats. The first whose name and tokens a model has is used."""


def detect_edit_format(special_tokens: Mapping[str, int], model: str) -> EditFormat | None:
    """Return the format of a model that was trained for next edits, None if its name or its tokens do not say so."""
    rows = (row for row in EDIT_FORMATS if set(_CONTROL.findall(row.prompt)) <= special_tokens.keys())
    return next((row for row in rows if re.search(row.named, model.lower())), None)
