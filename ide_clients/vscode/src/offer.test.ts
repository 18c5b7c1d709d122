// What remains of an offer, without an editor.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Offer,
  type Origin,
  type Position,
  answers,
  isSameOffer,
  isTyping,
  lastLineTyped,
  readOffer,
  remaindersAfter,
  remaindersOf,
} from "./offer.js";

function source(text: string) {
  const lines = text.split("\n");
  return { lineCount: lines.length, lineAt: (line: number) => ({ text: lines[line] ?? "" }) };
}

function positionOf(marked: string): Position {
  const lines = marked.slice(0, marked.indexOf("|")).split("\n");
  return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 };
}

/** Return the offer of `text` at the bar in `then`. */
function offerAt(then: string, text: string, replaced = 0, done = true): Offer {
  const position = positionOf(then);
  const [head = "", tail = ""] = (then.split("\n").at(position.line) ?? "").split("|");
  const range = { start: position, end: { ...position, character: position.character + replaced } };
  return readOffer([{ insertText: text, range }], { uri: "u", version: 1, position, head, tail }, 1, done, "id") as Offer;
}

/** Return what remains at the bar in `now` of `text`, which was suggested at the bar in `then`. */
function remainderAt(now: string, then: string, text: string, replaced = 0, done = true) {
  const remainder = remaindersOf(offerAt(then, text, replaced, done), source(now.replace("|", "")), positionOf(now))[0];
  return remainder && [remainder.text, remainder.replaced];
}

test("typing a suggestion narrows it", () => {
  assert.deepEqual(remainderAt("x = |", "x = |", "foo(bar)"), ["foo(bar)", 0]);
  assert.deepEqual(remainderAt("x = fo|", "x = |", "foo(bar)"), ["o(bar)", 0]);
  assert.deepEqual(remainderAt("x = f(\n  b|", "x = |", "f(\n  bar)"), ["ar)", 0]);
  assert.deepEqual(remainderAt("x = 😀|", "x = |", "😀ü"), ["ü", 0]);
});

test("typing something else leaves no remainder", () => {
  assert.equal(remainderAt("x = g|", "x = |", "foo"), undefined);
  assert.equal(remainderAt("y = f|", "x = |", "foo"), undefined);
  assert.equal(remainderAt("x =|", "x = |", "foo"), undefined);
  assert.equal(remainderAt("x = f| + 1", "x = |", "foo"), undefined);
});

test("closers that the editor added are replaced", () => {
  assert.deepEqual(remainderAt("x = f(|)", "x = |", "f(1)"), ["1)", 1]);
  assert.deepEqual(remainderAt("f(1|)", "f(|)", "1, 2)", 1), [", 2)", 1]);
});

test("a closer that the editor added stays behind a suggestion that does not contain it", () => {
  assert.deepEqual(remainderAt("if (|)", "if |", "(order.isClosed"), ["order.isClosed", 0]);
  assert.deepEqual(remainderAt('f("|")', "f|", '("not found'), ["not found", 0]);
  assert.deepEqual(remainderAt('f("|")', "f|", '("a"'), ['a"', 1]);
  assert.deepEqual(remainderAt("f(g(|))", "f|", "(g(x)"), ["x)", 1]);
  assert.deepEqual(remainderAt("f(g(|)))", "f|)", "(g(x)))", 1), ["x)))", 3]);
});

test("a closer of the suggestion can be typed over", () => {
  assert.deepEqual(remainderAt("f(x)|", "f(|)", "x) + 1", 1), [" + 1", 0]);
  assert.deepEqual(remainderAt("g(f(x)|)", "g(f(|))", "x)) + 1", 2), [") + 1", 1]);
  assert.equal(remainderAt("f(x)|", "f(|)", "x) + 1"), undefined); // it does not replace the closer
  assert.equal(remainderAt("f(\n  g(x)|\n)", "f(|)", "\n  g(x)\n)", 1), undefined); // it is on another line now
});

test("a quote can be typed over before the editor closes a bracket", () => {
  assert.deepEqual(remainderAt('f("?", (b|))', 'f("|")', '?", (book.title))', 2), ["ook.title))", 2]);
  assert.deepEqual(remainderAt('f("?", (b|))', 'f("|")', '?", (book', 1), ["ook", 0]);
  assert.equal(remainderAt('f("?(|))', 'f("|")', '?(b)")', 2), undefined); // the quote is gone, but was not typed
});

test("a change keeps the suggestion if it fits one of the likely cursors", () => {
  const after = (now: string, then: string, text: string, change: string, replaced = 0) => {
    const start = positionOf(then);
    const [first] = remaindersAfter(offerAt(then, text, replaced), source(now), { range: { start, end: start }, text: change });
    return first && [first.typed, first.text, first.replaced];
  };
  assert.deepEqual(after("print()", "print|", "(x)", "()"), ["(", "x)", 1]); // the editor closed the bracket
  assert.deepEqual(after("print(x)", "print(x|)", ") + 1", ")", 1), [")", " + 1", 0]);
  assert.deepEqual(after("if x:\n    ", "if x:|", "\n    return", "\n    "), ["\n    ", "return", 0]);
  assert.equal(after("print[]", "print|", "(x)", "[]"), undefined);
});

test("indentation and an added closer are typing, words are not", () => {
  for (const text of ["a", "\n    ", "\r\n\t", "    ", "()", '""', ""]) {
    assert.ok(isTyping(text), text);
  }
  for (const text of ["foo", "(x", "\n    return", " +", "))"]) {
    assert.ok(!isTyping(text), text);
  }
});

test("typing ahead of growing text keeps the suggestion", () => {
  assert.deepEqual(remainderAt("x = foo|", "x = |", "fo", 0, false), ["", 0]);
  assert.equal(remainderAt("x = foo|", "x = |", "fo", 0, true), undefined);
});

test("text that only becomes final is the same offer, the same text of another completion is not", () => {
  const origin = { uri: "u", version: 1, position: { line: 0, character: 0 }, head: "", tail: "" };
  const offerOf = (id: string, done: boolean, ...texts: string[]) =>
    readOffer(texts.map((insertText) => ({ insertText })), origin, 1, done, id) as Offer;
  assert.ok(isSameOffer(offerOf("a", true, "foo"), offerOf("a", false, "foo")));
  assert.ok(!isSameOffer(offerOf("a", true, "foo"), offerOf("b", true, "foo")));
  assert.ok(!isSameOffer(offerOf("a", true, "foo", "bar"), offerOf("a", true, "foo")));
  assert.ok(!isSameOffer(offerOf("a", true, "foo"), undefined));
});

test("an item that rewrites text before the cursor is not shown", () => {
  const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 3 } };
  const origin = { uri: "u", version: 1, position: { line: 0, character: 3 }, head: "foo", tail: "" };
  assert.equal(readOffer([{ insertText: "bar", range }], origin, 1, true), undefined);
  assert.equal(readOffer([{ insertText: "food", range }], origin, 1, true)?.items[0]?.text, "d");
});

test("text for an older version of the document is not drawn", () => {
  const origin: Origin = { uri: "u", version: 7, position: { line: 2, character: 4 }, head: "x = ", tail: "" };
  const partial = { id: "a", uri: "u", version: 7, position: { line: 2, character: 4 }, items: [], done: false };
  assert.ok(answers(partial, origin));
  assert.ok(!answers({ ...partial, version: 5 }, origin)); // typed and deleted again: same position, other version
  assert.ok(!answers({ ...partial, uri: "v" }, origin));
  assert.ok(!answers({ ...partial, position: { line: 2, character: 5 } }, origin));
});

test("a change elsewhere in the document ends a request, typing at its position does not", () => {
  const origin: Origin = { uri: "u", version: 7, position: { line: 2, character: 4 }, head: "x = ", tail: "" };
  const change = (from: number, to: number, text: string) =>
    ({ range: { start: { line: from, character: 0 }, end: { line: to, character: 0 } }, text });
  assert.equal(lastLineTyped(origin, 2, [change(2, 2, "f(")]), 2);
  assert.equal(lastLineTyped(origin, 2, [change(2, 2, "\r\n  a")]), 3);
  assert.equal(lastLineTyped(origin, 3, [change(3, 3, "b"), change(2, 3, "")]), 2);
  assert.equal(lastLineTyped(origin, 2, [change(0, 0, "import os\n")]), undefined);
  assert.equal(lastLineTyped(origin, 2, [change(9, 9, "y")]), undefined);
  assert.equal(lastLineTyped(origin, 2, [change(2, 3, "")]), undefined);
});
