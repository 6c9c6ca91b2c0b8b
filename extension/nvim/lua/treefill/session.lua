-- What happens between a key and ghost text: when the server is asked, which answers still count, what stays on screen
-- while you type along, and what taking a suggestion does. One suggestion is on screen at a time, in the current buffer.

local client_of = require('treefill.client')
local config = require('treefill.config')
local ghost = require('treefill.ghost')
local suggestion_of = require('treefill.suggestion')
local text_of = require('treefill.text')

local api = vim.api
local M = {}

local INVOKED, AUTOMATIC = 1, 2

-- What is shown: all that were suggested, which of them, and where it stands.
local shown = nil
-- The request that is waited for: its client and id.
local waiting = nil
-- Counts requests; an answer to an earlier one is of no interest.
local n_asked = 0
local timer = assert(vim.uv.new_timer())
-- Where the last event found the cursor, and in which text: one key causes several events.
local seen = nil

local function here()
  local row, column = unpack(api.nvim_win_get_cursor(0))
  return {
    bufnr = api.nvim_get_current_buf(),
    tick = api.nvim_buf_get_changedtick(0),
    row = row - 1,
    column = column,
  }
end

local function is_typing()
  return api.nvim_get_mode().mode:sub(1, 1) == 'i' and vim.fn.pumvisible() == 0 and vim.fn.reg_executing() == ''
end

local function forget_request()
  timer:stop()
  n_asked = n_asked + 1
  if waiting then
    waiting.client:cancel_request(waiting.id)
    waiting = nil
  end
end

local function clear()
  if shown then
    ghost.clear(shown.bufnr)
    shown = nil
  end
end

local function current()
  return shown and shown.suggestions[shown.number]
end

local function tell_shown(suggestion)
  if not suggestion.is_told then
    suggestion.is_told = true
    client_of.notify(suggestion.bufnr, 'textDocument/didShowCompletion', { item = suggestion.item })
  end
end

-- Draws the current suggestion for the cursor where it is now; clears it where something else was typed.
local function refresh()
  local now = here()
  local is_here = shown and shown.bufnr == now.bufnr
  local place = is_here and suggestion_of.locate(current(), now.row, now.column)
  if not place then
    clear()
    return nil
  end
  shown.place = place
  ghost.draw(current(), place)
  tell_shown(current())
  return place
end

-- An answer with what is on screen already, as while you type along, is no new suggestion.
local function is_told_already(place)
  local before = shown and shown.place
  return before and current().is_told and before.rest == place.rest and before.right == place.right
end

local function show(suggestions, asked)
  local place = suggestions[1] and suggestion_of.locate(suggestions[1], asked.row, asked.column)
  if not place then
    clear()
    return
  end
  suggestions[1].is_told = is_told_already(place)
  shown = { bufnr = asked.bufnr, suggestions = suggestions, number = 1, place = place }
  refresh()
end

local function suggestions_from(result, asked, encoding)
  local found = {}
  local items = type(result) == 'table' and (result.items or result) or {}
  for _, item in ipairs(items) do
    local suggestion = suggestion_of.new(asked.bufnr, item, encoding, asked.row, asked.column)
    if suggestion then
      table.insert(found, suggestion)
    end
  end
  return found
end

-- Asks the server for the cursor's place; `take` gets the suggestions, unless anything has changed meanwhile.
local function ask(trigger_kind, take)
  forget_request()
  local asked = here()
  local client = client_of.of(asked.bufnr)
  if not client or not is_typing() then
    return
  end
  client_of.bring_in_step(client, asked.bufnr)
  local number = n_asked
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = trigger_kind }
  local was_sent, id = client:request('textDocument/inlineCompletion', params, function(err, result)
    if number ~= n_asked then
      return
    end
    waiting = nil
    if not is_typing() or not vim.deep_equal(asked, here()) then
      return
    end
    take(err and {} or suggestions_from(result, asked, client.offset_encoding), asked)
  end, asked.bufnr)
  waiting = was_sent and { client = client, id = id } or nil
end

local function ask_soon()
  forget_request()
  timer:start(
    config.get().debounce_ms,
    0,
    vim.schedule_wrap(function()
      ask(AUTOMATIC, show)
    end)
  )
end

-- Runs what edits the buffer, at once or, where a key map's expression forbids edits, right after it.
local function edit(action)
  local is_done, message = pcall(action)
  if is_done then
    return
  end
  if not tostring(message):find('E565') then
    error(message, 0)
  end
  vim.schedule(function()
    if current() then
      action()
    end
  end)
end

-- Closes the undo block, so that what follows is undone by itself.
local function break_undo_before()
  vim.go.undolevels = vim.go.undolevels
end

-- In insert mode only the key tells the editor to save the next typed text for another block.
local function break_undo_after()
  if api.nvim_get_mode().mode:sub(1, 1) == 'i' then
    api.nvim_feedkeys(vim.keycode('<C-g>u'), 'ni', false)
  end
end

local function write(suggestion, place, piece)
  break_undo_before()
  local row, column = suggestion_of.write(suggestion, place, piece)
  api.nvim_win_set_cursor(0, { row + 1, column })
  break_undo_after()
end

local function take_all()
  local suggestion, place = current(), refresh()
  if not place then
    return
  end
  forget_request()
  write(suggestion, place, place.rest)
  client_of.run_command(suggestion.bufnr, suggestion.item.command)
  clear()
end

local function take_piece(next_piece)
  local suggestion, place = current(), refresh()
  if not place then
    return
  end
  local piece = next_piece(place.rest)
  if piece == place.rest then
    take_all()
    return
  end
  forget_request()
  write(suggestion, place, piece)
  client_of.notify(suggestion.bufnr, 'textDocument/didPartiallyAcceptCompletion', {
    item = suggestion.item,
    acceptedLength = suggestion_of.accepted_length(suggestion, place.rest:sub(#piece + 1)),
  })
  refresh()
end

--- The text or the cursor has changed in insert mode, or insert mode has begun.
function M.follow()
  local now = here()
  if vim.deep_equal(now, seen) then
    return
  end
  local has_moved_only = seen and seen.bufnr == now.bufnr and seen.tick == now.tick
  seen = now
  if not is_typing() then
    M.stop()
    return
  end
  if has_moved_only then
    clear()
  elseif shown then
    refresh()
  end
  ask_soon()
end

--- Nothing more is on screen, and nothing is waited for.
function M.stop()
  seen = nil
  forget_request()
  clear()
end

--- The model has just become ready: who is typing has waited for it.
function M.begin()
  if not shown and is_typing() then
    ask_soon()
  end
end

--- True while ghost text is on screen.
function M.is_visible()
  return shown ~= nil
end

--- True while neither an answer nor the next request is waited for.
function M.is_settled()
  return waiting == nil and not timer:is_active()
end

--- What is left of the ghost text; nil where there is none.
function M.visible_text()
  return shown and shown.place.rest
end

--- Takes all of the ghost text.
function M.accept()
  return shown ~= nil and (edit(take_all) or true)
end

--- Takes its next word.
function M.accept_word()
  return shown ~= nil and (edit(function()
    take_piece(text_of.first_word)
  end) or true)
end

--- Takes its next line.
function M.accept_line()
  return shown ~= nil and (edit(function()
    take_piece(text_of.first_line)
  end) or true)
end

--- Removes it until the next edit.
function M.dismiss()
  local was_visible = shown ~= nil
  forget_request()
  clear()
  return was_visible
end

--- Asks now, as for a person who waits for it.
function M.trigger()
  ask(INVOKED, show)
end

--- Shows another of the suggestions. Automatic requests are answered with one: then more are asked for first.
function M.cycle(step)
  local function turn()
    if shown and #shown.suggestions > 1 then
      shown.number = (shown.number - 1 + step) % #shown.suggestions + 1
      refresh()
    end
  end

  if shown and #shown.suggestions > 1 then
    turn()
    return
  end
  local before = M.visible_text()
  ask(INVOKED, function(suggestions, asked)
    show(suggestions, asked)
    if before and M.visible_text() == before then
      turn()
    end
  end)
end

return M
