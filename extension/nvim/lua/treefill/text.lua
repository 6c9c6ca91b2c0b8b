-- Pure functions on text: what is left of a suggestion, and which piece of it comes next. No buffer, no window.

local M = {}

-- Not `\S`, which takes a line break for a character like any other.
local NEXT_WORD = [[^\_s*\%(\k\+\|\%(\k\@![^ \t\n]\)\+\)]]

--- The ghost text's next word with the blanks before it: a run of word characters, or of others.
function M.first_word(text)
  local word = vim.fn.matchstr(text, NEXT_WORD)
  return word ~= '' and word or text
end

--- The ghost text's next line, without the line break behind it; one that begins with a line break goes on to the next.
function M.first_line(text)
  return text:match('^\n*[^\n]*')
end

--- Whether the characters of `small` come in `large`, in order.
function M.is_subsequence(small, large)
  return M.gaps(small, large) ~= nil
end

--- What of `large` stands before each character of `small`, and behind the last; nil where `small` isn't in it.
--- gaps(')', 'x) + y') is { 'x', ' + y' }: what has to be shown around the bracket that is there already.
function M.gaps(small, large)
  if small ~= '' and vim.endswith(large, small) then
    local before = { large:sub(1, #large - #small) }
    for _ = 1, #M.characters(small) do
      table.insert(before, '')
    end
    return before
  end
  local found, from = {}, 1
  for _, character in ipairs(M.characters(small)) do
    local at = large:find(character, from, true)
    if not at then
      return nil
    end
    table.insert(found, large:sub(from, at - 1))
    from = at + #character
  end
  table.insert(found, large:sub(from))
  return found
end

--- A text's characters; bytes that are none stand alone.
function M.characters(text)
  local found = {}
  for _, start in ipairs(vim.str_utf_pos(text)) do
    table.insert(found, text:sub(start, start + vim.str_utf_end(text, start)))
  end
  return found
end

--- Tabs as the spaces that they take from a column on; virtual text knows no tab stops.
function M.without_tabs(text, column, tabstop)
  local pieces = vim.split(text, '\t', { plain = true })
  local made = pieces[1]
  for number = 2, #pieces do
    local width = column + vim.fn.strdisplaywidth(made)
    made = made .. (' '):rep(tabstop - width % tabstop) .. pieces[number]
  end
  return made
end

return M
