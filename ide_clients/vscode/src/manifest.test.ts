// Which settings the server is told of.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SERVER_SETTINGS } from "./manifest.js";

test("the server is told of every setting of its own and of none of the extension's", () => {
  for (const name of ["enabled", "languagesOff", "cache", "drafting", "alternatives", "quietMs", "prepareMs", "model"]) {
    assert.ok(SERVER_SETTINGS.includes(name), name);
  }
  for (const name of ["languages", "python", "serverCommand", "installFrom", "readDelayMs", "streaming"]) {
    assert.ok(!SERVER_SETTINGS.includes(name), name);
  }
});
