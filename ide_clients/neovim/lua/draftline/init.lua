-- The plugin's public face: `require("draftline").setup{}` and the actions that keys and commands run.

local config = require("draftline.config")

local M = {}

--- Set up ghost text that streams, and start the server for every file it is wanted in.
---@param options draftline.Options?
function M.setup(options)
  config.set(options)
  require("draftline.ghost").define_highlights()
  require("draftline.keys").map_request()
  local server = require("draftline.server")
  vim.lsp.config(server.NAME, server.configuration())
  vim.lsp.enable(server.NAME)
end

-- The text goes in between two undo breaks, so that one undo takes back exactly what was accepted.
local function insert(part)
  if not require("draftline.session").is_visible() then
    return false
  end
  local call = ("<C-g>u<Cmd>lua require('draftline')._insert('%s')<CR><C-g>u"):format(part)
  vim.api.nvim_feedkeys(vim.keycode(call), "ni", false)
  return true
end

local cuts = {
  all = function(text)
    return text
  end,
  word = function(text)
    return require("draftline.offer").first_word(text)
  end,
  line = function(text)
    return require("draftline.offer").first_line(text)
  end,
}

---@private
function M._insert(part)
  require("draftline.session").insert(cuts[part])
end

--- Insert the suggestion. Each of the three returns false where none is shown, so that a mapping can fall back.
---@return boolean
function M.accept()
  return insert("all")
end

--- Insert its next word.
---@return boolean
function M.accept_word()
  return insert("word")
end

--- Insert it up to the end of its first line.
---@return boolean
function M.accept_line()
  return insert("line")
end

--- Show the next suggestion.
function M.next()
  require("draftline.session").cycle(1)
end

--- Show the one before.
function M.previous()
  require("draftline.session").cycle(-1)
end

--- Put the suggestion away.
function M.dismiss()
  require("draftline.session").dismiss()
end

--- Ask for a suggestion now.
function M.request()
  require("draftline.session").request()
end

--- Turn suggestions on or off everywhere.
---@param is_enabled boolean? nil: the other way round
function M.toggle(is_enabled)
  if is_enabled == nil then
    is_enabled = not config.is_enabled
  end
  config.is_enabled = is_enabled
  if not is_enabled then
    M.dismiss()
  end
  vim.cmd.redrawstatus()
end

--- Stop and start the server.
function M.restart()
  require("draftline.server").restart()
end

--- A short text for a status line.
---@return string
function M.status()
  return require("draftline.status").component()
end

return M
