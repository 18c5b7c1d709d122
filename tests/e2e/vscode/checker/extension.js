// A tool of the tests: it reports that jsonlib is not defined in one line of each open document, that with the number of
// the cursor's line.

const vscode = require("vscode");

exports.activate = ({ subscriptions }) => {
  const collection = vscode.languages.createDiagnosticCollection("checker");
  const report = ({ selection: { active } }) => {
    collection.clear();
    for (const document of vscode.workspace.textDocuments) {
      if (active.line < document.lineCount) {
        const { range } = document.lineAt(active.line);
        collection.set(document.uri, [new vscode.Diagnostic(range, '"jsonlib" is not defined')]);
      }
    }
  };
  subscriptions.push(collection, vscode.commands.registerTextEditorCommand("checker.report", report));
};
