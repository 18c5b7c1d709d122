// The names of other servers: where they are asked for, and which of them count.

import assert from "node:assert/strict";
import { test } from "node:test";
import { headOf, isPlace, namesOf } from "./names.js";

test("a name begins after a dot, an arrow, two colons, and in an import", () => {
  for (const start of ["order.", "order.to", "f(x)?.to", "items[0].", "p->", "std::ve", "import ", "from a.b import (c, d"]) {
    assert.ok(isPlace(headOf(start)), start);
  }
  for (const start of ["", "x = ", "f(", "to", "import { ", "from a import b as (c) ", "a ... "]) {
    assert.ok(!isPlace(headOf(start)), start);
  }
});

test("a name that is begun is no part of the head", () => {
  assert.equal(headOf("x = order.größe$1"), "x = order.");
  assert.equal(headOf("order."), "order.");
});

test("a word of any length is read once", () => {
  assert.equal(headOf(`${"x".repeat(1_000_000)}(order`), `${"x".repeat(1_000_000)}(`);
});

test("the names are what completions insert, up to their arguments", () => {
  const completions = [
    { label: "zebra", kind: 1 },
    { label: { label: "zoo" }, insertText: { value: "zoo($0)" }, kind: 2 },
    { label: ".zebra" },
    { label: "a word", kind: 0 },
    { label: "for", insertText: "for x in y", kind: 14 },
    { label: '"key"', kind: 4 },
  ];
  assert.deepEqual(namesOf(completions), ["zebra", "zoo"]);
});

test("a list with keywords says nothing about a member", () => {
  assert.deepEqual(namesOf([{ label: "zebra", kind: 1 }, { label: "if", kind: 13 }]), []);
});
