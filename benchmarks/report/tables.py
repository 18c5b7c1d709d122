"""The tables of README, docs/benchmarks.md and docs/quality.md: what each row says, and which figure it shows."""

from __future__ import annotations

from benchmarks.report.table import Row, Table

_ONE = ("measurement", "printed")
_QUALITY = ("", "draftline", "`/infill` prompt")


def _rows(run: str, *rows: tuple[str, str, str]) -> tuple[Row, ...]:
    """Return rows of one run and one figure each, from what they say, their format and the figure's name."""
    return tuple(Row(what, shape, (f"{run}/{name}",)) for what, shape, name in rows)


def _quality(what: str, run: str, dataset: str, measure: str) -> Row:
    """Return a row of a measure for the complete path and the prompt of `/infill`."""
    ours, theirs = (f"{run}/sets/{dataset}/{row}" for row in ("whole", "infill"))
    return Row(f"{what}, of {{{ours}/records}}", "{:.1%}", (f"{ours}/{measure}", f"{theirs}/{measure}"))


MS, S, MB, SHARE, FINE_SHARE, RATIO, COUNT = "{:.0f} ms", "{:.1f} s", "{:,.0f} MB", "{:.1%}", "{:.2%}", "{:.2f}", "{:,}"

README = Table(
    ("reason", "number", "command"),
    (
        Row("Suggestions appear while you type: time from a key to the first text, median", MS,
            ("typing/first_text_p50_ms",)),
        Row("Edits are cheap: share of the prompts' tokens that the model computes while you edit", "{:.0%}",
            ("edits/tokens_computed_share",)),
        Row("Drafts make decoding faster and change no suggestion: speed with drafts over speed without", "{:.1f}",
            ("drafting/speedup",)),
        Row("Suggestions do not break the file: completions with new syntax errors, of {grammar/completions}", "{}",
            ("grammar/errors_with",)),
        Row("Suggestions are right: single lines of HumanEval that pass their tests", SHARE,
            ("quality_tests/sets/single_line/whole/pass_share",)),
    ),
)  # fmt: skip

TABLES: dict[str, Table] = {
    "readme": README,
    "engine": Table(_ONE, _rows(
        "engine",
        ("step with 1 row", "{:.1f} ms", "ms_rows_1"),
        ("step with 8 rows", "{:.1f} ms", "ms_rows_8"),
        ("step with 16 rows", "{:.1f} ms", "ms_rows_16"),
        ("prefill, tokens a second", "{:.0f}", "prefill_tokens_per_s"),
        ("time of blocks over that of int8, 1 row", RATIO, "q4_ratio_rows_1"),
        ("the same, 16 rows", RATIO, "q4_ratio_rows_16"),
        ("weights that a step with 1 row reads a second, over the memory's speed", RATIO, "share_of_bandwidth_rows_1"),
        ("load time", "{:.2f} s", "load_s"),
        ("time over that of llama.cpp, 1 row", RATIO, "ratio_rows_1"),
        ("the same, 16 rows", RATIO, "ratio_rows_16"),
        ("prefill speed over that of llama.cpp", "{:.1f}", "ratio_prefill"),
    )),
    "fidelity": Table(_ONE, _rows(
        "fidelity",
        ("negative log-likelihood over float32, int8, worst of four languages", "{:.4f}", "worst_nll_excess"),
        ("the same, blocks", "{:.4f}", "q4_worst_nll_excess"),
        ("the same, weights rounded to blocks", "{:.4f}", "rounded_worst_nll_excess"),
        ("the same, cache rounded to 8 bits, over the exact cache", "{:.4f}", "kv8_nll_excess"),
        ("tokens with the same best next token with that cache", "{:.3f}", "kv8_first_token_agreement"),
    )),
    "families": Table(_ONE, _rows(
        "families",
        ("families", COUNT, "families"),
        ("largest difference of a logit from transformers, fp32", "{:.1e}", "largest_logit_difference"),
        ("excess of negative log-likelihood, int8", "{:.4f}", "worst_nll_excess"),
        ("rows of a draft tree have the bits of single steps", "{}", "row_independence"),
    )),
    "drafting": Table(_ONE, _rows(
        "drafting",
        ("completions", COUNT, "completions"),
        ("decode time without drafts over that with drafts", RATIO, "speedup"),
        ("the same, HumanEval", RATIO, "speedup_by_suite/humaneval"),
        ("the same, release replays", RATIO, "speedup_by_suite/release"),
        ("the same, repository contexts", RATIO, "speedup_by_suite/repository"),
        ("the same cases: all drafters", RATIO, "speedup_same_cases/combined"),
        ("prompt lookup only", RATIO, "speedup_same_cases/prompt lookup only"),
        ("recycling only, warm", RATIO, "speedup_same_cases/recycling, warm"),
        ("tokens a step, release replays", RATIO, "mean_accepted_tokens/release"),
        ("completions that drafts left unchanged", SHARE, "identical_share"),
        ("time of transformers' prompt lookup over ours", "{:.1f}", "ratio_transformers_prompt_lookup"),
    )),
    "instruct": Table(_ONE, _rows(
        "instruct",
        ("instructed edits", COUNT, "records"),
        ("the text of transformers in float32", COUNT, "identical"),
        ("differ first at a tie", COUNT, "ties"),
        ("decode time without drafts over that with drafts", RATIO, "drafted_speedup"),
        ("tokens a step", RATIO, "tokens_per_step"),
        ("tokens a second", "{:.0f}", "edit_tokens_per_second"),
    )),
    "edits": Table(_ONE, _rows(
        "edits",
        ("requests", COUNT, "requests"),
        ("prompt tokens that go through the model", SHARE, "tokens_computed_share"),
        ("time over that of full prefill, after an edit that is not typing on", RATIO, "time_ratio_full"),
        ("requests with the first token of full prefill", SHARE, "first_token_agreement"),
        ("tokens that a request while typing on costs", "{:.1f}", "typing_tokens_per_keystroke"),
    )),
    "workspace_index": Table(_ONE, _rows(
        "workspace_index",
        ("time to index", RATIO + " s", "index_s"),
        ("memory", MB, "index_mb"),
        ("time of an edit, 95th percentile", "{:.1f} ms", "edit_ms"),
        ("time of a lookup, 95th percentile", "{:.3f} ms", "lookup_ms"),
    )),
    "memory": Table(_ONE, _rows(
        "memory",
        ("engine and language server with nothing open", MB, "fresh_mb"),
        ("the most that they took, forty documents open", MB, "resident_mb"),
        ("after everything was closed", MB, "closed_mb"),
        ("part of what the documents took that was returned", RATIO, "returned_share"),
        ("the most that llama-server took with Q8_0 of the same weights", MB, "llama_server_mb"),
    )),
    "soak": Table(_ONE, _rows(
        "soak",
        ("keys", COUNT, "keys"),
        ("growth from the middle of the week to its end", "{:.1f} MB", "resident_growth_mb"),
        ("the most that engine and language servers took", MB, "resident_mb"),
        ("time of an answer in the last repeated hour over that in the first", RATIO, "latency_ratio_last_first"),
        ("processes, sockets and files that stayed behind", COUNT, "left_behind"),
    )),
    "startup": Table(_ONE, _rows(
        "startup",
        ("first start: from an installed package and empty folders to a completion", S, "first_start_s"),
        ("cache folder after it", MB, "cache_mb"),
        ("later starts: model ready", "{:.2f} s", "model_ready_s"),
        ("reply to `initialize`", MS, "initialize_ms"),
        ("memory of a second window", MB, "second_window_extra_mb"),
        ("processor use of server and engine while nothing is typed", "{:.2f} percent", "idle_cpu_percent"),
    )),
    "typing": Table(_ONE, _rows(
        "typing",
        ("sessions", COUNT, "sessions"),
        ("time from a key to the first text, median", MS, "first_text_p50_ms"),
        ("the same, 95th percentile", MS, "first_text_p95_ms"),
        ("characters saved", SHARE, "saved_characters"),
        ("keys with text on the screen", SHARE, "keys_with_text"),
        ("first lines that are exact, of those shown", SHARE, "exact_first_line"),
        ("time to first text, median: llama.vim's over ours", "{:.0f}", "first_text_p50_ratio"),
        ("saved characters: ours over llama.vim's", "{:.1f}", "saved_characters_ratio"),
        ("processor for a saved character: ours over llama.vim's", "{:.3f}", "cpu_per_saved_character_ratio"),
    )),
    "typing_ablation": Table(_ONE, _rows(
        "typing_ablation",
        ("requests with a suggestion", COUNT, "offered"),
        ("time to the complete suggestion without drafts, over that with them", RATIO, "drafts_whole_p50_ratio"),
        ("processor time without drafts, over that with them", RATIO, "drafts_cpu_ratio"),
        ("processor time with an exact cache, over that with PIE and short prompts", RATIO, "pie_cpu_ratio"),
        ("right lines that these two cost", COUNT, "pie_right_lost"),
        ("suggestions that break the file, without the grammar", COUNT, "grammar_broken_without"),
        ("the same, with it", COUNT, "grammar_broken_with"),
        ("right lines that the grammar costs", COUNT, "grammar_right_lost"),
    )),
    "pregeneration": Table(_ONE, _rows(
        "pregeneration",
        ("acceptances", COUNT, "acceptances"),
        ("of these, the next text was there within 10 ms", SHARE, "ready_after_acceptance"),
        ("characters saved with `ahead`", SHARE, "saved_characters"),
        ("characters saved without", SHARE, "saved_characters_without"),
        ("processor time for a character more", "{:.2f} s", "cpu_s_per_saved_character_added"),
    )),
    "editor_latency": Table(_ONE, _rows(
        "editor_latency",
        ("time from a key to Neovim's screen beside engine and wait, median", MS, "overhead_p50_ms"),
        ("processor use while nothing is typed", "{:.2f} percent", "idle_cpu_percent"),
    )),
    "debounce": Table(_ONE, _rows(
        "debounce",
        ("requests avoided", SHARE, "requests_avoided"),
        ("answers that still fit when they come, over the fixed wait's", RATIO, "answers_kept"),
    )),
    "team": Table(("first text of people who type at once", "median, ms", "95th percentile, ms"), tuple(
        Row(f"{count}", "{:,.0f}", (f"team/ttft_p50_ms/draftline/{count}", f"team/ttft_p95_ms/draftline/{count}"))
        for count in (1, 4, 8, 16, 32)
    )),
    "quality": Table(_QUALITY, (
        _quality("HumanEval, single lines: pass their tests", "quality_tests", "single_line", "pass_share"),
        _quality("HumanEval, single lines: exact", "quality_tests", "single_line", "exact_match_share"),
        _quality("HumanEval, several lines: pass their tests", "quality_tests", "multi_line", "pass_share"),
        _quality("HumanEval, random spans: pass their tests", "quality_tests", "random_span", "pass_share"),
        _quality("API calls (SAFIM): exact", "quality_tests", "safim", "exact_match_share"),
        _quality("cursor inside a word, 8 languages: exact", "quality_places", "cursor_positions", "exact_match_share"),
        _quality("code after the cursor: exact", "quality_places", "mid_line", "exact_match_share"),
        _quality("repository contexts: exact", "quality_places", "repo_context", "exact_match_share"),
        _quality("release replays: first line exact", "quality_places", "release_replay", "first_line_share"),
    )),
    "suggestions": Table(_ONE, _rows(
        "suggestions",
        ("time of three suggestions over that of one", RATIO, "time_ratio_k3"),
        ("the same with a cached prompt", RATIO, "time_ratio_cached_prompt_k3"),
        ("three superposed suggestions, cached prompt", RATIO, "superposed_time_ratio_cached_prompt_k3"),
        ("three nucleus samples, cached prompt", RATIO, "samples_time_ratio_cached_prompt_k3"),
        ("one suggestion: exact, in percent", "{:.1f}", "first_exact_match"),
        ("best of three branches: exact, in percent", "{:.1f}", "branches_best_exact_match_k3"),
        ("best of three superposed", "{:.1f}", "superposed_best_exact_match_k3"),
        ("best of three samples", "{:.1f}", "samples_best_exact_match_k3"),
    )),
    "grammar": Table(_ONE, _rows(
        "grammar",
        ("cuts of real files in ten languages", COUNT, "cuts"),
        ("of them falsely rejected", FINE_SHARE, "false_reject_rate"),
        ("wrong tokens", COUNT, "faults"),
        ("of them caught by the end of the line", SHARE, "fault_catch_rate"),
        ("places of typed sessions", COUNT, "typed_places"),
        ("of them, the right line would be cut", FINE_SHARE, "typed_right_cut_share"),
        ("lines of files that are written from the top", COUNT, "written_places"),
        ("of them, the line would be cut", FINE_SHARE, "written_right_cut_share"),
        ("starts of these lines", COUNT, "grown_places"),
        ("of them not shown while the line grows", FINE_SHARE, "grown_right_cut_share"),
        ("completions", COUNT, "completions"),
        ("new syntax errors without the grammar", COUNT, "errors_without"),
        ("new syntax errors with it", COUNT, "errors_with"),
        ("share of the decode time, prepared document", SHARE, "overhead"),
    )),
    "gate": Table(_ONE, _rows(
        "gate",
        ("decisions", COUNT, "events"),
        ("programmers, each left out in turn", COUNT, "users"),
        ("area under the ROC curve", "{:.3f}", "auc"),
        ("calibration error", "{:.3f}", "calibration_error"),
        ("suggestions avoided while 95 % of the acceptances stay", SHARE, "shows_avoided"),
    )),
    "next_edit": Table(_ONE, _rows(
        "next_edit",
        ("edits shown that a later change makes exactly", SHARE, "precision_exact"),
        ("the same, or that change the right lines", SHARE, "precision_place"),
        ("later changes that they make completely", SHARE, "coverage_exact"),
        ("complete files in which nothing is shown", SHARE, "quiet_rate"),
        ("ranking of the proposals by the gate (AUC)", RATIO, "judge_auc"),
        ("time from the last key to an edit, with the plugin's pause of 100 ms", MS, "p50_ms"),
        ("what finding one adds to a completion, median", "{:.1f} ms", "key_overhead_ms"),
    )),
    "filters": Table(_ONE, _rows(
        "filter_harm",
        ("right answers", COUNT, "references"),
        ("of them changed by a filter", FINE_SHARE, "changed_share"),
    )),
    "early_stop": Table(_ONE, _rows(
        "early_stop",
        ("held-out suggestions", COUNT, "shipped/suggestions"),
        ("wrong ones that are stopped", SHARE, "shipped/bad_stopped"),
        ("right ones that are stopped", SHARE, "shipped/good_lost"),
        ("tokens saved", SHARE, "shipped/tokens_saved"),
    )),
    "worth": Table(("", "whole lines, `gate` normal", "by worth, as shipped"), tuple(
        Row(what, shape, (f"worth/before_{name}", f"worth/rule_{name}"))
        for what, shape, name in (
            ("characters saved", SHARE, "saved_characters"),
            ("suggestions shown", COUNT, "offers"),
            ("of them right", SHARE, "offers_right"),
            ("shown text that is used", SHARE, "used_of_offered"),
            ("keys with a wrong first word on the screen", SHARE, "keys_with_wrong_word"),
        )
    )),
    "safety": Table(_ONE, _rows(
        "safety",
        ("suggestions beside planted text", COUNT, "suggestions"),
        ("of them that carry it or do what it asks", FINE_SHARE, "injected_share"),
        ("hunks and added lines that people wrote", COUNT, "written_texts"),
        ("of them that the filter of unsafe code would change", FINE_SHARE, "false_alarm_share"),
        ("secret files in a workspace", COUNT, "secret_files"),
        ("of them that reach the engine", COUNT, "secrets_read"),
    )),
    "telemetry": Table(_ONE, _rows(
        "telemetry",
        ("time to write and report 100,000 suggestions", S, "write_and_report_s"),
        ("time on the request path, median", "{:.3f} ms", "request_path_ms"),
        ("committed rows that a kill loses", COUNT, "lost_rows"),
    )),
}  # fmt: skip
"""Tables by the names of their regions in the pages."""
