-- What the server last said about itself, for the status line and for `:Draftline status`.

local M = {}

local latest = nil ---@type {kind: string, message: string?, model: string?, device: string?}?
local symbols = { starting = "…", ready = "✓", busy = "⟳", error = "✗" }

--- Keep a status notification and let status lines know.
---@param params {kind: string, message: string?, model: string?, device: string?}
function M.update(params)
  latest = params
  vim.api.nvim_exec_autocmds("User", { pattern = "DraftlineStatus", data = params })
  vim.cmd.redrawstatus()
end

--- The newest status, nil before the server said anything.
function M.latest()
  return latest
end

--- A short text for a status line; empty where draftline is not at work.
---@return string
function M.component()
  local client = require("draftline.server").client(0)
  if not client then
    return ""
  end
  if not require("draftline.config").is_enabled then
    return "draftline off"
  end
  return "draftline " .. symbols[latest and latest.kind or "starting"]
end

--- One sentence for a person.
---@return string
function M.sentence()
  if #vim.lsp.get_clients({ name = "draftline" }) == 0 then
    return "draftline: the server is not running; `:checkhealth draftline` says why"
  end
  if not latest then
    return "draftline: the server has started and said nothing yet"
  end
  local details = vim.tbl_filter(function(detail)
    return detail and detail ~= ""
  end, { latest.message or "", latest.model or "", latest.device or "" })
  return ("draftline: %s (%s)"):format(latest.kind, table.concat(details, ", "))
end

return M
