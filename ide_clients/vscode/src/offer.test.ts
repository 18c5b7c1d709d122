// What remains of an offer, without an editor.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Position } from "vscode-languageclient";
import {
  type Closer,
  type Offer,
  type Origin,
  answers,
  continuing,
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

const NOWHERE = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };

function accepts(id: string) {
  return { title: "", command: "draftline.accepted", arguments: [id, 0] };
}

/** Return the offer of `text` at the bar in `then`. */
function offerAt(then: string, text: string, closers: readonly Closer[] = [], replaced = 0, done = true): Offer {
  const position = positionOf(then);
  const [head = "", tail = ""] = (then.split("\n").at(position.line) ?? "").split("|");
  const range = { start: position, end: { ...position, character: position.character + replaced } };
  const raw = { insertText: text, range, closers, command: accepts("id") };
  return readOffer([raw], { uri: "u", version: 1, position, head, tail }, 1, done) as Offer;
}

interface NarrowingCase {
  readonly case: string;
  readonly then: string;
  readonly text: string;
  readonly replaced: number;
  readonly closers: readonly Closer[];
  readonly grows?: boolean;
  readonly now: string;
  readonly left: readonly [string, number] | null;
}

const CASES = JSON.parse(readFileSync("../../tests/narrowing_cases.json", "utf8")) as NarrowingCase[];

for (const { case: name, then, text, replaced, closers, grows, now, left } of CASES) {
  test(`what is left of a suggestion: ${name}`, () => {
    const offer = offerAt(then, text, closers, replaced, !grows);
    const [remainder] = remaindersOf(offer, source(now.replace("|", "")), positionOf(now));
    assert.deepEqual(remainder ? [remainder.text, remainder.replaced] : null, left);
  });
}

test("a change keeps the suggestion if it fits one of the likely cursors", () => {
  const after = (now: string, then: string, text: string, change: string, ...closers: Closer[]) => {
    const start = positionOf(then);
    const replaced = closers.filter(({ from }) => from === 0).length;
    const offer = offerAt(then, text, closers, replaced);
    const [first] = remaindersAfter(offer, source(now), { range: { start, end: start }, text: change });
    return first && [first.typed, first.text, first.replaced];
  };
  const paired = { character: ")", from: 1, to: 2 };
  assert.deepEqual(after("print()", "print|", "(x)", "()", paired), ["(", "x)", 1]); // the editor closed the bracket
  assert.deepEqual(after("print(x)", "print(x|)", ") + 1", ")", { character: ")", from: 0, to: 0 }), [")", " + 1", 0]);
  assert.deepEqual(after("if x:\n    ", "if x:|", "\n    return", "\n    "), ["\n    ", "return", 0]);
  assert.equal(after("print[]", "print|", "(x)", "[]", paired), undefined);
  const below = { character: "}", from: 0, to: 6 }; // the editor put it on a line of its own: the server knows what is left
  assert.equal(after("{\n  \n}", "{|}", "\n  a;\n}", "\n  \n", below), undefined);
});

test("indentation and an added closer are typing, words are not", () => {
  for (const text of ["a", "\n    ", "\r\n\t", "    ", "()", '""', ""]) {
    assert.ok(isTyping(text), text);
  }
  for (const text of ["foo", "(x", "\n    return", " +", "))"]) {
    assert.ok(!isTyping(text), text);
  }
});

test("text that only becomes final is the same offer, the same text of another completion is not", () => {
  const origin = { uri: "u", version: 1, position: { line: 0, character: 0 }, head: "", tail: "" };
  const offerOf = (id: string, done: boolean, ...texts: string[]) => {
    const items = texts.map((insertText) => ({ insertText, range: NOWHERE, closers: [], command: accepts(id) }));
    return readOffer(items, origin, 1, done) as Offer;
  };
  assert.ok(isSameOffer(offerOf("a", true, "foo"), offerOf("a", false, "foo")));
  assert.ok(!isSameOffer(offerOf("a", true, "foo"), offerOf("b", true, "foo")));
  assert.ok(!isSameOffer(offerOf("a", true, "foo", "bar"), offerOf("a", true, "foo")));
  assert.ok(!isSameOffer(offerOf("a", true, "foo"), undefined));
});

test("text for an older version of the document is not drawn", () => {
  const origin: Origin = { uri: "u", version: 7, position: { line: 2, character: 4 }, head: "x = ", tail: "" };
  const partial = { uri: "u", version: 7, position: { line: 2, character: 4 }, items: [], done: false };
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

test("only what continues the selected item of the editor's list is shown", () => {
  const [first] = remaindersOf(offerAt("x.na|", "me()"), source("x.na"), { line: 0, character: 4 });
  const shown = (text: string, start: number) => continuing(first ? [first] : [], "x.na", { start, text }).length;
  assert.deepEqual([shown("name", 2), shown("nap", 2), shown("me", 4), shown("other", 2)], [1, 0, 1, 0]);
  assert.equal(continuing(first ? [first] : [], "x.na", undefined).length, 1);
});
