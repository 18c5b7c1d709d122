"""Training of a head on the model's own states over source code."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from benchmarks.two_models.head import Head, States
from benchmarks.two_models.steps import show
from completion.model.int8.kernel_arguments import MAX_ROWS
from completion.model.tokenizer import CodeTokenizer
from drafting.arrays import FloatArray, IntArray

ENDINGS = (".py", ".ts", ".js", ".tsx", ".rs", ".h", ".cc", ".cpp", ".go", ".java", ".kt", ".lua", ".php", ".rb")
DEPTHS = 2
"""Number of guesses in a row that are trained."""
BATCH, RATE, WARM_UP = 512, 1.2e-3, 200
ALWAYS, DRAWN = 2000, 1000
"""Most frequent tokens that each step of training compares, and number of others that are drawn for it."""
STATE_SHARE = 0.3
"""Weight of the error of a state beside that of its tokens."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pieces of source files, and the model's states at their tokens.

    Attributes:
        states: # [tokens, hidden], float16
        tokens: # [tokens]
        pieces: Which piece each token is of.  # [tokens]
    """

    states: FloatArray
    tokens: IntArray
    pieces: IntArray

    @classmethod
    def read(cls, states: States, tokenizer: CodeTokenizer, folders: Sequence[Path], count: int) -> Corpus:
        """Compute the states at `count` or more tokens of files drawn by chance, laid out as prompts."""
        files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in ENDINGS)
        draw, special, found, total = random.Random(0), tokenizer.special, list[tuple[FloatArray, IntArray]](), 0
        while files and total < count:
            text = draw.choice(files).read_text(encoding="utf-8", errors="ignore")
            start = text.find("\n", draw.randrange(max(1, len(text) - 1000))) + 1
            before, after = (tokenizer.encode(part) for part in (text[start : start + 900], text[start + 920 :][:200]))
            parts = [special["<|fim_prefix|>"], special["<|fim_suffix|>"], *after, special["<|fim_middle|>"], *before]
            tokens = np.array(parts[:MAX_ROWS], dtype=np.int32)
            found.append((states.after(tokens, states.model.new_cache(MAX_ROWS)).astype(np.float16), tokens))
            total += len(tokens)
            show(f"states {total}/{count}")
        pieces = np.repeat(np.arange(len(found), dtype=np.int32), [len(tokens) for _, tokens in found])
        return cls(np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found]), pieces)

    @property
    def starts(self) -> Tensor:
        """Tokens after which the corpus knows enough of their piece to train a chain."""
        return torch.from_numpy(np.flatnonzero(self.pieces[: -DEPTHS - 1] == self.pieces[DEPTHS + 1 :]))

    def states_at(self, places: Tensor) -> Tensor:
        """Return the states at some tokens.  # [places, hidden]."""
        return torch.from_numpy(self.states[places.numpy()]).float()


def train(head: Head, states: States, corpus: Corpus, epochs: float) -> None:
    """Train a head until it has seen each token of a corpus some times."""
    torch.manual_seed(0)
    some = corpus.states_at(torch.arange(0, len(corpus.states), max(1, len(corpus.states) // 20_000)))
    head.mean.copy_(some.mean(dim=0))
    head.deviation.copy_(some.std(dim=0) + 1e-4)
    counts = torch.bincount((some @ head.rows.T).argmax(dim=1), minlength=len(head.rows))
    order = counts.argsort(descending=True)
    always, others = order[:ALWAYS], order[ALWAYS:]
    starts, steps = corpus.starts, int(epochs * len(corpus.starts) / BATCH)
    optimiser = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=0.02, betas=(0.9, 0.98))
    for step in range(steps):
        rate = RATE * min(1.0, (step + 1) / WARM_UP) * (0.52 + 0.5 * math.cos(math.pi * step / steps))
        for group in optimiser.param_groups:
            group["lr"] = rate
        drawn = others[torch.randperm(len(others))[:DRAWN]]
        rarity = torch.zeros(len(always) + len(drawn))
        rarity[len(always) :] = math.log(max(1.0, len(others) / DRAWN))  # each stands for several
        places = starts[torch.randint(len(starts), (BATCH,))]
        error = error_of(head, states, corpus, places, head.rows[torch.cat([always, drawn])], rarity)
        optimiser.zero_grad()
        error.backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        show(f"training {step + 1}/{steps}, error {error.item():.3f}")


def error_of(head: Head, states: States, corpus: Corpus, places: Tensor, rows: Tensor, rarity: Tensor) -> Tensor:
    """Return the error of chains after some tokens: of states, and of the probabilities of some rows.

    Args:
        head: The head.
        states: Computes embeddings.
        corpus: The tokens and their states.
        places: Where the chains start.  # [places]
        rows: Rows that are compared.  # [rows, hidden]
        rarity: What is added to their logits.  # [rows]
    """
    state, error = head.normal(corpus.states_at(places)), torch.zeros(())
    for depth in range(1, DEPTHS + 1):
        embeddings = torch.from_numpy(states.embeddings(corpus.tokens[(places + depth).numpy()]))
        wanted = head.normal(corpus.states_at(places + depth))
        with torch.autocast("cpu", torch.bfloat16):
            state = head(state, embeddings).float()
            ours, theirs = (head.logits(each, rows).float() + rarity for each in (state, wanted))
        of_tokens = functional.cross_entropy(ours, functional.softmax(theirs.detach(), dim=1))
        error = error + 0.8 ** (depth - 1) * (of_tokens + STATE_SHARE * functional.smooth_l1_loss(state, wanted))
    return error
