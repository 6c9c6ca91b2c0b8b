-- A suggestion and its place in a buffer: what of it is left after what was typed since, and how it is written there.
--
-- An item replaces a range of the cursor's line. What stands in it left of the cursor is either the item's own beginning
-- or blank (`lead`, for which the item has its own blanks, of `n_skipped` bytes); what stands right of the cursor comes
-- again in the item. All rows and columns count from 0, columns in bytes.

local text_of = require('treefill.text')

local api = vim.api
local M = {}

-- What of the text right of the cursor is yet to come in `rest`, once a piece was written before it.
local function still_needed(right, rest)
  while not text_of.is_subsequence(right, rest) do
    right = right:sub(#text_of.characters(right)[1] + 1)
  end
  return right
end

--- From the server's item, asked for at a place; nil where it doesn't fit there.
function M.new(bufnr, item, encoding, row, column)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  local text = type(item.insertText) == 'table' and item.insertText.value or item.insertText
  local range = item.range
  local first, last = column, column
  if range then
    if range.start.line ~= row or range['end'].line ~= row then
      return nil
    end
    first = vim.str_byteindex(line, encoding, range.start.character, false)
    last = vim.str_byteindex(line, encoding, range['end'].character, false)
  end
  if first > column or last < column then
    return nil
  end
  -- A buffer's lines know no carriage return: a DOS file gets its own when it is written.
  text = text:gsub('\r\n?', '\n')
  local typed = line:sub(first + 1, column)
  local is_begun = vim.startswith(text, typed)
  if not is_begun and typed:find('%S') then
    return nil
  end
  return {
    bufnr = bufnr,
    item = item,
    text = text,
    row = row,
    column = first,
    lead = is_begun and '' or typed,
    n_skipped = is_begun and 0 or #text:match('^[ \t]*'),
    tail = line:sub(last + 1),
  }
end

--- What is left of a suggestion with the cursor at a place: `rest` is to come, over `right`, which stands there already.
--- nil where something else was typed.
function M.locate(suggestion, row, column)
  local bufnr = suggestion.bufnr
  local is_before = row < suggestion.row or (row == suggestion.row and column < suggestion.column)
  if is_before or row - suggestion.row > select(2, suggestion.text:gsub('\n', '')) then
    return nil
  end
  local first_line = api.nvim_buf_get_lines(bufnr, suggestion.row, suggestion.row + 1, false)[1]
  if not first_line or #first_line < suggestion.column then
    return nil
  end
  local typed =
    table.concat(api.nvim_buf_get_text(bufnr, suggestion.row, suggestion.column, row, column, {}), '\n')
  local lead, n_skipped = suggestion.lead, suggestion.n_skipped
  if not vim.startswith(typed, lead) then
    return nil
  end
  local written = typed:sub(#lead + 1)
  local due = suggestion.text:sub(n_skipped + 1)
  local after = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]:sub(column + 1)
  if not vim.startswith(due, written) or not vim.endswith(after, suggestion.tail) then
    return nil
  end
  local rest = due:sub(#written + 1)
  local right = after:sub(1, #after - #suggestion.tail)
  if rest == '' or rest == right or not text_of.is_subsequence(right, rest) then
    return nil
  end
  return { row = row, column = column, written = written, rest = rest, right = right }
end

--- Writes the next `piece` of what is left into the buffer; the place behind it.
function M.write(suggestion, place, piece)
  local is_whole = piece == place.rest
  local still_right = is_whole and '' or still_needed(place.right, place.rest:sub(#piece + 1))
  local row, column, new = place.row, place.column, piece
  if suggestion.lead ~= '' then
    row, column = suggestion.row, suggestion.column
    new = suggestion.text:sub(1, suggestion.n_skipped) .. place.written .. piece
  end
  local lines = vim.split(new, '\n', { plain = true })
  local last_column = place.column + #place.right - #still_right
  api.nvim_buf_set_text(suggestion.bufnr, row, column, place.row, last_column, lines)
  suggestion.lead, suggestion.n_skipped = '', 0
  return row + #lines - 1, #lines == 1 and column + #new or #lines[#lines]
end

--- How much of the item's text stands before a place, in UTF-16 units.
function M.accepted_length(suggestion, rest)
  return vim.str_utfindex(suggestion.text:sub(1, #suggestion.text - #rest), 'utf-16')
end

return M
