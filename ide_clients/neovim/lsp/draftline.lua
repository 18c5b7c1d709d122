-- The language server's configuration: `vim.lsp.enable("draftline")` starts it, with or without `setup()`.

return require("draftline.server").configuration()
