// The settings in package.json. scripts/write_settings.py writes its section "Server" from the server's table.

import manifest from "../package.json";

export const SECTION = "draftline";

const server = manifest.contributes.configuration.find((section) => section.title === "Server");

/** Settings of the language server, without the prefix. All others belong to the extension. */
export const SERVER_SETTINGS = Object.keys(server?.properties ?? {}).map((name) => name.slice(SECTION.length + 1));
