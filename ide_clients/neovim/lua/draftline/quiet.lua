-- Commands that the server runs: the quiet controls, and the download of a model; and the setting `trigger`.

local server = require("draftline.server")

local M = {}

M.SCOPES = { "file", "language", "workspace" }

local function tell(sentence, level)
  vim.notify("draftline: " .. sentence, level)
end

--- Run a command of the server about this buffer, and show its sentence.
---@param command "draftline.snooze"|"draftline.resume"|"draftline.switch"|"draftline.getModel"
---@param arguments any[]
function M.run(command, arguments)
  local client = server.client(0)
  if not client then
    return tell("the server does not run in this buffer", vim.log.levels.ERROR)
  end
  local params = { command = command, arguments = arguments }
  client:request("workspace/executeCommand", params, function(err, sentence)
    if err then
      return tell(err.message, vim.log.levels.ERROR)
    end
    tell(sentence ~= "" and sentence or "Automatic suggestions are on.")
  end)
end

--- Make suggestions while the user types, or on request only, until Neovim ends.
---@param trigger "automatic"|"manual"
function M.set_trigger(trigger)
  local changed = { draftline = { trigger = trigger } }
  vim.lsp.config(server.NAME, { settings = changed })
  for _, client in ipairs(vim.lsp.get_clients({ name = server.NAME })) do
    client.settings = vim.tbl_deep_extend("force", client.settings, changed)
    client:notify("workspace/didChangeConfiguration", { settings = client.settings })
  end
end

return M
