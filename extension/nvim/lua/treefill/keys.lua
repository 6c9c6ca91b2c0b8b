-- Keys: what can be mapped (`<Plug>(treefill-…)`), and the defaults, which take no key from anybody.

local config = require('treefill.config')
local session = require('treefill.session')

local M = {}

local ACTIONS = {
  accept = 'accept',
  ['accept-word'] = 'accept_word',
  ['accept-line'] = 'accept_line',
  dismiss = 'dismiss',
  next = 'next',
  previous = 'previous',
  trigger = 'trigger',
}

-- A key whose action needs ghost text does what it did before where there is none.
local DEFAULTS = {
  { '<Tab>', 'accept', needs_ghost = true },
  { '<C-Right>', 'accept-word', needs_ghost = true },
  { '<C-Down>', 'accept-line', needs_ghost = true },
  { '<C-]>', 'dismiss', needs_ghost = true },
  { '<M-]>', 'next' },
  { '<M-[>', 'previous' },
  { '<M-\\>', 'trigger' },
}

local function plug(action)
  return ('<Plug>(treefill-%s)'):format(action)
end

local function description(action)
  return 'treefill: ' .. action:gsub('-', ' ')
end

-- Neovim's own map of <Tab>, which goes to a snippet's next place. It is nobody's choice, and we go on with it.
local function is_neovims_own(map)
  return vim.startswith(map.desc or '', 'vim.snippet.jump')
end

local function map_of(key)
  return vim.fn.maparg(key, 'i', false, true)
end

-- Where a suggestion begins with an indentation of its own, a <Tab> in the line's indentation means just that.
local function is_indenting()
  local line, column = vim.api.nvim_get_current_line(), vim.api.nvim_win_get_cursor(0)[2]
  if line:sub(1, column):find('%S') then
    return false
  end
  local indentation = (session.visible_text() or ''):match('^[ \t]*')
  return vim.fn.strdisplaywidth(indentation) >= vim.fn.shiftwidth()
end

local function is_for_us(key)
  return session.is_visible() and not (key == '<Tab>' and is_indenting())
end

local function map_default(key, action, needs_ghost, before)
  local ours = ('<Cmd>lua require("treefill").%s()<CR>'):format(ACTIONS[action])
  vim.keymap.set('i', key, function()
    if action == 'accept' and config.uses_builtin() and vim.lsp.inline_completion.get() then
      return ''
    end
    if not needs_ghost or is_for_us(key) then
      return ours
    end
    return before.callback and before.callback() or key
  end, { expr = true, silent = true, desc = description(action) })
end

local function owner_of(key, action)
  local map = map_of(key)
  if vim.tbl_isempty(map) then
    return 'nobody'
  end
  return map.desc == description(action) and 'ours' or is_neovims_own(map) and 'neovim' or 'user'
end

local function set_defaults()
  if vim.g.treefill_no_default_maps then
    return
  end
  for _, default in ipairs(DEFAULTS) do
    local key, action = default[1], default[2]
    local owner = owner_of(key, action)
    local is_free = owner == 'nobody' or owner == 'neovim'
    if is_free and vim.fn.hasmapto(plug(action), 'i') == 0 then
      map_default(key, action, default.needs_ghost, map_of(key))
    end
  end
end

--- Defines what can be mapped now, and the defaults once your configuration has been read.
function M.define()
  for action, name in pairs(ACTIONS) do
    local command = ('<Cmd>lua require("treefill").%s()<CR>'):format(name)
    vim.keymap.set('i', plug(action), command, { silent = true, desc = description(action) })
  end
  if vim.v.vim_did_enter == 1 then
    set_defaults()
  else
    vim.api.nvim_create_autocmd('VimEnter', { once = true, callback = set_defaults })
  end
end

--- Each default key: its action, whose it is (`ours`, `user`, `neovim` or `nobody`), and the map itself.
--- Asked in the current buffer.
function M.report()
  return vim.tbl_map(function(default)
    local key, action = default[1], default[2]
    return { key = key, action = action, owner = owner_of(key, action), map = map_of(key), plug = plug(action) }
  end, DEFAULTS)
end

return M
