"""Rows of the quality benchmark: ways to answer the same task, and the data sets of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.quality.tasks import Task
from completion.backend import Backend
from completion.request import CacheMode, CompletionRequest, GrammarMode, Layout, Mode
from completion.workspace.context import WorkspaceContext

LINE_TOKENS = 64
"""Maximum number of tokens of a line of the bare model."""
BLOCK_TOKENS = 160
"""Maximum number of tokens of all other completions."""


@dataclass(frozen=True, slots=True)
class Row:
    """One way to answer.

    Attributes:
        layout: Order of prefix and suffix, None for the default of the model.
        healing: Whether the run before the cursor is healed.
        whole: Whether grammar and filters run. Otherwise the row is the text of the bare model up to the expected end.
        context: Whether the prompt has snippets of other files, and the imports and open scopes above the window.
        history: Whether the prompt has the edits before the task.
        path: Whether the prompt may name the document's path.
        search: Whether the line is the likeliest that a search finds, not that of plain decoding.
        invoked: Whether the request is manual: it is not hidden inside a word, and the early stop is off.
        backend: Backend of the row, None for that of the command line.
    """

    layout: Layout | None = None
    healing: bool = True
    whole: bool = True
    context: bool = True
    history: bool = True
    path: bool = True
    search: bool = True
    invoked: bool = True
    backend: Backend | None = None

    def request(self, task: Task, files: WorkspaceContext, context_tokens: int) -> CompletionRequest:
        """Return the request of this row for a task. It reuses cached keys only where they are exact.

        The complete path decides between a line and a block, unless the task asks for a block.
        """
        request = CompletionRequest(
            prefix=task.prefix,
            suffix=task.document_suffix,
            language=task.language,
            path=task.path if self.path else "",
            repository=task.path.partition("/")[0],
            mode=Mode.AUTO if self.whole and task.mode is Mode.LINE else task.mode,
            max_tokens=BLOCK_TOKENS if self.whole or task.mode is not Mode.LINE else LINE_TOKENS,
            layout=self.layout,
            cache=CacheMode.EXACT,
            history=task.history if self.history else "",
            deleted_here=task.deleted_here and self.history,
            grammar=GrammarMode.STRICT if self.whole else GrammarMode.OFF,
            healing=self.healing,
            outline=self.context,
            search=self.search,
            filters=self.whole,
            invoked=self.invoked,
        )
        if not (self.context and task.files):
            return request
        return replace(request, context=files.choose(request, context_tokens))


def _raw(layout: Layout, *, healing: bool = False) -> Row:
    return Row(layout, healing=healing, whole=False, context=False, history=False)


ROWS = {
    "whole": Row(),
    "whole_bf16": Row(backend="bf16"),
    "whole_unasked": Row(invoked=False),
    "whole_no_context": Row(context=False),
    "whole_no_history": Row(history=False),  # only where there is one
    "whole_no_path": Row(path=False),
    "whole_no_search": Row(search=False),
    "whole_no_healing": Row(healing=False),
    "infill": _raw(Layout.PREFIX_FIRST),
    "infill_spm": _raw(Layout.SUFFIX_BEFORE_PREFIX),
    "suffix_first": _raw(Layout.SUFFIX_FIRST),
    "prefix_first_healed": _raw(Layout.PREFIX_FIRST, healing=True),
    "suffix_first_healed": _raw(Layout.SUFFIX_FIRST, healing=True),
    "prefix_only": _raw(Layout.PREFIX_ONLY),
}
"""Rows by name. `infill` is the prompt of llama.cpp's /infill: prefix first, no healing. `infill_spm` is that prompt
with the option spm_infill. Both use the same weights in the same engine."""

LAYOUT_ROWS = ("infill", "prefix_first_healed", "suffix_first", "suffix_first_healed", "infill_spm", "prefix_only")
"""Rows that compare layouts, in an order in which neighbours share a prompt."""

DEFAULT_ROWS = {
    "single_line": ("whole", "whole_bf16", "whole_unasked", "infill", "suffix_first", "suffix_first_healed"),
    "multi_line": ("whole", "infill"),
    "random_span": ("whole", "infill"),
    "mid_line": ("whole", "infill"),
    "opened": ("whole", "infill"),
    "named": ("whole", "whole_no_path", "infill"),
    "repo_context": ("whole", "whole_no_healing", "whole_no_context", *LAYOUT_ROWS),
    "release_replay": ("whole", "whole_no_history", "infill"),
    "cursor_positions": ("whole", "whole_no_healing", *LAYOUT_ROWS),
}
"""Rows of each data set."""


def rows_for(dataset: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return `wanted`, else the default rows of the data set, else the complete path and /infill."""
    return wanted or DEFAULT_ROWS.get(dataset, ("whole", "infill"))
