-- Configuration of the language server. `vim.lsp.enable("draftline")` starts it, with or without `setup()`.

return require("draftline.server").configuration()
