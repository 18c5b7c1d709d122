-- One typed table of options, checked at `setup()`; unknown names are reported with the nearest known one.

local M = {}

---@class draftline.Keys
---@field accept string|false insert the whole suggestion
---@field accept_word string|false insert its next word
---@field accept_line string|false insert it up to the line's end
---@field next string|false show the next suggestion
---@field previous string|false show the one before
---@field dismiss string|false put it away
---@field request string|false ask for one now

---@class draftline.Options
---@field cmd string[] the command that starts the language server
---@field filetypes table<string, boolean> where suggestions appear; "*" stands for all that are not named
---@field keys draftline.Keys taken only while a suggestion is shown, but for `request`
---@field streaming boolean whether text appears while it is being generated
---@field read_delay_ms integer how long a suggestion stands before it counts as shown
---@field rest_delay_ms integer how long the cursor rests before the server prepares for it
---@field hide_with_popup_menu boolean whether the completion menu hides suggestions
---@field settings table<string, any> the server's own settings; it checks their values itself

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

-- How alike two names are: the share of neighbouring letter pairs they have in common.
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
    local can_be_off = where == "keys." and value == false
    if type(value) ~= type(known[name]) and not can_be_off then
      local message = "draftline: option `%s` must be a %s, not %s"
      error(message:format(full_name, type(known[name]), vim.inspect(value)), 0)
    end
  end
end

-- The server takes a setting's name in any case, with or without underscores.
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

--- Check and keep the user's options.
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

--- Whether suggestions are wanted in files of a type.
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
