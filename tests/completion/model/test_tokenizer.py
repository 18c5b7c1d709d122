"""Tokens stand for exact bytes, and text never becomes a control token."""

import json
import shutil
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from completion.errors import ModelDamagedError, UnsupportedModelError
from completion.model.store.converted_models import packed_name
from completion.model.store.gguf_file import GgufFile
from completion.model.store.gguf_tokenizer import tokenizer_json
from completion.model.tokenizer import CodeTokenizer
from tests.tiny_gguf import write_tiny_gguf
from tests.tiny_models import SPECIALS, VOCABULARY_SIZE

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
CODE = st.lists(
    st.sampled_from(["def ", "self", "return", "\n    ", "<|fim_middle|>", "é", "\r\n", "(", "\t", "▁", "🙂"])
)


@pytest.fixture(scope="module")
def byte_level(tiny_qwen2):
    return CodeTokenizer.from_folder(tiny_qwen2)


@pytest.fixture(scope="module")
def sentencepiece_json(tmp_path_factory):
    path = write_tiny_gguf(tmp_path_factory.mktemp("spm") / "tiny.gguf", "llama", tokenizer="llama")
    return tokenizer_json(GgufFile(path).field)


@pytest.fixture(scope="module")
def sentencepiece(sentencepiece_json):
    return CodeTokenizer(Tokenizer.from_str(sentencepiece_json), VOCABULARY_SIZE)


@given(TEXTS)
def test_byte_level_tokens_decode_to_the_text(byte_level, text):
    assert byte_level.decode(byte_level.encode(text)) == text.encode()


@given(CODE)
def test_tokens_of_code_with_marker_texts_decode_to_the_text(byte_level, parts):
    text = "".join(parts)
    tokens = byte_level.encode(text)
    assert byte_level.decode(tokens) == text.encode()
    assert not byte_level.stop_ids & set(tokens)


@given(TEXTS)
def test_sentencepiece_tokens_decode_to_the_text(sentencepiece, text):
    expected = text.replace("▁", " ")  # U+2581 means a space there
    assert sentencepiece.decode(sentencepiece.encode(text)) == expected.encode()


@pytest.mark.parametrize("marker", [*SPECIALS, "▁<PRE>", " <PRE>", "<s>", "</s>", "<unk>", "<0x41>"])
def test_a_markers_text_is_encoded_as_plain_text(byte_level, sentencepiece, marker):
    text = f"a {marker} b{marker}"
    for tokenizer, expected in ((byte_level, text), (sentencepiece, text.replace("▁", " "))):
        tokens = tokenizer.encode(text)
        assert not tokenizer.stop_ids & set(tokens)
        assert tokenizer.decode(tokens) == expected.encode()


def test_control_tokens_are_special_even_if_the_file_does_not_declare_them(byte_level, tiny_qwen2):
    declared = json.loads((tiny_qwen2 / "tokenizer.json").read_text())["added_tokens"]
    assert [token["special"] for token in declared if "fim" in token["content"]] == [False] * 4
    assert set(byte_level.special) == set(SPECIALS)
    assert all(byte_level.token_bytes(id_) == b"" for id_ in byte_level.special.values())


def test_every_token_without_bytes_is_a_stop_token(byte_level):
    beyond = set(range(599, VOCABULARY_SIZE))  # rows of the embedding without a token
    assert byte_level.stop_ids == set(byte_level.special.values()) | beyond
    assert byte_level.vocabulary_size == VOCABULARY_SIZE


def test_text_is_not_normalised(byte_level, tiny_qwen2, tmp_path):
    file = json.loads((tiny_qwen2 / "tokenizer.json").read_text())
    file["normalizer"] = {"type": "NFC"}  # as in Qwen's own file
    composing = CodeTokenizer(Tokenizer.from_str(json.dumps(file)))
    assert composing.decode(composing.encode("e\u0301")) == "e\u0301".encode()


def test_no_space_is_put_before_the_text(tiny_qwen2):
    file = json.loads((tiny_qwen2 / "tokenizer.json").read_text())
    file["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = True
    assert CodeTokenizer(Tokenizer.from_str(json.dumps(file))).decode([]) == b""
    tokenizer = CodeTokenizer(Tokenizer.from_str(json.dumps(file)))
    assert tokenizer.decode(tokenizer.encode("def f")) == b"def f"


@pytest.mark.parametrize("prepend", ["always", "first", "never"])
def test_metaspace_tokens_decode_to_the_exact_text(sentencepiece_json, prepend):
    file = json.loads(sentencepiece_json)
    file |= {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": prepend}}
    file["pre_tokenizer"]["split"] = False
    tokenizer = CodeTokenizer(Tokenizer.from_str(json.dumps(file)))
    assert tokenizer.decode(tokenizer.encode("  def the\n self")) == b"  def the\n self"


def test_lone_surrogates_count_as_question_marks(byte_level):
    assert byte_level.decode(byte_level.encode("a\ud83d b")) == b"a? b"


@given(st.binary(max_size=6))
def test_tokens_with_prefix_returns_the_tokens_that_agree_with_forced_bytes(byte_level, prefix):
    def agrees(text):
        return text != b"" and (text.startswith(prefix) or prefix.startswith(text))

    expected = [i for i in range(byte_level.vocabulary_size) if agrees(byte_level.token_bytes(i))]
    assert byte_level.tokens_with_prefix(prefix).tolist() == expected


@pytest.mark.parametrize("prefix", [b" re", b"    return", b"a", b"\xff", b"\xff\xff", b""])
def test_tokens_with_prefix_returns_the_sentencepiece_tokens_that_agree(sentencepiece, prefix):
    def agrees(text):
        return text != b"" and (text.startswith(prefix) or prefix.startswith(text))

    expected = [i for i in range(sentencepiece.vocabulary_size) if agrees(sentencepiece.token_bytes(i))]
    assert sentencepiece.tokens_with_prefix(prefix).tolist() == expected
    assert expected


@pytest.mark.parametrize("byte", [b"\n", b"e", b" ", b"\xe2"])
def test_tokens_with_byte_returns_the_tokens_that_contain_it(byte_level, sentencepiece, byte):
    for tokenizer in (byte_level, sentencepiece):
        expected = [token for token in range(tokenizer.vocabulary_size) if byte in tokenizer.token_bytes(token)]
        assert tokenizer.tokens_with_byte(byte) == expected


def test_a_vocabulary_that_can_spell_a_control_token_is_refused(tiny_qwen2):
    file = json.loads((tiny_qwen2 / "tokenizer.json").read_text())
    control = file["model"]["vocab"]["def"]
    token = {"id": control, "content": "def", "special": True, "normalized": False}
    file["added_tokens"].insert(0, token | {"single_word": False, "lstrip": False, "rstrip": False})
    with pytest.raises(UnsupportedModelError, match="'def'"):
        CodeTokenizer(Tokenizer.from_str(json.dumps(file)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_folder_may_have_a_name_that_is_no_utf_8(tiny_qwen2, tmp_path, byte_level):
    folder = shutil.copytree(tiny_qwen2, tmp_path / "mod\udce9l")
    assert CodeTokenizer.from_folder(folder).digest == byte_level.digest
    assert packed_name(folder) != packed_name(tiny_qwen2)


def test_a_tokenizer_file_with_two_tokens_of_one_number_is_a_damaged_model(tiny_qwen2, tmp_path):
    folder = shutil.copytree(tiny_qwen2, tmp_path / "model")
    file = json.loads((folder / "tokenizer.json").read_text())
    left, right = file["model"]["merges"][0]
    file["model"]["vocab"][left + right] = file["model"]["vocab"]["def"]
    (folder / "tokenizer.json").write_text(json.dumps(file))
    with pytest.raises(ModelDamagedError, match="cannot be read"):
        CodeTokenizer.from_folder(folder)


def test_an_unreadable_tokenizer_file_is_a_damaged_model(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelDamagedError, match="cannot be read"):
        CodeTokenizer.from_folder(tmp_path)
