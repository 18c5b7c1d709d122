-- The public functions of the plugin: `require("draftline").setup{}` and the actions of keys and commands.

local config = require("draftline.config")

local M = {}

--- Set up ghost text that streams, and start the server for every file.
---@param options draftline.Options?
function M.setup(options)
  config.set(options)
  require("draftline.keys").map_request()
  local server = require("draftline.server")
  vim.lsp.config(server.NAME, server.configuration())
  vim.lsp.enable(server.NAME)
end

-- Insert text between two undo breaks, so that one undo removes exactly what was accepted.
local function insert(part)
  if not require("draftline.session").is_visible() then
    return false
  end
  local call = ("<C-g>u<Cmd>lua require('draftline')._insert('%s')<CR><C-g>u"):format(part)
  vim.api.nvim_feedkeys(vim.keycode(call), "ni", false)
  return true
end

local PARTS = { -- Vim patterns of what is accepted
  all = [[^\_.*]],
  word = [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\|$\)]], -- of the buffer's keyword characters, or of punctuation
  line = [[^\n*[^\n]*]],
}

---@private
function M._insert(part)
  require("draftline.session").insert(PARTS[part])
end

--- Accept the suggestion. Like the next two functions it returns false without a suggestion, so that a mapping can
--- fall back.
---@return boolean
function M.accept()
  return insert("all")
end

--- Accept the next word of the suggestion.
---@return boolean
function M.accept_word()
  return insert("word")
end

--- Accept the suggestion up to the end of its first line.
---@return boolean
function M.accept_line()
  return insert("line")
end

--- Show the next suggestion.
function M.next()
  require("draftline.session").cycle(1)
end

--- Show the previous suggestion.
function M.previous()
  require("draftline.session").cycle(-1)
end

--- Dismiss the suggestion.
function M.dismiss()
  require("draftline.session").dismiss()
end

--- Make a manual request.
function M.request()
  require("draftline.session").request()
end

--- Turn suggestions on or off everywhere.
---@param is_enabled boolean? nil: switch
function M.toggle(is_enabled)
  if is_enabled == nil then
    is_enabled = not config.is_enabled
  end
  config.is_enabled = is_enabled
  if require("draftline.server").uses_builtin() then
    require("draftline.builtin").toggle()
  end
  if not is_enabled then
    require("draftline.requests").cancel()
    require("draftline.session").silence()
    require("draftline.next_edit").hide()
  end
  vim.cmd.redrawstatus()
end

--- Restart the server.
function M.restart()
  require("draftline.server").restart()
end

--- Return a short text for the status line.
---@return string
function M.status()
  return require("draftline.status").component()
end

return M
