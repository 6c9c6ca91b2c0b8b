-- `:checkhealth treefill`: from the editor over the program and its server to the keys, in the order in which things can
-- go wrong.

local client = require('treefill.client')
local config = require('treefill.config')
local keys = require('treefill.keys')

local health = vim.health
local M = {}

local function check_neovim()
  local found = vim.version()
  local version = ('%d.%d.%d'):format(found.major, found.minor, found.patch)
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. version)
  else
    health.error('Neovim ' .. version .. ' is too old', 'Install Neovim 0.11 or newer.')
  end
  if config.get().use_builtin then
    if config.uses_builtin() then
      health.ok("use_builtin: Neovim's own ghost text is used (not tested by us)")
    else
      health.warn("use_builtin: this Neovim has no ghost text of its own; the plugin's is used", 'It came with 0.12.')
    end
  end
end

-- The command's own words but the last, `serve`, know the version.
local function version_of(cmd)
  local asking = vim.list_slice(cmd, 1, math.max(1, #cmd - 1))
  table.insert(asking, '--version')
  local is_run, run = pcall(vim.system, asking, { text = true, env = config.get().cmd_env })
  local result = is_run and run:wait(20000)
  return result and result.code == 0 and vim.trim(result.stdout) or nil
end

local function check_program()
  local cmd = config.get().cmd
  local path = vim.fn.exepath(cmd[1])
  if path == '' then
    health.error(
      ('`%s` was not found'):format(cmd[1]),
      'Give its whole path: require("treefill").setup({ cmd = { "/path/to/treefill", "serve" } })'
    )
    return
  end
  health.ok('Program: ' .. path)
  local version = version_of(cmd)
  if version then
    health.ok('Version: ' .. version)
  else
    health.warn('It does not tell its version', ('Run `%s --version` in a terminal.'):format(cmd[1]))
  end
end

local function check_server(bufnr)
  local status = client.status()
  local is_attached = client.of(bufnr) ~= nil
  local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(bufnr), ':~:.')
  if is_attached then
    health.ok('A server is attached to ' .. name)
  else
    health.warn(
      ('No server is attached to the buffer that you came from (%s)'):format(name == '' and 'it has no name' or name),
      'Files with a name are served, unless their type, `vim.b.treefill = false` or `:Treefill disable` says otherwise.'
    )
  end
  if status.kind == 'Normal' then
    health.ok('Status: ' .. status.message)
  elseif status.kind == 'Inactive' then
    health.info('Status: ' .. status.message)
  else
    health.warn('Status: ' .. status.message, '`:Treefill log` opens the log.')
  end
end

local function check_keys(bufnr)
  if vim.g.treefill_no_default_maps then
    health.info('vim.g.treefill_no_default_maps is set: no default keys')
  end
  for _, entry in ipairs(vim.api.nvim_buf_call(bufnr, keys.report)) do
    if vim.fn.hasmapto(entry.plug, 'i') == 1 then
      health.ok(('%s: mapped by you to %s'):format(entry.action, entry.plug))
    elseif entry.owner == 'ours' then
      health.ok(('%s: %s'):format(entry.action, entry.key))
    elseif entry.owner == 'user' then
      local map = entry.map.desc or entry.map.rhs or 'a Lua function'
      health.warn(
        ('%s: %s has another map%s, which was left alone: %s'):format(
          entry.action,
          entry.key,
          entry.map.buffer == 1 and ' in this buffer' or '',
          map
        ),
        ('Map another key: vim.keymap.set("i", "<C-l>", "%s")'):format(entry.plug)
      )
    else
      health.info(('%s: no key'):format(entry.action))
    end
  end
end

--- The buffer that the report was asked for in: the report has taken its place.
local function asked_in()
  local other = vim.fn.bufnr('#')
  if other > 0 and vim.api.nvim_buf_is_valid(other) then
    return other
  end
  return vim.api.nvim_get_current_buf()
end

function M.check()
  local bufnr = asked_in()
  health.start('treefill: editor')
  check_neovim()
  health.start('treefill: program')
  check_program()
  health.start('treefill: server')
  check_server(bufnr)
  health.start('treefill: keys')
  check_keys(bufnr)
end

return M
