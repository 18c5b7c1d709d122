// Inline completions of JupyterLab from a language server of this page, whose documents are the cells and files.
//
// The file is a container of module federation as JupyterLab loads it, so nothing builds it:
// https://webpack.js.org/concepts/module-federation/#dynamic-remote-containers
(() => {
  const ACCEPT = "inline-completer:accept";
  const TRIGGER_KINDS = [1, 2]; // the protocol's numbers of JupyterLab's Invoke and Automatic
  const CELL_KINDS = { code: 2 };
  const MARKUP = 1;

  /** The texts of one request while they grow: `next` is a promise of `{ items, next }`, without `next` at the end. */
  class Growing {
    constructor(place) {
      this.place = place;
      this.next = this.following();
    }

    following() {
      return new Promise((resolve) => (this.resolve = resolve));
    }

    /** Add the items so far, and whether these are all; nothing follows the end. */
    say(items, isLast) {
      const { resolve } = this;
      this.resolve = () => {};
      resolve({ items, next: isLast ? undefined : this.following() });
    }
  }

  /** The connection to the language server, which starts and ends with it; it knows what text the server has. */
  class Server {
    constructor(app, onNotification) {
      const { wsUrl, token, appendToken, WebSocket } = app.serviceManager.serverSettings;
      this.documents = new Map(); // by URI of a file or notebook
      this.waiting = new Map(); // by number of a request
      this.count = 0;
      this.isOpen = true;
      this.onNotification = onNotification;
      const secret = token && appendToken ? `?token=${encodeURIComponent(token)}` : "";
      this.socket = new WebSocket(`${wsUrl}draftline${secret}`);
      this.socket.onmessage = ({ data }) => this.receive(JSON.parse(data));
      this.socket.onclose = () => this.close();
      this.ready = this.start(app.version);
    }

    async start(version) {
      await new Promise((resolve, reject) => Object.assign(this.socket, { onopen: resolve, onerror: reject }));
      await this.request("initialize", {
        processId: null,
        clientInfo: { name: "JupyterLab", version },
        rootUri: rootUri(),
        capabilities: { textDocument: { inlineCompletion: {} }, notebookDocument: { synchronization: {} } },
        initializationOptions: { streaming: true },
      });
      this.notify("initialized", {});
    }

    close() {
      this.isOpen = false;
      this.waiting.forEach((resolve) => resolve(null));
    }

    receive({ id, method, params, result }) {
      if (method === undefined) this.waiting.get(id)?.(result ?? null);
      else if (id === undefined) this.onNotification(method, params);
      else this.send({ id, result: null }); // a question to the user, which nobody answers
    }

    send(message) {
      this.socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
    }

    notify(method, params) {
      this.send({ method, params });
    }

    /** Return the promise of a result; null for an error, and after the end of the connection. */
    request(method, params) {
      const id = ++this.count;
      this.send({ id, method, params });
      return new Promise((resolve) => this.waiting.set(id, resolve)).finally(() => this.waiting.delete(id));
    }

    /** Bring the server's text of a file up to date. */
    syncFile(file) {
      const [known] = this.documents.get(file.uri) ?? [];
      const isChanged = this.number(file, known);
      this.documents.set(file.uri, [file]);
      const contentChanges = [{ text: file.text }];
      if (!known) this.notify("textDocument/didOpen", { textDocument: file });
      else if (isChanged) this.notify("textDocument/didChange", { textDocument: name(file), contentChanges });
    }

    /** Bring the server's texts of a notebook's cells up to date. */
    syncNotebook(uri, cells) {
      const known = this.documents.get(uri);
      const isSame = (one, cell) => one.uri === cell.uri && one.languageId === cell.languageId;
      const before = cells.map((cell) => known?.find((one) => isSame(one, cell)));
      const changed = cells.filter((cell, index) => this.number(cell, before[index]) && before[index]);
      this.documents.set(uri, cells);
      const notebookDocument = { uri, notebookType: "jupyter-notebook", version: ++this.count };
      const listed = cells.map((cell) => ({ kind: cell.kind, document: cell.uri }));
      if (!known) {
        Object.assign(notebookDocument, { cells: listed });
        this.notify("notebookDocument/didOpen", { notebookDocument, cellTextDocuments: cells });
        return;
      }
      const change = { textContent: changed.map((cell) => ({ document: name(cell), changes: [{ text: cell.text }] })) };
      if (known.length !== cells.length || known.some((one, index) => one !== before[index])) {
        const array = { start: 0, deleteCount: known.length, cells: listed };
        const didOpen = cells.filter((_, index) => !before[index]);
        change.structure = { array, didOpen, didClose: known.filter((one) => !before.includes(one)).map(name) };
      }
      if (changed.length || change.structure) {
        this.notify("notebookDocument/didChange", { notebookDocument, change: { cells: change } });
      }
    }

    /** Give a document the number of its text, and return whether that differs from the known one's. */
    number(document, known) {
      const isSame = known?.text === document.text;
      document.version = isSame ? known.version : ++this.count;
      return !isSame;
    }

    /** Close a file or notebook. */
    forget(uri) {
      const [first, ...others] = (this.documents.get(uri) ?? []).map(name);
      this.documents.delete(uri);
      if (first?.uri === uri) this.notify("textDocument/didClose", { textDocument: first });
      else if (first) {
        this.notify("notebookDocument/didClose", { notebookDocument: { uri }, cellTextDocuments: [first, ...others] });
      }
    }
  }

  class Provider {
    name = "draftline";
    identifier = "draftline";
    schema = { default: { autoFillInMiddle: true, timeout: 30000 } };
    growing = new Growing();
    rests = new Map(); // by token: the promise of what follows the first items
    uris = new WeakMap(); // by widget
    offered = [];

    constructor(app) {
      this.app = app;
      app.commands.commandExecuted.connect((_, { id }) => id === ACCEPT && this.accepted());
    }

    /** Return the items of a request. An automatic one gets the first text that there is, and `stream` the rest. */
    async fetch(_request, { widget, editor, triggerKind }) {
      const server = await this.connected();
      const document = widget.context && this.sync(server, widget, editor);
      if (!document) return { items: [] };
      const { line, column: character } = editor.getCursorPosition();
      const params = { textDocument: name(document), position: { line, character } };
      const growing = new Growing(placeOf({ ...document, position: params.position }));
      this.growing.say([], true); // who types on wants no more of the text before
      this.growing = growing;
      const context = { triggerKind: TRIGGER_KINDS[triggerKind] };
      server.request("textDocument/inlineCompletion", { ...params, context }).then((answer) => {
        const items = answer?.items ?? [];
        growing.say(items.map(({ insertText, command }) => ({ insertText, arguments: command.arguments })), true);
      });
      let { items, next } = await growing.next;
      while (triggerKind === 0 && next) ({ items, next } = await next); // a manual request waits for all items
      Object.assign(this, { editor, offered: items });
      if (!next) return { items };
      const token = `${++server.count}`;
      this.rests = new Map([[token, next]]);
      return { items: [Object.assign(items[0], { isIncomplete: true, token })] };
    }

    async *stream(token) {
      let next = this.rests.get(token);
      while (next) {
        const grown = await next;
        if (grown.items.length) yield { response: grown.items[0] };
        next = grown.next;
      }
    }

    async connected() {
      if (!this.server?.isOpen) this.server = new Server(this.app, (...message) => this.heard(...message));
      await this.server.ready;
      return this.server;
    }

    heard(method, params) {
      if (method !== "draftline/partialCompletion" || placeOf(params) !== this.growing.place) return;
      const items = params.items.map(({ insertText }, index) => ({ insertText, arguments: [params.id, index] }));
      if (items.length) this.growing.say(items, false);
    }

    /** Tell the server that the user accepted the item whose text is now before the cursor. */
    accepted() {
      const { editor } = this;
      const before = editor?.model.sharedModel.getSource().slice(0, editor.getOffsetAt(editor.getCursorPosition()));
      const taken = this.offered.find(({ insertText }) => before?.endsWith(insertText));
      if (!taken || !this.server.isOpen) return;
      this.server.request("workspace/executeCommand", { command: "draftline.accepted", arguments: taken.arguments });
    }

    /** Bring the server's text of a widget up to date; return the editor's document, undefined if it has none. */
    sync(server, widget, editor) {
      const path = this.app.serviceManager.contents.localPath(widget.context.path);
      const uri = `${rootUri().replace(/\/$/, "")}/${path.split("/").map(encodeURIComponent).join("/")}`;
      const before = this.uris.get(widget);
      if (!before) widget.disposed.connect(() => this.server.isOpen && this.server.forget(this.uris.get(widget)));
      else if (before !== uri) server.forget(before);
      this.uris.set(widget, uri);
      if (!widget.model?.cells) {
        const file = { uri, languageId: "plaintext", text: editor.model.sharedModel.getSource() };
        server.syncFile(file);
        return file;
      }
      const languages = { code: widget.model.defaultKernelLanguage, markdown: "markdown" };
      const cells = widget.content.widgets.map(({ model }) => ({
        uri: `jupyter-cell:${new URL(uri).pathname}#${model.id}`,
        kind: CELL_KINDS[model.type] ?? MARKUP,
        languageId: languages[model.type] ?? "plaintext",
        text: model.sharedModel.getSource(),
      }));
      server.syncNotebook(uri, cells);
      return cells[widget.content.widgets.findIndex((cell) => cell.editor === editor)];
    }
  }

  /** Return a document as messages about it name it. */
  function name({ uri, version }) {
    return { uri, version };
  }

  /** Return what tells a cursor in one text from all others. */
  function placeOf({ uri, version, position }) {
    return [uri, version, position.line, position.character].join();
  }

  /** Return the URI of the folder that the server of Jupyter serves. */
  function rootUri() {
    return JSON.parse(document.getElementById("jupyter-config-data").textContent).draftlineRoot;
  }

  let shared;
  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB.draftline = {
    init: (scope) => void (shared = scope),
    get: async () => {
      const [own] = Object.values(shared["@jupyterlab/completer"]); // JupyterLab's own, which it adds first
      const { ICompletionProviderManager } = (await own.get())();
      const plugin = {
        id: "draftline:plugin",
        autoStart: true,
        requires: [ICompletionProviderManager],
        activate: (app, manager) => manager.registerInlineProvider(new Provider(app)),
      };
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
