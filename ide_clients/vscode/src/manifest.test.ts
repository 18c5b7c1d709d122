// Which settings the server gets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SERVER_SETTINGS } from "./manifest.js";

test("the server gets all of its settings and none of the extension's", () => {
  for (const name of ["enabled", "languagesOff", "trigger", "inComments", "cache", "drafting", "alternatives", "quietMs", "prepareMs", "model"]) {
    assert.ok(SERVER_SETTINGS.includes(name), name);
  }
  for (const name of ["python", "serverCommand", "installFrom", "readDelayMs", "streaming"]) {
    assert.ok(!SERVER_SETTINGS.includes(name), name);
  }
});
