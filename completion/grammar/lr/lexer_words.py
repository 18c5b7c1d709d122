"""Layout of the compiled lexer's state: one array of 64-bit words, whose first eight are the `TSLexer` structure."""

from __future__ import annotations

# 0 holds lookahead (low half) and result symbol; 1 to 6 are the six callbacks.
HEAD, CALLBACKS = 0, slice(1, 7)
TEXT, LENGTH, POSITION, SIZE, MARK, TOKEN_START, TOUCHED, FIRST_COLUMN = 8, 9, 10, 11, 12, 13, 14, 15
LEX, KEYWORD_LEX, WORD, SCAN, SERIALIZE, DESERIALIZE, PAYLOAD, VALID, VALID_WIDTH, BUFFER = range(16, 26)
OUT_SYMBOL, OUT_KEYWORD, OUT_START, OUT_END, OUT_TOUCHED, OUT_SCANNER_TOUCHED, OUT_STATE_BYTES = range(26, 33)
WORDS = 40
