-- Starts the language server and receives its notifications.

local config = require("draftline.config")

local M = {}

M.NAME = "draftline"
M.AUTOMATIC, M.INVOKED = 2, 1 -- LSP 3.18, InlineCompletionTriggerKind

--- Return whether Neovim's own inline completion draws the suggestions.
---@return boolean
function M.uses_builtin()
  return not config.is_set_up and vim.lsp.inline_completion ~= nil
end

local function on_attach(client, bufnr)
  if not config.wants(vim.bo[bufnr].filetype) then
    return
  end
  require("draftline.signals").watch(bufnr)
  require("draftline.names").attach(bufnr)
  if M.uses_builtin() then
    require("draftline.builtin").attach(client, bufnr)
  else
    require("draftline.session").attach(bufnr)
    require("draftline.next_edit").attach(bufnr)
  end
end

--- Return an empty folder to start Python in. A `cmd` without `-P` imports modules from its working folder, and a
--- cloned repository must not provide them.
---@return string
function M.working_folder()
  local folder = vim.fs.joinpath(vim.fn.stdpath("state"), "draftline")
  vim.fn.mkdir(folder, "p")
  return folder
end

--- Return the configuration for `vim.lsp.config`. Text streams only to the plugin's own ghost text.
---@return vim.lsp.Config
function M.configuration()
  local options = config.options
  return {
    cmd = options.cmd,
    cmd_cwd = M.working_folder(),
    root_markers = { ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod" },
    init_options = vim.tbl_extend("keep", {
      streaming = not M.uses_builtin() and options.streaming,
      itemRange = M.uses_builtin() and "line" or "replaced",
    }, options.settings),
    settings = { draftline = options.settings },
    -- Neovim 0.11 announces no inline completion. The server would then put suggestions into the completion menu, too.
    capabilities = { textDocument = { inlineCompletion = { dynamicRegistration = false } } },
    -- short, so that a position does not arrive before the text that it belongs to
    flags = { debounce_text_changes = 20 },
    handlers = {
      ["draftline/partialCompletion"] = function(_, params, context)
        require("draftline.session").on_partial(params, context.client_id)
      end,
      ["draftline/partialEdit"] = function(_, params)
        require("draftline.selection").on_partial(params)
      end,
      ["draftline/status"] = function(_, params)
        require("draftline.status").update(params)
      end,
      ["window/showMessageRequest"] = function(_, params)
        return require("draftline.question").ask(params)
      end,
    },
    on_attach = on_attach,
  }
end

--- Return the running client of a buffer, or nil.
---@param bufnr integer
---@return vim.lsp.Client?
function M.client(bufnr)
  return vim.lsp.get_clients({ name = M.NAME, bufnr = bufnr })[1]
end

--- Restart the server for every buffer that it serves, with the same workspaces. Start it if none runs.
function M.restart()
  local roots = {} ---@type table<integer, string|false> buffer -> root of its workspace
  for _, client in ipairs(vim.lsp.get_clients({ name = M.NAME })) do
    for bufnr in pairs(client.attached_buffers) do
      roots[bufnr] = client.root_dir or false
    end
    client:stop()
  end
  if next(roots) == nil then
    return vim.lsp.enable(M.NAME) -- it has crashed
  end
  local function start()
    for bufnr, root in pairs(roots) do
      if vim.api.nvim_buf_is_loaded(bufnr) then
        vim.lsp.start(vim.tbl_extend("force", vim.lsp.config[M.NAME], { root_dir = root or nil }), { bufnr = bufnr })
      end
    end
  end
  local function start_when_stopped(tries_left)
    if #vim.lsp.get_clients({ name = M.NAME }) == 0 or tries_left == 0 then
      return start()
    end
    vim.defer_fn(function()
      start_when_stopped(tries_left - 1)
    end, 50)
  end
  start_when_stopped(100)
end

return M
