"""What a drafter that is a model would be worth: layers of the model itself, or a smaller model beside it.

A drafter reads what the model wrote, so that its chains are known from every token on. The time of a text then follows
from the costs of steps, which are measured in turn in one run. The length of chains and where they end is chosen on
half 0. Beside it stands what the existing drafters proposed for the same texts, by the same costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.drafting.records import Case, read_cases
from benchmarks.quality.sets import half_of
from benchmarks.two_models.head import Head, States
from benchmarks.two_models.layers import (
    Layers,
    all_but,
    cache_of,
    first_layers,
    skipped_greedily,
    with_layers,
    without_every_other,
)
from benchmarks.two_models.speed import (
    CHAIN,
    Costs,
    Drafted,
    accepted_share,
    best_chain,
    chains_ms,
    least_ms,
    plain_ms,
    trees_ms,
)
from benchmarks.two_models.steps import show, step_ms
from benchmarks.two_models.written import (
    LARGER_PROMPT_SHARE,
    Answers,
    Read,
    Writer,
    Written,
    read_at_once,
    read_from_each_token,
)
from completion.model.causal_model import CausalModel, KVCache
from completion.model.int8.cache import Int8Cache
from completion.model.int8.packed_weights import PackedWeights
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.loading import LoadedModel

ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 17)
"""Rows of the model's steps whose costs are measured."""
EXITS = (0.25, 0.5, 0.75)
"""Shares of the layers after which a draft exits."""
CHOOSING_TEXTS = 6
"""Number of texts of half 0 on which layers are chosen."""
Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A drafter.

    Attributes:
        name: Its name.
        model: Model whose step of one row is measured.
        read: Reads a text.
        ms: Returns the drafter's step from the full model's and that of `model`.
    """

    name: str
    model: CausalModel
    read: Read
    ms: Callable[[float, float], float] = lambda _full, own: own


def layer_figures(
    loaded: LoadedModel, weights: PackedWeights, data_dir: str | None, limit: int, repeats: int, threads: int
) -> Figures:
    """Return the figures of drafters that are layers of a model, `weights`, by their name."""
    layers = weights.architecture.layers
    whole = tuple(range(layers))
    full = QuantizedTransformer(weights, threads)

    def keep(cache: KVCache) -> KVCache:
        assert isinstance(cache, Int8Cache)
        return cache_of(full, cache, whole)

    texts = written_texts(Writer(loaded), data_dir, limit, keep)

    def read(model: QuantizedTransformer, kept: Layers, text: Written, length: int = CHAIN) -> Answers:
        assert isinstance(text.cache, Int8Cache)
        return read_from_each_token(model, cache_of(model, text.cache, kept), text, length)

    def of_layers(name: str, kept: Layers) -> Candidate:
        model = QuantizedTransformer(with_layers(weights, kept), threads)
        return Candidate(name, model, lambda text: read(model, kept, text))

    some = [text for text in texts if text.half == 0][:CHOOSING_TEXTS]

    def agreement(kept: Layers) -> float:
        show(f"layers are chosen: {len(kept)} left")
        model = QuantizedTransformer(with_layers(weights, kept), threads)
        return sum(float(read(model, kept, text, 1)[0].sum()) for text in some)

    counts = sorted({max(1, layers // 12), max(1, layers // 6), max(1, layers // 3)})
    skipped = skipped_greedily(layers, agreement, counts[-1])
    print(f"layers in the order in which they are skipped: {skipped}")
    exits = [(f"exit after {share:.0%} of the layers", first_layers(layers, share)) for share in EXITS]
    chosen = [(f"{len(skipped[:count])} layers skipped", all_but(layers, skipped[:count])) for count in counts]
    other = ("every other layer of the middle skipped", without_every_other(layers))
    candidates = [of_layers(name, kept) for name, kept in (*exits, other, *chosen)]
    return {"skipped": skipped, **compared(loaded.model, candidates, texts, repeats)}


def small_figures(larger: LoadedModel, small: LoadedModel, data_dir: str | None, limit: int, repeats: int) -> Figures:
    """Return the figures of a small model as the drafter of a larger one."""
    texts = written_texts(Writer(larger, LARGER_PROMPT_SHARE), data_dir, limit, lambda cache: cache)

    def read(text: Written) -> Answers:
        cache = small.model.new_cache(len(text.prompt) + len(text.tokens))
        before = np.asarray(text.prompt[:-1], dtype=np.int32)
        small.model.prefill(before, np.arange(len(before), dtype=np.int32), cache)
        return read_at_once(small.model, cache, text)

    return compared(larger.model, [Candidate(f"{small.name} drafts", small.model, read)], texts, repeats)


def head_figures(
    loaded: LoadedModel, states: States, head: Head, data_dir: str | None, limit: int, repeats: int
) -> Figures:
    """Return the figures of a trained head, whose weights cost as much to read as those of the model's layers."""
    layers = states.weights.architecture.layers
    half = QuantizedTransformer(with_layers(states.weights, tuple(range(layers // 2))), states.threads)
    cost = head.parameters_read / states.parameters_of_layer / (layers - layers // 2)

    def keep(cache: KVCache) -> KVCache:
        assert isinstance(cache, Int8Cache)
        return cache_of(states.model, cache, tuple(range(layers)))

    texts = written_texts(Writer(loaded), data_dir, limit, keep)
    candidate = Candidate(
        "trained head", half, lambda text: head.read(states, text), lambda full, own: cost * (full - own)
    )
    return compared(loaded.model, [candidate], texts, repeats)


def written_texts(
    writer: Writer, data_dir: str | None, limit: int, keep: Callable[[KVCache], KVCache]
) -> list[Written]:
    """Return the texts of at most `limit` cases of each half, of all suites."""
    by_half: dict[int, list[Case]] = {0: [], 1: []}
    for case in read_cases(20 * limit, data_dir):
        found = by_half[half_of(case.request.document.partition("/")[2])]
        if len(found) < limit:
            found.append(case)
    texts, cases = [], by_half[0] + by_half[1]
    for text in writer.write(cases, keep):
        texts.append(text)
        show(f"texts {len(texts)}/{len(cases)}")
    return texts


def compared(model: CausalModel, candidates: Sequence[Candidate], texts: Sequence[Written], repeats: int) -> Figures:
    """Print a table of the candidates, and return their figures by name."""
    each_ms = step_ms([(model, ROWS), *((each.model, (1,)) for each in candidates)], repeats)
    full_ms = each_ms[0]
    draft_ms = {each.name: each.ms(each_ms[0][1], ms[1]) for each, ms in zip(candidates, each_ms[1:], strict=True)}
    costs = Costs(full_ms)
    shown = ", ".join(f"{rows}: {ms:.1f}" for rows, ms in full_ms.items())
    print(f"step of the model in ms, by rows: {shown}")
    reported = [text for text in texts if text.half == 1]
    found: Figures = {"step_ms": {str(rows): round(ms, 2) for rows, ms in full_ms.items()}}
    heads = "step", *(f"of {length}" for length in range(1, CHAIN + 1)), "chain", "alone", "least", "added", "least"
    print(f"{'':42}" + "".join(f"{head:>9}" for head in heads))
    existing: Figures | None = None
    for each in candidates:
        heard = []
        for number, text in enumerate(texts):
            heard.append((text, text.drafted(each.read(text))))
            show(f"{each.name} {number + 1}/{len(texts)}")
        if existing is None:
            existing = existing_figures(reported, [drafted for text, drafted in heard if text.half == 1], costs)
        found[each.name] = candidate_figures(each.name, heard, Costs(full_ms, draft_ms[each.name]))
    found["existing"] = existing or {}
    print(f"existing drafters: {existing}")
    return found


def existing_figures(texts: Sequence[Written], heard: Sequence[Drafted], costs: Costs) -> Figures:
    """Return how much quicker the existing drafters make the texts: by the costs of steps, and measured."""
    measured = sum(text.plain_ms for text in texts) / max(sum(text.drafted_ms for text in texts), 1e-9)
    return {
        "texts": len(texts),
        "tokens": sum(len(text.tokens) - text.first for text in texts),
        "speed": speeds([text.suite for text in texts], heard, costs, lambda drafted: trees_ms(drafted, costs)),
        "least": speeds(
            [text.suite for text in texts],
            heard,
            costs,
            lambda drafted: least_ms(drafted, costs, with_chains=False, with_trees=True),
        ),
        "measured_speed": round(measured, 2),
        "steps_without_draft_share": round(
            float(np.mean([count == 0 for drafted in heard for count in drafted.trees.nodes[drafted.first :]])), 3
        ),
    }


def candidate_figures(name: str, heard: Sequence[tuple[Written, Drafted]], costs: Costs) -> Figures:
    """Print a line, and return the figures of one drafter; what half 0 chooses is reported on half 1."""
    chosen_on = [drafted for text, drafted in heard if text.half == 0]
    suites = [text.suite for text, _ in heard if text.half == 1]
    reported = [drafted for text, drafted in heard if text.half == 1]
    figures: Figures = {
        "step_share": round(costs.draft_ms / costs.full(1), 3),
        "accepted_share": [round(accepted_share(reported, length), 3) for length in range(1, CHAIN + 1)],
    }
    for key, with_trees in (("alone", False), ("added", True)):
        way = best_chain(chosen_on or reported, costs, with_trees=with_trees)
        figures[f"{key}_chain"] = way

        def chains(drafted: Drafted, way: tuple[int, float] = way, with_trees: bool = with_trees) -> float:
            return chains_ms(drafted, costs, *way, with_trees=with_trees)

        def least(drafted: Drafted, with_trees: bool = with_trees) -> float:
            return least_ms(drafted, costs, with_trees=with_trees)

        figures[f"{key}_speed"] = speeds(suites, reported, costs, chains)
        figures[f"{key}_least"] = speeds(suites, reported, costs, least)
    every = (CHAIN * costs.draft_ms + costs.full(1 + CHAIN)) / (1 + CHAIN)
    figures["if_all_accepted_speed"] = round(costs.full(1) / every, 2)
    _print(name, figures)
    return figures


def speeds(
    suites: Sequence[str], texts: Sequence[Drafted], costs: Costs, ms: Callable[[Drafted], float]
) -> dict[str, float]:
    """Return the time without drafts over that with them, over all texts and by suite."""
    found = {}
    for suite in ("all", *sorted(set(suites))):
        part = [text for own, text in zip(suites, texts, strict=True) if suite in ("all", own)]
        found[suite] = round(sum(plain_ms(text, costs) for text in part) / max(sum(map(ms, part)), 1e-9), 2)
    return found


def _print(name: str, figures: Mapping[str, object]) -> None:
    values = {key: value["all"] if isinstance(value, dict) else value for key, value in figures.items()}
    accepted, (length, threshold) = values["accepted_share"], values["alone_chain"]  # type: ignore[misc]
    assert isinstance(accepted, list)
    cells = [values["step_share"], *accepted, f"{length}, {threshold}"]
    cells += [values[key] for key in ("alone_speed", "alone_least", "added_speed", "added_least")]
    print(f"{name:42}" + "".join(f"{cell!s:>9}" for cell in cells))
