-- Questions of the server. Neovim's own handler opens a menu while the user types, and a typed digit would answer it.

local M = {}

local function is_normal()
  return vim.api.nvim_get_mode().mode == "n"
end

-- Call a function in normal mode: now, or when the user gets there.
local function in_normal_mode(action)
  if is_normal() then
    return vim.schedule(action)
  end
  vim.notify("draftline has a question. Leave insert mode to answer it.", vim.log.levels.INFO)
  vim.api.nvim_create_autocmd("ModeChanged", {
    pattern = "*:n",
    once = true,
    callback = function()
      vim.schedule(function()
        in_normal_mode(action)
      end)
    end,
  })
end

--- Let the user choose an answer. Call this in a coroutine, as Neovim calls handlers of requests.
---@param params lsp.ShowMessageRequestParams
---@return lsp.MessageActionItem|vim.NIL answer vim.NIL if the user chose none
function M.ask(params)
  local asking = coroutine.running()
  in_normal_mode(function()
    local options = {
      prompt = params.message,
      kind = "draftline",
      format_item = function(action)
        return action.title
      end,
    }
    vim.ui.select(params.actions or {}, options, function(action)
      vim.schedule(function()
        coroutine.resume(asking, action or vim.NIL)
      end)
    end)
  end)
  return coroutine.yield()
end

return M
