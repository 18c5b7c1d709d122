// The lines that an edit changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changedLines, changedText, linesBeside, linesOf, summaryOf } from "./lines.js";

const CASES: [string, string, number, number, string[]][] = [
  ["a b c", "a x c", 1, 1, ["x"]],
  ["a b c", "a c", 1, 1, []],
  ["a c", "a b c", 1, 0, ["b"]],
  ["a a", "a a a", 2, 0, ["a"]],
  ["a b", "", 0, 2, []],
  ["a b", "a b", 2, 0, []],
  ["a b c d", "a x c y", 1, 3, ["x", "c", "y"]],
];

for (const [before, after, start, removed, added] of CASES) {
  test(`“${before}” becomes “${after}”`, () => {
    const words = (text: string) => text.split(" ").filter(Boolean);
    assert.deepEqual(changedLines(words(before), words(after)), { start, removed, added });
  });
}

test("a last line end begins no line", () => {
  assert.deepEqual(linesOf("a\r\nb\r\n"), ["a", "b"]);
  assert.deepEqual(linesOf("a\n\n"), ["a", ""]);
  assert.deepEqual(linesOf(""), []);
});

test("a changed text has whole words", () => {
  assert.deepEqual(changedText("x = foo_bar(1)", "x = foo_baz(1)"), { start: 4, end: 11, text: "foo_baz" });
  assert.deepEqual(changedText("f(a)", "f(a, b)"), { start: 3, end: 3, text: ", b" });
  assert.deepEqual(changedText("a 😀 b", "a 😁 b"), { start: 2, end: 4, text: "😁" });
});

test("each row has a line beside it, and the last row all further lines", () => {
  assert.deepEqual(linesBeside(["  a", "  b"], 2), ["a", "b"]);
  assert.deepEqual(linesBeside(["a", "b", "  c"], 2), ["a", "b ⏎ c"]);
  assert.deepEqual(linesBeside(["a", "", "b"], 3), ["a", "", "b"]);
  assert.deepEqual(linesBeside(["a"], 3), ["a", ""]);
});

test("the summary of an edit is the first line that it writes, or that it deletes one", () => {
  assert.equal(summaryOf(["  return a"], ["  return b"]), "return b");
  assert.equal(summaryOf(["run()"], ["run()", "  log()"]), "log()");
  assert.equal(summaryOf(["run()"], ["log()", "run()"]), "log()");
  assert.equal(summaryOf(["  run()", ""], [""]), "delete run()");
});
