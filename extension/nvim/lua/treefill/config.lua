-- Options and their defaults. They come from `vim.g.treefill`, over which lies what `setup` is given.

local M = {}

local DEFAULTS = {
  -- The server's command; its first word is a program on $PATH or a whole path.
  cmd = { 'treefill', 'serve' },
  -- Variables for the server's environment.
  cmd_env = {},
  -- Settings of the server (`treefill settings` lists them), such as `{ max_lines = 6 }`.
  settings = {},
  -- `{ markdown = false }` switches a file type off; `{ ['*'] = false, python = true }` all others.
  filetypes = {},
  -- The folder that has one of these is the workspace.
  root_markers = { '.git' },
  -- How long to wait after an edit. The server takes care of quick typists by itself.
  debounce_ms = 30,
  -- Neovim's own ghost text (0.12 and newer) instead of the plugin's.
  use_builtin = false,
}

local TYPES = {
  cmd = 'table',
  cmd_env = 'table',
  settings = 'table',
  filetypes = 'table',
  root_markers = 'table',
  debounce_ms = 'number',
  use_builtin = 'boolean',
}

-- Nobody writes code in these. A filetype that is named in the options is asked for all the same.
local NEVER = { gitrebase = true, help = true, checkhealth = true, qf = true }

local given = {}

--- Checks options and lays them over those that were given before.
function M.set(options)
  options = options or {}
  vim.validate('options', options, 'table')
  for name, value in pairs(options) do
    if not TYPES[name] then
      error(('treefill: there is no option %q; :help treefill-options lists them'):format(name), 0)
    end
    vim.validate('treefill: ' .. name, value, TYPES[name])
  end
  given = vim.tbl_extend('force', given, options)
end

--- The options as they stand.
function M.get()
  local from_variable = type(vim.g.treefill) == 'table' and vim.g.treefill or {}
  return vim.tbl_extend('force', DEFAULTS, from_variable, given)
end

--- Whether suggestions are wanted in files of a type.
function M.has_filetype(filetype)
  local filetypes = M.get().filetypes
  if filetypes[filetype] ~= nil then
    return filetypes[filetype]
  end
  return not NEVER[filetype] and filetypes['*'] ~= false
end

--- Whether Neovim's own ghost text is wanted, and is there.
function M.uses_builtin()
  return M.get().use_builtin and vim.lsp.inline_completion ~= nil
end

return M
