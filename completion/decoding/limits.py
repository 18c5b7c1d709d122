"""What the measured costs of steps allow: nodes of a draft tree, longer prompts, several requests in one pass.

A processor pays for each row of a pass. A GPU reads the weights once for dozens of rows, so that rows are nearly free.
"""

from __future__ import annotations

from dataclasses import dataclass

from drafting.draft_budget import StepCosts

PROCESSOR_NODES, MAX_NODES = 16, 63
"""Maximum number of nodes of a draft tree: on a processor, and of any; with the anchor it fills the largest graph."""

_FREE = 1.5
"""Cost of a full tree, in steps without one, up to which rows are nearly free."""
_LONGER = 8
"""Maximum length of a prompt over the default one where rows are nearly free; the pace decides how much is used."""
_REQUEST_ROWS = 8
"""Number of rows that a request typically adds to a pass."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an engine.

    Attributes:
        longer: Factor by which prompts may be longer than the default ones.
        joint_requests: Number of requests that share passes.
    """

    longer: int
    joint_requests: int

    @classmethod
    def of(cls, costs: StepCosts, joint_requests: int) -> Limits:
        """Return what costs allow; `joint_requests` are worth it in any case. Only a GPU has costs of larger trees."""
        if costs.max_nodes <= PROCESSOR_NODES or not rows_are_free(costs):
            return cls(1, joint_requests)
        return cls(_LONGER, max(joint_requests, (costs.max_nodes + 1) // _REQUEST_ROWS))


def rows_are_free(costs: StepCosts) -> bool:
    """Return whether the largest tree costs little more than a step without one."""
    return bool(costs.costs_ms[-1] <= _FREE * costs.costs_ms[0])
