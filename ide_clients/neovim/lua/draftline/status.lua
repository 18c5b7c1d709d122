-- The latest status of the server, for the status line and for `:Draftline status`.

local M = {}

local latest = nil ---@type {kind: string, message: string?, model: string?, device: string?}?
local symbols = { starting = "…", ready = "✓", busy = "⟳", error = "✗" }

--- Keep a status notification and redraw status lines.
---@param params {kind: string, message: string?, model: string?, device: string?}
function M.update(params)
  latest = params
  vim.api.nvim_exec_autocmds("User", { pattern = "DraftlineStatus", data = params })
  vim.cmd.redrawstatus()
end

--- Return the latest status, or nil before the first one.
function M.latest()
  return latest
end

--- Return a short text for the status line; empty in a buffer without draftline.
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

--- Return the status as a sentence.
---@return string
function M.sentence()
  if #vim.lsp.get_clients({ name = "draftline" }) == 0 then
    return "draftline: the server does not run; `:checkhealth draftline` says why"
  end
  if not latest then
    return "draftline: the server has started and sent no status yet"
  end
  local details = vim.tbl_filter(function(detail)
    return detail and detail ~= ""
  end, { latest.message or "", latest.model or "", latest.device or "" })
  return ("draftline: %s (%s)"):format(latest.kind, table.concat(details, ", "))
end

return M
