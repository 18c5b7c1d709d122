"""The int8 path is close to float32, and its results do not depend on how rows are grouped, bit for bit."""

import os
import shutil
import sys
import threading
import time
from contextlib import suppress

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from completion.cancellation import CancelToken
from completion.errors import (
    CancelledError,
    ModelDamagedError,
    ModelError,
    ModelNotFoundError,
    StorageError,
    UnsupportedModelError,
)
from completion.memory import Held, resident_bytes
from completion.model.architecture import read_architecture
from completion.model.int8 import packed_weights, quantized
from completion.model.int8.int8_panels import pack_matrix
from completion.model.int8.kernels.block_kinds import KIND_NUMBERS
from completion.model.int8.kernels.processor import ON_ARM, weight_layout
from completion.model.int8.kernels.sizes import BLOCK_SLOTS
from completion.model.int8.kernels.views import Buffers
from completion.model.int8.packed_weights import load_packed
from completion.model.int8.packing import check_sizes
from completion.model.int8.quantized import QuantizedTransformer
from completion.model.int8.rows import tree_rows
from completion.model.int8.sections import gate_up_order
from completion.model.store.converted_models import GGUF_NAME
from completion.model.transformer import has_int8_instructions, load_transformer
from tests.completion.model.conftest import SIZES, with_tokenizer
from tests.completion.model.rows import chain, rows_of, slots, tokens
from tests.tiny_gguf import add_tensor, write_record

GGUF_FAMILIES = {"qwen2", "qwen3", "llama", "granite", "starcoder2"}
pytestmark = pytest.mark.skipif(not has_int8_instructions(), reason="this processor lacks AVX2")


@pytest.fixture(scope="module")
def packed_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packed")


def in_blocks(folder, target, value=gguf.GGMLQuantizationType.Q8_0):
    """Copy a model with its matrices rounded to blocks, Q5_0 or another kind by their place, and their GGUF file."""
    shutil.copytree(folder, target)
    family, kv_heads = read_architecture(folder).family, read_architecture(folder).kv_heads
    writer, rounded = gguf.GGUFWriter(target / GGUF_NAME, family), {}
    writer.add_head_count(4)
    writer.add_head_count_kv(kv_heads)
    for name, tensor in load_file(folder / "model.safetensors").items():
        kind = value if "v_proj" in name or "down" in name else gguf.GGMLQuantizationType.Q5_0
        values = tensor.float().numpy()
        if values.ndim > 1:
            values = gguf.dequantize(gguf.quantize(values, kind), kind)
        rounded[name] = torch.from_numpy(values)
        add_tensor(writer, name, values, family, kind, kv_heads)
    save_file(rounded, target / "model.safetensors")
    written(writer)
    return write_record(target)


def written(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module", params=["int8", "q4"])
def form(request):
    return request.param


@pytest.fixture(scope="module")
def folder(tiny_qwen, form, tmp_path_factory):
    return tiny_qwen[0] if form == "int8" else in_blocks(tiny_qwen[0], tmp_path_factory.mktemp("blocks") / "qwen")


@pytest.fixture(scope="module")
def qwen(folder, form, packed_folder):
    return QuantizedTransformer(load_packed(folder, packed_folder, form), 2)


def test_logits_are_close_to_float32(tiny, form, packed_folder, tmp_path):
    folder = tiny[0]
    if form == "q4":
        if read_architecture(folder).family not in GGUF_FAMILIES:
            pytest.skip("no GGUF files of this family are read")
        folder = in_blocks(folder, tmp_path / "blocks")
    model = QuantizedTransformer(load_packed(folder, packed_folder, form), 2)
    dense, ids = load_transformer(folder, "fp32"), tokens(70)
    ours = rows_of(model.prefill(ids, slots(70), model.new_cache(128), range(70)), 70)
    expected = rows_of(dense.prefill(ids, slots(70), dense.new_cache(128), range(70)), 70)
    assert np.abs(ours - expected).mean() < 0.2 * np.abs(expected).mean()


def test_in_every_family_a_node_of_a_tree_has_bit_for_bit_the_logits_of_its_path(tiny, packed_folder):
    model, past, nodes = QuantizedTransformer(load_packed(tiny[0], packed_folder), 2), tokens(77), tokens(40, seed=3)
    rng = np.random.default_rng(2)
    parents = np.array([rng.integers(max(-1, i - 9), i) for i in range(40)], dtype=np.int32)
    cache = model.new_cache(256)
    model.prefill(past, slots(77), cache)
    tree = rows_of(model.score(nodes, parents, cache), 40)
    for node in range(0, 40, 3):
        path = [node]
        while parents[path[0]] >= 0:
            path.insert(0, int(parents[path[0]]))
        alone = model.score(nodes[path], chain(len(path)), cache).row(len(path) - 1)
        np.testing.assert_array_equal(alone, tree[node])
        whole = np.concatenate([past, nodes[path]])
        fresh = model.prefill(whole, slots(len(whole)), model.new_cache(256), [len(whole) - 1]).row(0)
        np.testing.assert_array_equal(fresh, tree[node])


def test_in_every_family_moved_keys_equal_computed_keys(tiny, packed_folder):
    """Only keys of the first layer depend on nothing but token and position."""
    model, ids = QuantizedTransformer(load_packed(tiny[0], packed_folder), 2), tokens(60)
    cache, fresh = model.new_cache(128), model.new_cache(128)
    model.prefill(ids, slots(60), cache)
    cache.rearrange(slots(40, 20))
    model.prefill(ids[20:], slots(40), fresh)
    expected = first_layer_keys(fresh, 40)
    assert np.abs(first_layer_keys(cache, 40) - expected).max() <= 2**-7 * np.abs(expected).max()


def test_a_cache_that_was_shrunk_gives_the_same_logits_with_less_memory(qwen):
    past, after = tokens(90), tokens(200, seed=1)
    whole, shrunk = qwen.new_cache(512), qwen.new_cache(512)
    for cache in (whole, shrunk):
        cache.reserve(300)
        qwen.prefill(past, slots(90), cache)
    before_bytes = shrunk.size_bytes
    shrunk.shrink()
    assert shrunk.size_bytes < before_bytes / 3
    expected, found = (rows_of(qwen.score(after, chain(200), cache), 200) for cache in (whole, shrunk))
    np.testing.assert_array_equal(found, expected)


def test_in_every_family_keys_that_were_given_back_come_again_to_the_same_bits(tiny, packed_folder):
    model = QuantizedTransformer(load_packed(tiny[0], packed_folder), 2)
    cache = model.new_cache(256)
    model.prefill(tokens(100), slots(100), cache)
    model.prefill(tokens(30, seed=1), slots(30, 50), cache)  # in the middle, as after an edit
    cache.truncate(90)
    keys, size = cache.view.keys.copy(), cache.size_bytes
    cache.shrink()
    assert cache.size_bytes <= size * 2 / 3
    cache.reserve(90)
    blocks = 90 // BLOCK_SLOTS
    np.testing.assert_array_equal(cache.view.keys[:, :, :blocks], keys[:, :, :blocks])
    last = 90 % BLOCK_SLOTS
    np.testing.assert_array_equal(cache.view.keys[:, :, blocks, :, :last], keys[:, :, blocks, :, :last])


@pytest.mark.parametrize("act", ["reopen", "rearrange", "grow"])
def test_whatever_follows_a_shrinking_finds_the_keys(qwen, act):
    past, nodes = tokens(60), tokens(12, seed=1)
    logits = []
    for shrinks in (False, True):
        cache = qwen.new_cache(256)
        qwen.prefill(past, slots(60), cache)
        if shrinks:
            cache.shrink()
        if act == "reopen":
            cache.reopen(50)
            cache.keep(range(4))
        elif act == "rearrange":
            cache.rearrange(np.arange(10, 60, dtype=np.int32))
        else:
            cache.reserve(200)
        logits.append(rows_of(qwen.score(nodes, chain(12), cache), 12))
    np.testing.assert_array_equal(*logits)


def test_shrinking_keeps_the_rows_of_a_tree_that_still_grows(qwen):
    past, nodes = tokens(60), tokens(12, seed=1)
    whole, shrunk = qwen.new_cache(256), qwen.new_cache(256)
    logits = []
    for cache in (whole, shrunk):
        qwen.prefill(past, slots(60), cache)
        qwen.score(nodes, chain(12), cache)
        cache.keep(range(10))
        if cache is shrunk:
            cache.shrink()
        logits.append(qwen.score(nodes[:1], np.array([9], np.int32), cache).row(0))
    np.testing.assert_array_equal(*logits)


def keys_and_values(cache):
    """Unrotated keys and values of the past as numbers.  # [layers, heads, slots, channels] twice."""
    keys, values = cache.view.plain_keys[:, :, : cache.length], cache.view.values[:, :, :, : cache.length]
    by_slot = np.moveaxis(values, 3, 2)
    return [(each.astype(np.uint32) << 16).view(np.float32) for each in (keys, by_slot.reshape(keys.shape))]


def test_in_every_family_a_compressed_past_takes_a_third_and_is_off_by_half_a_step_however_often(tiny, packed_folder):
    """A step is at most 1/8 more than 1/127 of a head's largest number."""
    model = QuantizedTransformer(load_packed(tiny[0], packed_folder), 2)
    cache = model.new_cache(256)
    cache.reserve(128)
    model.prefill(tokens(100), slots(100), cache)
    (keys, values), size, rounded = keys_and_values(cache), cache.size_bytes, []
    for _ in range(20):
        assert cache.compress()
        assert not cache.compress()
        assert cache.size_bytes < 0.42 * size  # 32 channels a head share two scales: 0.35 with 64
        assert sum(length for _, length in cache.held().spans) == cache.size_bytes
        cache.reserve(100)
        rounded.append(keys_and_values(cache))
    for index, (before, centred) in enumerate(((keys, keys - keys.mean(axis=2, keepdims=True)), (values, values))):
        step = 1.125 * np.abs(centred).max(axis=-1, keepdims=True) / 127
        error = np.abs(rounded[0][index] - before)
        assert (error <= 0.505 * step + 2**-8 * np.abs(before)).all()  # and a bfloat16's error
        assert np.sqrt(((rounded[-1][index] - before) ** 2).mean()) <= 1.5 * np.sqrt((error**2).mean())


@pytest.mark.parametrize("act", ["reopen", "rearrange", "truncate", "grow"])
def test_whatever_follows_a_compression_finds_the_rounded_past(qwen, act):
    past, nodes = tokens(60), tokens(12, seed=1)
    logits = []
    for expands in (True, False):
        cache = qwen.new_cache(256)
        qwen.prefill(past, slots(60), cache)
        cache.compress()
        if expands:
            cache.reserve(60)
        if act == "reopen":
            cache.reopen(50)
            cache.keep(range(4))
        elif act == "rearrange":
            cache.rearrange(np.arange(10, 60, dtype=np.int32))
        elif act == "truncate":
            cache.truncate(40)
        else:
            cache.reserve(200)
        logits.append(rows_of(qwen.score(nodes, chain(12), cache), 12))
    np.testing.assert_array_equal(*logits)


def test_a_past_with_rows_after_it_and_an_empty_one_are_not_rounded(qwen):
    cache = qwen.new_cache(256)
    assert not cache.compress()
    qwen.prefill(tokens(60), slots(60), cache)
    qwen.score(tokens(12, seed=1), chain(12), cache)
    cache.keep(range(10))
    assert not cache.compress()


def test_weights_that_were_mapped_give_the_same_logits_before_and_after_they_settle(folder, form, packed_folder, qwen):
    ids = tokens(40)
    mapped = QuantizedTransformer(load_packed(folder, packed_folder, form, mapped=True), 2)
    expected = rows_of(qwen.prefill(ids, slots(40), qwen.new_cache(64), range(40)), 40)
    for _ in range(2):
        found = rows_of(mapped.prefill(ids, slots(40), mapped.new_cache(64), range(40)), 40)
        np.testing.assert_array_equal(found, expected)
        mapped.settle()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the weights are never mapped")
def test_the_weights_that_are_held_are_those_of_the_file_mapped_or_settled(folder, form, packed_folder):
    mapped = QuantizedTransformer(load_packed(folder, packed_folder, form, mapped=True), 2)
    mapped.prefill(tokens(40), slots(40), mapped.new_cache(64), range(40))
    assert resident_bytes(mapped.held_weights().spans) == pytest.approx(mapped.step_bytes, rel=0.05)
    mapped.settle()
    assert resident_bytes(mapped.held_weights().spans) == pytest.approx(mapped.step_bytes, rel=0.01)


def test_a_model_at_rest_holds_no_buffers_and_goes_on_with_the_same_logits(folder, form, packed_folder):
    model, ids = QuantizedTransformer(load_packed(folder, packed_folder, form), 2), tokens(40)
    expected = rows_of(model.prefill(ids, slots(40), model.new_cache(64), range(40)), 40)
    model.rest()
    if sys.platform == "linux":
        assert resident_bytes(Held.arrays([model._buffers.x, model._buffers.gated]).spans) == 0
    found = rows_of(model.prefill(ids, slots(40), model.new_cache(64), range(40)), 40)
    np.testing.assert_array_equal(found, expected)


def test_no_vector_of_a_buffer_lies_across_two_cache_lines(qwen):
    cache = qwen.new_cache(300)
    qwen.prefill(tokens(200), slots(200), cache)  # scores of 200 slots need larger scratch
    arrays = [row for array in qwen._buffers if array.ndim > 1 for row in array[:2]]
    assert len(arrays) > 10
    assert {row.ctypes.data % 64 for row in arrays} == {0}


def test_a_cache_is_held_as_far_as_it_is_filled(qwen):
    cache = qwen.new_cache(512)
    assert resident_bytes(cache.held().spans) == 0
    cache.reserve(512)
    assert resident_bytes(cache.held().spans) < 0.1 * cache.size_bytes
    qwen.prefill(tokens(512), slots(512), cache)
    assert resident_bytes(cache.held().spans) == pytest.approx(cache.size_bytes, rel=0.3)


@pytest.mark.parametrize("count", [2, 3, 8, 16, 37, 64])
def test_a_chain_gives_bit_for_bit_the_logits_of_single_steps(qwen, count):
    past, ids, cache = tokens(90), tokens(count, seed=1), qwen.new_cache(256)
    qwen.prefill(past, slots(90), cache)
    together = rows_of(qwen.score(ids, chain(count), cache), count)
    for index in range(count):
        alone = qwen.score(ids[index : index + 1], chain(1), cache).row(0)
        np.testing.assert_array_equal(alone, together[index])
        cache.commit([0])


def test_a_node_of_a_tree_has_bit_for_bit_the_logits_of_its_path(qwen):
    past, rng = tokens(77), np.random.default_rng(2)
    nodes = tokens(40, seed=3)
    parents = np.array([rng.integers(max(-1, i - 9), i) for i in range(40)], dtype=np.int32)
    cache = qwen.new_cache(256)
    qwen.prefill(past, slots(77), cache)
    tree = rows_of(qwen.score(nodes, parents, cache), 40)
    for node in range(40):
        path = [node]
        while parents[path[0]] >= 0:
            path.insert(0, int(parents[path[0]]))
        alone = qwen.score(nodes[path], chain(len(path)), cache).row(len(path) - 1)
        np.testing.assert_array_equal(alone, tree[node])


def test_a_row_below_kept_rows_has_bit_for_bit_the_logits_of_its_path(qwen):
    past, nodes, rng = tokens(77), tokens(40, seed=3), np.random.default_rng(4)
    parents = np.array([rng.integers(max(-1, i - 9), i) for i in range(40)], dtype=np.int32)
    grown, at_once = qwen.new_cache(256), qwen.new_cache(256)
    for cache in (grown, at_once):
        qwen.prefill(past, slots(77), cache)
    grown.reopen(70)
    for start in range(0, 40, 8):
        below = np.where(parents[start : start + 8] < 0, 6, parents[start : start + 8] + 7).astype(np.int32)
        found = rows_of(qwen.score(nodes[start : start + 8], below, grown), 8)
        expected = rows_of(qwen.score(nodes[: start + 8], parents[: start + 8], at_once), start + 8)
        np.testing.assert_array_equal(found, expected[start:])
        grown.keep(range(7 + start + 8))


def test_a_one_hot_mixture_has_bit_for_bit_the_logits_of_its_token(qwen):
    mixed, plain = qwen.new_cache(64), qwen.new_cache(64)
    nodes, parents = tokens(4), np.array([-1, 0, 0, 2], dtype=np.int32)
    pairs, weights = np.stack([nodes[::-1], nodes], axis=1), np.tile(np.array([0, 1], dtype=np.float32), (4, 1))
    found, expected = qwen.superpose(pairs, weights, parents, mixed), qwen.score(nodes, parents, plain)
    np.testing.assert_array_equal(rows_of(found, 4), rows_of(expected, 4))


def test_a_prefill_gives_bit_for_bit_the_logits_of_single_steps_and_of_chunks(qwen):
    ids, steps, chunks = tokens(300), qwen.new_cache(320), qwen.new_cache(320)
    expected = rows_of(qwen.prefill(ids, slots(300), qwen.new_cache(320), range(300)), 300)
    for start, count in ((0, 7), (7, 120), (127, 1), (128, 172)):
        found = qwen.prefill(ids[start : start + count], slots(count, start), chunks, range(count))
        np.testing.assert_array_equal(rows_of(found, count), expected[start : start + count])
    for index in range(40):
        np.testing.assert_array_equal(qwen.score(ids[index : index + 1], chain(1), steps).row(0), expected[index])
        steps.commit([0])


def test_steps_after_a_commit_give_the_logits_of_a_prefill(qwen):
    past, nodes = tokens(30), tokens(6, seed=1)
    cache, fresh = qwen.new_cache(64), qwen.new_cache(64)
    qwen.prefill(past, slots(30), cache)
    qwen.score(nodes, np.array([-1, 0, 0, -1, 2, 4], dtype=np.int32), cache)
    cache.commit([0, 2, 4])
    whole = np.concatenate([past, nodes[[0, 2, 4]]])
    qwen.prefill(whole, slots(33), fresh)
    np.testing.assert_array_equal(
        qwen.score(nodes[:1], chain(1), cache).row(0), qwen.score(nodes[:1], chain(1), fresh).row(0)
    )


def test_a_cancelled_pass_computes_nothing_and_leaves_the_cache_as_it_was(qwen):
    cancelled, cache = CancelToken(), qwen.new_cache(64)
    cancelled.cancel()
    qwen.prefill(tokens(20), slots(20), cache)
    before = cache.view.values.copy()
    ids, parents = tokens(30)[20:], chain(10)
    for passing in (
        lambda: qwen.prefill(ids, slots(30)[20:], cache, [0], cancelled),
        lambda: qwen.score(ids, parents, cache, cancelled),
        lambda: qwen.superpose(ids[:, None], np.ones((10, 1), np.float32), parents, cache, cancelled),
    ):
        with pytest.raises(CancelledError):
            passing()
        assert (cache.length, cache.kept) == (20, 0)
        np.testing.assert_array_equal(cache.view.values, before)
    expected = qwen.prefill(tokens(30), slots(30), qwen.new_cache(64), range(20, 30))
    np.testing.assert_array_equal(rows_of(qwen.score(ids, parents, cache), 10), rows_of(expected, 10))


def test_a_pass_may_be_cancelled_at_any_time_and_is_repeated_bit_for_bit(folder, form, packed_folder):
    model = QuantizedTransformer(load_packed(folder, packed_folder, form), 3)
    ids, at, random = tokens(200), slots(200), np.random.default_rng(5)
    started = time.perf_counter()
    expected = rows_of(model.prefill(ids, at, model.new_cache(256), [199]), 1)
    whole_s = time.perf_counter() - started
    cache, ended = model.new_cache(256), 0
    for share in random.uniform(0, 1.2, 40):
        cancel = CancelToken()
        timer = threading.Timer(share * whole_s, cancel.cancel)
        timer.start()
        started = time.perf_counter()
        with suppress(CancelledError):
            model.prefill(ids, at, cache, [199], cancel)
            ended, whole_s = ended + 1, time.perf_counter() - started  # the first pass may have had to wait
        timer.join()
        cache.truncate(0)
    assert ended < 40
    np.testing.assert_array_equal(rows_of(model.prefill(ids, at, cache, [199]), 1), expected)


def test_logits_rows_come_in_the_requested_order(qwen):
    ids = tokens(300)
    some = qwen.prefill(ids, slots(300), qwen.new_cache(320), [299, 3, 290])
    every = qwen.prefill(ids, slots(300), qwen.new_cache(320), range(300))
    for index, row in enumerate([299, 3, 290]):
        np.testing.assert_array_equal(some.row(index), every.row(row))


def test_the_top_tokens_are_the_best_of_each_row(qwen):
    logits = qwen.score(tokens(9), chain(9), qwen.new_cache(64))
    best, values = logits.top(8)
    for index in range(9):
        expected = np.argsort(-logits.row(index), kind="stable")[:8]
        np.testing.assert_array_equal(best[index], expected)
        np.testing.assert_array_equal(values[index], logits.row(index)[expected])
    np.testing.assert_array_equal(logits.argmax(), best[:, 0])


def test_a_cache_that_grows_gives_bit_for_bit_the_logits_of_one_that_is_reserved_at_once(qwen):
    ids, nodes, parents = tokens(400), tokens(6, seed=1), np.array([-1, 0, 0, -1, 2, 4], dtype=np.int32)
    grown, roomy = qwen.new_cache(512), qwen.new_cache(512)
    roomy.reserve(512)
    found, room = [], set()
    for cache in (roomy, grown):
        for start in range(0, 200, 50):
            qwen.prefill(ids[start : start + 50], slots(50, start), cache)
        cache.rearrange(np.concatenate([slots(20, 10), slots(180, 10), slots(150, 30)]))  # more slots than before
        room.add(cache.slots)
        for start in range(350, 400, 10):
            qwen.prefill(ids[start : start + 10], slots(10, start), cache)
            found.append(rows_of(qwen.score(nodes, parents, cache), 6))
            cache.commit([0, 2, 4])
            cache.truncate(start + 10)
    np.testing.assert_array_equal(found[5:], found[:5])
    assert room == {448, 512}
    assert qwen.new_cache(512).size_bytes == 0 < grown.size_bytes <= roomy.size_bytes


def first_layer_keys(cache, count):
    """Return rotated keys of the first layer as numbers.  # [kv_heads, count, head_dim]."""
    blocks = cache.view.keys[0].transpose(0, 1, 3, 2, 4)  # [kv_heads, blocks, 16, head_dim / 2, 2]
    bits = blocks.reshape(len(blocks), -1, 2 * blocks.shape[3])[:, :count]
    return (bits.astype(np.uint32) << 16).view(np.float32)


def test_keys_moved_many_times_equal_computed_keys_of_their_last_position(qwen):
    """Keys of later layers also depend on earlier tokens; those of the first layer only on token and position."""
    ids, cache, fresh = tokens(60), qwen.new_cache(128), qwen.new_cache(128)
    qwen.prefill(ids, slots(60), cache)
    swap, order = np.concatenate([slots(10), slots(20, 30), slots(20, 10), slots(10, 50)]), slots(60)
    for _ in range(1000):
        cache.rearrange(swap)
        order = order[swap]
    sources = np.concatenate([slots(10), np.full(7, -1), slots(20, 40), slots(30, 10)]).astype(np.int32)
    cache.rearrange(sources)
    moved = ids[np.where(sources < 0, 0, order[sources])]
    qwen.prefill(moved, slots(67), fresh)
    kept = sources >= 0
    expected = first_layer_keys(fresh, 67)[:, kept]
    difference = np.abs(first_layer_keys(cache, 67)[:, kept] - expected)
    assert difference.max() <= 2**-7 * np.abs(expected).max()  # two roundings to bfloat16 instead of one
    assert cache.length == 67


def test_auto_takes_blocks_where_they_are_faster_and_there_are_any(tiny_qwen, tmp_path):
    assert load_transformer(tiny_qwen[0], "auto").form == "int8"
    blocks = in_blocks(tiny_qwen[0], tmp_path / "blocks")
    assert load_transformer(blocks, "auto").form == ("int8" if ON_ARM else "q4")
    assert load_transformer(blocks, "int8").form == "int8"


def test_a_gguf_file_beside_a_users_own_weights_is_not_taken_for_them(tiny_qwen, tmp_path):
    folder = in_blocks(tiny_qwen[0], tmp_path / "own")
    for name in ("source.json", "gguf.json"):  # a folder that no conversion made
        (folder / name).unlink()
    (folder / GGUF_NAME).write_bytes(b"not read")
    with_tokenizer(folder)
    assert load_transformer(folder, "auto").form == "int8"
    assert load_packed(folder, tmp_path, "q4").form == "q4"


def test_blocks_without_a_kernel_are_named(tiny_qwen, tmp_path):
    folder = in_blocks(tiny_qwen[0], tmp_path / "blocks", value=gguf.GGMLQuantizationType.Q4_1)
    with pytest.raises(UnsupportedModelError, match=r"v_proj\.weight as Q4_1; Q5_0, Q8_0, Q4_K, Q6_K are multiplied"):
        load_packed(folder, tmp_path, "q4")


def test_a_gguf_file_that_lacks_a_matrix_is_damaged(tiny_qwen, tmp_path):
    folder = in_blocks(tiny_qwen[0], tmp_path / "blocks")
    writer = gguf.GGUFWriter(folder / GGUF_NAME, "qwen2")
    writer.add_tensor("output_norm.weight", np.ones(128, np.float32))
    written(writer)
    write_record(folder)
    with pytest.raises(ModelDamagedError, match=r"model\.gguf lacks the tensor model\.embed_tokens\.weight"):
        load_packed(folder, tmp_path, "q4")


def test_what_was_converted_from_another_gguf_file_is_packed_again(tiny_qwen, tmp_path):
    folder = in_blocks(tiny_qwen[0], tmp_path / "blocks")
    load_packed(folder, tmp_path, "q4")
    other = in_blocks(tiny_qwen[0], tmp_path / "other", value=gguf.GGMLQuantizationType.Q5_0)
    shutil.copy(other / GGUF_NAME, folder / GGUF_NAME)
    write_record(folder, "1" * 12)
    kinds = load_packed(folder, tmp_path, "q4").sections["0.qkv.strips"][:, 1]
    assert set(kinds.tolist()) == {KIND_NUMBERS["Q5_0"]}


def test_a_cache_of_another_model_is_refused(qwen, tiny_qwen):
    dense = load_transformer(tiny_qwen[0], "fp32")
    with pytest.raises(ModelError, match="another model"):
        qwen.prefill(tokens(3), slots(3), dense.new_cache(16))


def test_packed_weights_differ_by_half_a_quantisation_step_or_less():
    weight = np.random.default_rng(0).normal(size=(70, 256)).astype(np.float32)  # two panels, two groups of columns
    groups = pack_matrix(weight).reshape(2, 2, 64 * 128 + 128)
    bits = np.ascontiguousarray(groups[:, :, -128:]).view(np.uint16).astype(np.uint32)
    scales = (bits << np.uint32(16)).view(np.float32).transpose(0, 2, 1).reshape(128, 2, 1)[:70]
    (offset, run), values = weight_layout(), groups[:, :, :-128].astype(np.int16)
    values = (values if offset else values.astype(np.int8)).reshape(2, 2, 128 // run, 64, run).transpose(0, 3, 1, 2, 4)
    restored = scales * (values.reshape(128, 2, 128)[:70].astype(np.float32) - offset)
    assert np.all(np.abs(restored.reshape(70, 256) - weight) <= np.repeat(scales, 128, axis=2).reshape(70, 256) / 2)
    assert np.all(scales <= 1.01 * np.abs(weight).reshape(70, 2, 128).max(axis=2, keepdims=True) / 127)


def test_gate_channels_are_followed_by_their_up_channels():
    assert gate_up_order(64).tolist() == [*range(32), *range(64, 96), *range(32, 64), *range(96, 128)]


def test_a_model_is_packed_once(tiny_qwen, tmp_path, monkeypatch):
    load_packed(tiny_qwen[0], tmp_path)
    monkeypatch.setattr(packed_weights, "run_apart", None)  # a second packing would call it
    assert load_packed(tiny_qwen[0], tmp_path).architecture == read_architecture(tiny_qwen[0])
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


def zeroed(path, start):
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(path.stat().st_size - start))


def flipped(path, start):
    data = bytearray(path.read_bytes())
    data[start] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: zeroed(packed / "weights.bin", 0),
        lambda packed: zeroed(packed / "weights.bin", (packed / "weights.bin").stat().st_size // 2),
        lambda packed: flipped(packed / "weights.bin", 100_000),
        lambda packed: os.truncate(packed / "weights.bin", 200_000),
        lambda packed: os.truncate(packed / "weights.bin", 0),
        lambda packed: (packed / "weights.bin").unlink(),
        lambda packed: os.truncate(packed / "index.json", 300),
        lambda packed: flipped(packed / "index.json", 200),
        lambda packed: (packed / "index.json").unlink(),
    ],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_damaged_packed_weights_are_packed_again(tiny_qwen, tmp_path, caplog, damage, mapped):
    expected = {name: np.array(each) for name, each in load_packed(tiny_qwen[0], tmp_path).sections.items()}
    (packed,) = (path for path in tmp_path.iterdir() if path.is_dir())
    damage(packed)
    found = load_packed(tiny_qwen[0], tmp_path, mapped=mapped).sections
    assert "packed again" in caplog.text
    for name, section in expected.items():
        np.testing.assert_array_equal(found[name], section)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [packed]


def test_packed_weights_are_on_the_disk_before_they_have_their_name(tiny_qwen, tmp_path, monkeypatch):
    """Else a power failure after the rename leaves a folder of zeros."""
    fsync, named_when_synced = os.fsync, {}

    def noted(handle):
        fsync(handle)
        names = [path.name for path in tmp_path.iterdir() if path.is_dir() and path.suffix != ".partial"]
        named_when_synced[os.fstat(handle).st_ino] = names

    monkeypatch.setattr(os, "fsync", noted)
    load_packed(tiny_qwen[0], tmp_path)
    (packed,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert {path.name: named_when_synced.get(path.stat().st_ino) for path in packed.iterdir()} == {
        "weights.bin": [], "index.json": []
    }  # fmt: skip


def test_a_cache_folder_that_cannot_be_written_says_what_to_do(tiny_qwen, tmp_path):
    (tmp_path / "packed").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="DRAFTLINE_CACHE_DIR"):
        load_packed(tiny_qwen[0], tmp_path / "packed")


def test_a_folder_without_a_model_is_an_error_and_not_looked_up_on_the_hub(tmp_path):
    with pytest.raises(ModelNotFoundError, match="holds no config"):
        load_packed(tmp_path / "nothing", tmp_path)


def test_sizes_that_the_kernels_do_not_support_are_an_error(tiny_qwen):
    architecture = read_architecture(tiny_qwen[0])
    object.__setattr__(architecture, "intermediate_size", 100)
    with pytest.raises(UnsupportedModelError, match="multiples of 64"):
        check_sizes(architecture)


def test_a_tree_row_sees_a_run_of_slots_and_single_ancestors():
    rows = tree_rows(np.array([-1, 0, 0, 2, 1], dtype=np.int32), 10)
    assert rows.positions.tolist() == [10, 11, 11, 12, 12]
    assert rows.contiguous.tolist() == [11, 12, 11, 11, 12]
    singles = [rows.singles[a:b].tolist() for a, b in zip(rows.singles_start, rows.singles_start[1:], strict=False)]
    assert singles == [[], [], [12], [12, 13], [14]]


def test_a_small_vocabulary_beside_wide_projections_has_the_scales_of_every_channel(tmp_path):
    """The widest matrix is that of queries, keys and values here, where unit scales were sized for two others."""
    config = LlamaConfig(**SIZES | {"hidden_size": 640, "num_attention_heads": 10, "head_dim": 64, "vocab_size": 64})
    config.intermediate_size, config.num_hidden_layers, config.initializer_range = 64, 1, 0.08
    torch.manual_seed(1)
    module = LlamaForCausalLM(config).float().eval()
    module.save_pretrained(tmp_path / "model")
    model = QuantizedTransformer(load_packed(tmp_path / "model", tmp_path), 2)
    ids = tokens(20) % 64
    found = rows_of(model.prefill(ids, slots(20), model.new_cache(64), range(20)), 20)
    expected = module(torch.from_numpy(ids)[None].long()).logits[0].detach().numpy()
    assert np.abs(found - expected).mean() < 0.1 * expected.std()


def test_a_thread_that_fails_within_a_pass_ends_the_others(tiny_qwen, packed_folder, monkeypatch):
    """The others wait for the item that it has claimed."""
    model = QuantizedTransformer(load_packed(tiny_qwen[0], packed_folder), 2)
    expected = rows_of(model.prefill(tokens(20), slots(20), model.new_cache(64), range(20)), 20)
    run, has_claimed = quantized.run_layers, threading.Event()

    def fail_on_one(thread, *arguments):
        if thread == 0:
            has_claimed.wait(60)
            run(thread, *arguments)
        else:
            counters = next(each for each in arguments if isinstance(each, Buffers)).counters
            counters[0, 0] += 1
            has_claimed.set()
            raise MemoryError("no memory")

    cache = model.new_cache(64)
    monkeypatch.setattr(quantized, "run_layers", fail_on_one)
    with pytest.raises(MemoryError):
        model.prefill(tokens(20), slots(20), cache)
    monkeypatch.undo()
    found = rows_of(model.prefill(tokens(20), slots(20), model.new_cache(64), range(20)), 20)
    np.testing.assert_array_equal(found, expected)
