-- The latest status of the server, for the status line and for `:Draftline status`.

local M = {}

---@class draftline.Status
---@field kind "starting"|"ready"|"busy"|"error"
---@field message string?
---@field model string?
---@field device string?
---@field quiet string? why there are no automatic suggestions here; empty if there are

local latest = nil ---@type draftline.Status?
local symbols = { starting = "…", ready = "✓", busy = "⟳", error = "✗" }

--- Keep a status notification and redraw status lines.
---@param params draftline.Status
function M.update(params)
  local before = latest and latest.quiet or ""
  latest = params
  if (params.quiet or "") ~= "" and params.quiet ~= before then
    require("draftline.session").silence()
    require("draftline.next_edit").hide()
  end
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
  if latest and latest.kind == "ready" and (latest.quiet or "") ~= "" then
    return "draftline ⏸"
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
  end, { latest.quiet or "", latest.message or "", latest.model or "", latest.device or "" })
  return ("draftline: %s (%s)"):format(latest.kind, table.concat(details, ", "))
end

return M
