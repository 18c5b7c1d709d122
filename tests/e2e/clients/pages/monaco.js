// Monaco with its own LSP client. `show` opens a document at an offset; `isShown` and `text` say what there is.
// It has no other providers: Monaco asks a language's own ones first, and no other one where they have an item.
import * as monaco from "monaco-editor/editor/editor.api.js";
import { MonacoLspClient, WebSocketTransport } from "./node_modules/monaco-editor/esm/external/monaco-lsp-client/out/index.js";

self.MonacoEnvironment = { getWorker: () => new Worker("editor.worker.js") };
for (const id of ["python", "javascript", "c", "java", "css"]) monaco.languages.register({ id });
new MonacoLspClient(await WebSocketTransport.connectTo({ address: `ws://${location.host}` }));

const parent = document.createElement("div");
parent.style.cssText = "width: 900px; height: 500px";
document.body.append(parent);
const editor = monaco.editor.create(parent, { model: null, wordBasedSuggestions: "off", quickSuggestions: false });
window.show = (uri, language, text, offset) => {
  editor.getModel()?.dispose();
  const model = monaco.editor.createModel(text, language, monaco.Uri.parse(uri));
  editor.setModel(model);
  editor.setPosition(model.getPositionAt(offset));
  editor.focus();
};
window.isShown = () => Boolean(document.querySelector(".suggest-widget.visible .monaco-list-row"));
window.text = () => editor.getModel().getValue(monaco.editor.EndOfLinePreference.LF);
window.ready = true;
