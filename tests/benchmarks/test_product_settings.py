"""Benchmarks that run the engine in process use the settings of the product."""

import ast
from pathlib import Path

import pytest

from completion.cache.kv_session import SessionSettings
from completion.engine import product_settings
from completion.prompt.pace import COLD_PROMPT_S, FULL_PROMPT_S
from completion.workspace.workspaces import BUDGET_BYTES

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def calls(path):
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def name_of(call):
    return call.func.id if isinstance(call.func, ast.Name) else ""


IN_PROCESS = [path for path in sorted(BENCHMARKS.rglob("*.py")) if "Engine" in map(name_of, calls(path))]


def test_the_products_settings_bound_prompts_by_the_machines_pace():
    assert (product_settings().full_prompt_s, product_settings().cold_prompt_s) == (FULL_PROMPT_S, COLD_PROMPT_S)


def test_a_room_gets_memory_for_documents_and_workspaces_and_one_user_what_is_always_there():
    room, crowded, alone = product_settings(1 << 30, 1 << 31), product_settings(1, 1), product_settings()
    assert (room.sessions, room.workspace_bytes) == (SessionSettings(budget_bytes=1 << 30, shared=True), 1 << 31)
    assert (crowded.sessions, crowded.workspace_bytes) == (SessionSettings(shared=True), BUDGET_BYTES)
    assert (alone.sessions, alone.workspace_bytes) == (SessionSettings(), BUDGET_BYTES)


@pytest.mark.parametrize("path", IN_PROCESS, ids=lambda path: str(path.relative_to(BENCHMARKS)))
def test_an_engine_in_a_benchmark_starts_from_the_products_settings(path):
    found = calls(path)
    assert all(len(call.args) > 1 for call in found if name_of(call) == "Engine")
    assert "EngineSettings" not in map(name_of, found)
    assert "product_settings" in map(name_of, found)
