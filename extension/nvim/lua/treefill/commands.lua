-- `:Treefill`, and the buffer in which `:Treefill explain` shows how the last answer came about.

local api = vim.api
local M = {}

-- A value of the explanation as lines: texts of several lines are set apart, the rest is on one.
local function lines_of(name, value)
  if type(value) ~= 'string' then
    local shown = vim.inspect(value)
    return vim.split(name .. ': ' .. shown, '\n', { plain = true })
  end
  if not value:find('\n') then
    return { name .. ': ' .. value }
  end
  return vim.list_extend({ name .. ':' }, vim.split(value:gsub('\r', ''), '\n', { plain = true }))
end

-- The document's own text stands in its window.
local function report(explanation)
  local has_sentence = (explanation.sentence or '') ~= ''
  local lines = { has_sentence and explanation.sentence or 'Something was suggested.', '' }
  for name, value in vim.spairs(explanation) do
    if name ~= 'sentence' and name ~= 'text' then
      vim.list_extend(lines, lines_of(name, value))
    end
  end
  return lines
end

local function open_scratch(lines)
  local bufnr = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = 'treefill-explain'
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, desc = 'Close' })
  vim.cmd.split()
  api.nvim_win_set_buf(0, bufnr)
end

local function explain()
  local bufnr = api.nvim_get_current_buf()
  local client = require('treefill.client').of(bufnr)
  if not client then
    vim.notify('treefill: no server is attached to this buffer; `:checkhealth treefill` says why.', vim.log.levels.WARN)
    return
  end
  local params = { command = 'treefill.explain', arguments = { vim.uri_from_bufnr(bufnr) } }
  client:request('workspace/executeCommand', params, function(err, result)
    if err then
      vim.notify('treefill: ' .. err.message, vim.log.levels.WARN)
      return
    end
    open_scratch(report(result))
  end, bufnr)
end

local function say_status()
  local status = require('treefill').status()
  vim.notify(('treefill: %s%s'):format(status.message, status.busy and ' …' or ''))
end

local function front_door(name)
  return function()
    require('treefill')[name]()
  end
end

local COMMANDS = {
  status = say_status,
  enable = front_door('enable'),
  disable = front_door('disable'),
  toggle = front_door('toggle'),
  restart = front_door('restart'),
  explain = explain,
  log = function()
    vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.get_log_path()))
    vim.cmd.normal({ 'G', bang = true })
  end,
}

local function run(call)
  local name = call.args == '' and 'status' or call.args
  if not COMMANDS[name] then
    local names = table.concat(vim.fn.sort(vim.tbl_keys(COMMANDS)), ', ')
    vim.notify(('treefill: there is no :Treefill %s, but %s.'):format(name, names), vim.log.levels.WARN)
    return
  end
  COMMANDS[name]()
end

local function complete(begun)
  return vim.tbl_filter(function(name)
    return vim.startswith(name, begun)
  end, vim.fn.sort(vim.tbl_keys(COMMANDS)))
end

--- Defines the command.
function M.define()
  api.nvim_create_user_command('Treefill', run, { nargs = '?', complete = complete, desc = 'treefill' })
end

return M
