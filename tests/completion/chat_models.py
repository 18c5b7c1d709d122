"""Tiny models with a chat template."""

import shutil

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML, the template of Qwen's models without tools."""


def chat_model(source, folder):
    """Copy a tiny model into a new folder, with a chat template."""
    shutil.copytree(source, folder)
    (folder / "chat_template.jinja").write_text(CHATML, encoding="utf-8")
    return folder
