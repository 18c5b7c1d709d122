-- The options with their types and defaults. `setup()` checks them and reports unknown names with the nearest known
-- one.

local M = {}

---@class draftline.Keys
---@field accept string|false accept the suggestion
---@field accept_word string|false accept its next word
---@field accept_line string|false accept it up to the end of the line
---@field next string|false show the next suggestion
---@field previous string|false show the previous suggestion
---@field dismiss string|false dismiss the suggestion
---@field request string|false make a manual request
---@field accept_edit string|false in normal mode: jump to the next edit, then apply it
---@field refuse_edit string|false in normal mode: refuse the next edit for good

---@class draftline.Options
---@field cmd string[] the command that starts the language server
---@field filetypes table<string, boolean> file types with suggestions; "*" means all others
---@field keys draftline.Keys mapped only while a suggestion or an edit is on the screen, except `request`
---@field streaming boolean whether text appears while it is generated
---@field read_delay_ms integer time on the screen after which a suggestion counts as shown
---@field rest_delay_ms integer pause of the cursor after which the server learns its position
---@field hide_with_popup_menu boolean whether an open completion menu hides suggestions
---@field settings table<string, any> the server's settings; the server checks their values

---@type draftline.Options
local defaults = {
  cmd = { "python", "-P", "-m", "lsp_server", "--stdio" },
  filetypes = { ["*"] = true },
  keys = {
    accept = "<Tab>",
    accept_word = "<M-Right>",
    accept_line = "<M-C-Right>",
    next = "<M-]>",
    previous = "<M-[>",
    dismiss = "<C-]>",
    request = "<M-\\>",
    accept_edit = "<Tab>",
    refuse_edit = false, -- Escape is pressed out of habit, and a refused edit never comes back
  },
  streaming = true,
  read_delay_ms = 750,
  rest_delay_ms = 150,
  hide_with_popup_menu = true,
  settings = {},
}

M.options = vim.deepcopy(defaults) ---@type draftline.Options
M.is_set_up = false
M.is_enabled = true

-- Return how similar two names are: the share of adjacent letter pairs that they have in common.
local function likeness(a, b)
  local common = 0
  for i = 1, #a - 1 do
    if b:find(a:sub(i, i + 1), 1, true) then
      common = common + 1
    end
  end
  return common / math.max(#a, #b)
end

local function nearest(name, known)
  table.sort(known, function(a, b)
    return likeness(name, a) > likeness(name, b)
  end)
  return known[1]
end

local function check(given, known, where)
  for name, value in pairs(given) do
    local full_name = where .. name
    if known[name] == nil then
      local hint = where .. nearest(tostring(name), vim.tbl_keys(known))
      error(("draftline: there is no option `%s`; did you mean `%s`?"):format(full_name, hint), 0)
    end
    local wanted = where == "keys." and "string" or type(known[name])
    if type(value) ~= wanted and not (where == "keys." and value == false) then
      local message = "draftline: option `%s` must be a %s, not %s"
      error(message:format(full_name, wanted, vim.inspect(value)), 0)
    end
  end
end

-- Return a setting's name in lower case without underscores: the server accepts every spelling of it.
local function folded(name)
  return (name:gsub("[_-]", ""):lower())
end

local function check_settings(given)
  local names = require("draftline.server_settings")
  local known = {}
  for _, name in ipairs(names) do
    known[folded(name)] = true
  end
  for name in pairs(given) do
    if not known[folded(tostring(name))] then
      local message = "draftline: there is no option `settings.%s`; did you mean `settings.%s`?"
      error(message:format(name, nearest(tostring(name), vim.list_slice(names))), 0)
    end
  end
end

--- Check the user's options and keep them.
---@param given draftline.Options?
function M.set(given)
  given = given or {}
  check(given, defaults, "")
  check(given.keys or {}, defaults.keys, "keys.")
  check_settings(given.settings or {})
  M.options = vim.tbl_deep_extend("force", defaults, given)
  M.options.cmd = given.cmd or defaults.cmd -- lists are replaced, never merged
  M.is_set_up = true
end

--- Return whether the user switched a setting of the server off.
---@param setting "next_edit"|"known_names"
---@return boolean
function M.is_off(setting)
  for name, value in pairs(M.options.settings) do
    if folded(tostring(name)) == folded(setting) then
      return value == "off" or value == false
    end
  end
  return false
end

--- Return whether files of a type get suggestions.
---@param filetype string
---@return boolean
function M.wants(filetype)
  local chosen = M.options.filetypes[filetype]
  if chosen == nil then
    chosen = M.options.filetypes["*"] ~= false
  end
  return chosen
end

return M
