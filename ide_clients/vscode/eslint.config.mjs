// Strict, typed rules for the extension's sources.

import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "eslint.config.mjs"] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // numbers read well in messages
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // node:test's `test` returns a promise that its runner awaits
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", package: "node:test", name: ["test"] }] }],
    },
  },
);
