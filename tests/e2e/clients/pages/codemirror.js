// CodeMirror with its LSP client. `show` opens a document at an offset; `isShown` and `text` say what there is.
import { autocompletion, completionStatus } from "@codemirror/autocomplete";
import { LSPClient, serverCompletion } from "@codemirror/lsp-client";
import { EditorState } from "@codemirror/state";
import { basicSetup, EditorView } from "codemirror";

const socket = new WebSocket(`ws://${location.host}`);
const handlers = [];
socket.onmessage = (event) => handlers.forEach((handle) => handle(event.data));
await new Promise((resolve) => (socket.onopen = resolve));
const client = new LSPClient({ rootUri: "file:///", timeout: 60_000 }).connect({
  send: (message) => socket.send(message),
  subscribe: (handler) => handlers.push(handler),
  unsubscribe: (handler) => handlers.splice(handlers.indexOf(handler), 1),
});
await client.initializing;

let view = null;
window.show = (uri, language, text, offset) => {
  view?.destroy();
  const extensions = [
    basicSetup,
    autocompletion({ activateOnTyping: false, interactionDelay: 0 }),
    serverCompletion(),
    client.plugin(uri, language),
  ];
  view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: document.body });
  view.dispatch({ selection: { anchor: offset } });
  view.focus();
};
window.isShown = () => completionStatus(view.state) === "active";
window.text = () => view.state.doc.toString();
window.ready = true;
