-- Draws what is left of a suggestion, by extmarks: the first line within the cursor's line, the others below it.
-- Nothing here changes a buffer's text.

local text_of = require('treefill.text')

local api = vim.api
local GROUP = 'TreefillGhost'
local namespace = api.nvim_create_namespace('treefill')
local M = {}

local function width(text)
  return vim.fn.strdisplaywidth(text)
end

local function put(bufnr, row, column, mark)
  mark.hl_mode = 'combine'
  mark.priority = 1000
  mark.strict = false
  api.nvim_buf_set_extmark(bufnr, namespace, row, column, mark)
end

-- The first line where text stands right of the cursor that comes again: it is drawn around that text.
local function draw_around(bufnr, place, expand)
  local column = place.column
  local characters = text_of.characters(place.right)
  for number, gap in ipairs(text_of.gaps(place.right, place.rest)) do
    if gap ~= '' then
      put(bufnr, place.row, column, { virt_text = { { expand(gap), GROUP } }, virt_text_pos = 'inline' })
    end
    column = column + #(characters[number] or '')
  end
end

-- Over the text that stands there, which comes again or moves down.
local function draw_over(bufnr, row, column, text, covered)
  local padding = (' '):rep(width(covered) - width(text))
  put(bufnr, row, column, { virt_text = { { text .. padding, GROUP } }, virt_text_pos = 'overlay' })
end

local function draw_below(bufnr, row, lines, tail, tabstop)
  local below = {}
  for number = 2, #lines do
    table.insert(below, { { text_of.without_tabs(lines[number], 0, tabstop), GROUP } })
  end
  if tail ~= '' then
    table.insert(below[#below], { text_of.without_tabs(tail, 0, tabstop), 'Normal' })
  end
  if #below > 0 then
    put(bufnr, row, 0, { virt_lines = below })
  end
end

--- Links the group to Comment, unless a colour scheme has its own.
function M.define_highlight()
  api.nvim_set_hl(0, GROUP, { link = 'Comment', default = true })
end

--- Shows what is left of a suggestion at a place, and nothing else in that buffer.
function M.draw(suggestion, place)
  local bufnr = suggestion.bufnr
  M.clear(bufnr)
  local tabstop = vim.bo[bufnr].tabstop
  local line = api.nvim_buf_get_lines(bufnr, place.row, place.row + 1, false)[1]
  local before, after = line:sub(1, place.column), line:sub(place.column + 1)
  local lines = vim.split(place.rest, '\n', { plain = true })

  local function expand(text)
    return text_of.without_tabs(text, width(before), tabstop)
  end

  -- The item has other blanks before the cursor than the line: what comes stands further right, or further left.
  local shift = 0
  if suggestion.lead ~= '' and place.row == suggestion.row then
    shift = width(suggestion.text:sub(1, suggestion.n_skipped)) - width(suggestion.lead)
  end

  if shift < 0 and after == '' then
    local own = suggestion.text:sub(1, suggestion.n_skipped) .. place.written .. lines[1]
    local covered = line:sub(suggestion.column + 1)
    draw_over(bufnr, place.row, suggestion.column, text_of.without_tabs(own, 0, tabstop), covered)
  elseif #lines > 1 and after ~= '' then
    draw_over(bufnr, place.row, place.column, expand(lines[1]), after)
  elseif place.right ~= '' then
    draw_around(bufnr, place, expand)
  else
    local first = (' '):rep(shift) .. expand(lines[1])
    if first ~= '' then
      put(bufnr, place.row, place.column, { virt_text = { { first, GROUP } }, virt_text_pos = 'inline' })
    end
  end
  draw_below(bufnr, place.row, lines, #lines > 1 and suggestion.tail or '', tabstop)
end

--- Removes what is shown in a buffer.
function M.clear(bufnr)
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

return M
