-- `:checkhealth draftline`: finds why there are no suggestions, and says what to do.

local config = require("draftline.config")

local M = {}

local function check_editor()
  vim.health.start("Neovim")
  if vim.fn.has("nvim-0.11") == 0 then
    vim.health.error("draftline needs Neovim 0.11 or newer; this is " .. tostring(vim.version()))
  elseif config.is_set_up then
    vim.health.ok("draftline draws suggestions while they are generated")
  elseif vim.lsp.inline_completion then
    vim.health.ok("Neovim's own inline completion draws suggestions once they are complete")
    vim.health.info('`require("draftline").setup{}` adds streaming, accepting by word and line, and alternatives')
  else
    vim.health.ok("draftline draws suggestions")
  end
  if not vim.lsp.is_enabled or not vim.lsp.is_enabled("draftline") then
    vim.health.error("the language server is not enabled", {
      'call `require("draftline").setup{}`, or `vim.lsp.enable("draftline")`',
    })
  end
end

local function check_command()
  vim.health.start("Language server")
  local command = vim.lsp.config.draftline.cmd
  if type(command) ~= "table" then -- `vim.lsp.rpc.connect`
    return vim.health.ok("`cmd` is a function, which connects to a running server")
  end
  local shown = table.concat(command, " ")
  if vim.fn.executable(command[1]) == 0 then
    return vim.health.error(("`%s` is not an executable program"):format(command[1]), {
      'pass a Python that has draftline: `setup({ cmd = { "/path/to/python", "-P", "-m", "lsp_server", "--stdio" } })`',
    })
  end
  local is_module = vim.list_contains(command, "-m")
  local probe = is_module and { command[1], "-P", "-c", "import lsp_server.__main__" } or { command[1], "--help" }
  local folder = require("draftline.server").working_folder()
  local done = vim.system(probe, { text = true, cwd = folder }):wait(10000)
  if done.code ~= 0 then
    return vim.health.error(("`%s` does not start: %s"):format(shown, vim.trim(done.stderr or "")), {
      "install draftline for this Python, or choose another Python with the option `cmd`",
    })
  end
  vim.health.ok(("`%s` can be started"):format(shown))
end

local function check_client()
  local client = vim.lsp.get_clients({ name = "draftline" })[1]
  if not client then
    return vim.health.warn("the server does not run", { "open a file; if it still does not run, see `:Draftline log`" })
  end
  vim.health.ok(("the server runs as client %d"):format(client.id))
  if not client:supports_method("textDocument/inlineCompletion") then
    vim.health.error("the server has no inline completion; `cmd` may start another program")
  end
  local latest = require("draftline.status").latest()
  if latest and latest.kind == "error" then
    vim.health.error(latest.message or "the engine reports an error", { "run `draftline doctor` in a terminal" })
  else
    vim.health.info(require("draftline.status").sentence())
  end
end

local function check_keys()
  vim.health.start("Keys")
  for action, key in vim.spairs(config.options.keys) do
    local mapped = key and vim.fn.maparg(key, vim.endswith(action, "_edit") and "n" or "i", false, true) or {}
    local is_ours = vim.startswith(mapped.desc or "", "draftline")
    if key and mapped.lhs and not is_ours then
      local message = "%s has another mapping. While a suggestion or an edit is on the screen it means: %s"
      vim.health.info(message:format(key, action))
    elseif key then
      vim.health.ok(("%s: %s"):format(key, action))
    end
  end
end

--- Run every check.
function M.check()
  check_editor()
  check_command()
  check_client()
  if config.is_set_up then
    check_keys()
  end
end

return M
