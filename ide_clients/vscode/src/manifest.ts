// What package.json says about the settings. Its section "Server" is written from the server's own table.

import manifest from "../package.json";

export const SECTION = "draftline";

const server = manifest.contributes.configuration.find((section) => section.title === "Server");

/** The settings that the language server reads, without the prefix; all others are the extension's own. */
export const SERVER_SETTINGS = Object.keys(server?.properties ?? {}).map((name) => name.slice(SECTION.length + 1));
