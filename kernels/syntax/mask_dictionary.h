// The masks that were made before, by what they depend on.
//
// A key is all that a mask depends on, written as bytes: the tops of the parses' stacks as deep as was looked, what the
// scanner remembers, and the open lexeme as its automaton's states (`MaskWalk::key_of`). Keys are found by their
// XXH3-128 and compared whole, so that two that share a hash are never taken for one another. Masks are kept by
// content, because few are distinct, in the smallest of three forms.
//
// The least recently used are dropped where there are too many bytes, and what has a very long key is not kept at all.
// What was written to a file by an earlier process is read from there record by record: a mapped file that another
// program cuts short would end the process. Nobody waits for anybody else's reading: it is done without the lock.

#ifndef TREEFILL_SYNTAX_MASK_DICTIONARY_H_
#define TREEFILL_SYNTAX_MASK_DICTIONARY_H_

#include <atomic>
#include <compare>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace treefill::syntax {

// XXH3's 128 bits of a text.
struct Hash128 {
  uint64_t low;
  uint64_t high;
  auto operator<=>(const Hash128&) const = default;
};
Hash128 hash_of(std::string_view text);

// Some of the tokens of a trie, as ids, or as the ids of those that it has not, or as bits.
class StoredMask {
 public:
  enum class Form : uint32_t { kAllowed, kRefused, kBits };

  // The smallest form. `words` has bits of tokens in `all` only.
  StoredMask(std::span<const uint32_t> words, std::span<const uint32_t> all);
  StoredMask(Form form, std::vector<uint32_t> values) : form_(form), values_(std::move(values)) {}

  // Sets its bits in `words`, in which those of the trie's tokens, which are `all`, are 0.
  void apply(std::span<uint32_t> words, std::span<const uint32_t> all) const;

  // Is it of masks of so many words?
  bool fits(size_t n_words) const;
  Form form() const { return form_; }
  const std::vector<uint32_t>& values() const { return values_; }
  size_t n_bytes() const { return values_.size() * sizeof(uint32_t); }
  bool operator==(const StoredMask&) const = default;

 private:
  Form form_;
  std::vector<uint32_t> values_;
};

// Tokens by their places in a trie's `ids`.
struct TokenRange {
  uint32_t from;
  uint32_t to;
  bool operator==(const TokenRange&) const = default;
};

// What is known at a key.
struct MaskEntry {
  std::shared_ptr<const StoredMask> mask;  // null where too many tokens are open: more of the stack is to be looked at
  std::vector<TokenRange> open;            // tokens that only more of the stack would tell about
  bool is_private = false;                 // the key has something that a user wrote: it never reaches a file
};

class MaskDictionary {
 public:
  // What the masks belong to, besides their keys: engine, grammar and vocabulary. At most so many bytes are kept.
  MaskDictionary(std::string environment, size_t max_bytes, size_t n_words);
  ~MaskDictionary();
  MaskDictionary(const MaskDictionary&) = delete;
  MaskDictionary& operator=(const MaskDictionary&) = delete;

  using Found = std::shared_ptr<const MaskEntry>;

  // Of one key; a mask with a longer one is made whenever it is asked for.
  static constexpr size_t kMaxKeyBytes = 4096;

  Hash128 hash(std::string_view key) const;
  // Null where it is not known.
  Found find(const Hash128& hash, std::string_view key);
  // Returns it as it is kept from then on, or as it is where its key is too long.
  Found add(const Hash128& hash, std::string_view key, MaskEntry entry);
  // False where there was none.
  bool evict(const Hash128& hash);
  // Told by walks: their own small tables had it.
  void count_nearest() { ++n_nearest_; }
  // Changes whenever something may be gone: what was found before is to be found again. No two dictionaries ever have
  // the same.
  uint64_t generation() const { return generation_; }

  // All that is not private, the most recently used first, as `open_file` reads it; at most so many bytes.
  std::string dump(size_t limit) const;
  // Has `find` look there, too. Throws std::runtime_error, with what is wrong, where the file cannot be used.
  void open_file(const std::string& path);

  struct Counts {
    uint64_t n_nearest = 0;  // found by a walk's own table
    uint64_t n_found = 0;    // in memory
    uint64_t n_read = 0;     // in the file
    uint64_t n_missed = 0;
    uint64_t n_dropped = 0;     // for want of room
    uint64_t n_evicted = 0;     // because they were wrong
    uint64_t n_collisions = 0;  // other keys of the same hash
    uint64_t n_damaged = 0;     // records of the file that were not as they had been written
    uint64_t n_too_long = 0;    // keys that were not kept
    uint64_t n_new = 0;         // of what was added, what may be written to a file
    size_t n_entries = 0;
    size_t n_masks = 0;
    size_t n_bytes = 0;
    size_t n_in_file = 0;
  };
  Counts counts() const;
  // The hashes of all keys in memory.
  std::vector<Hash128> hashes() const;

 private:
  struct HashOfHash {
    size_t operator()(const Hash128& hash) const { return hash.low; }
  };
  struct Kept {
    std::shared_ptr<const std::string> key;
    Found entry;
    Hash128 content;  // of its mask
    std::list<Hash128>::iterator place;
  };
  struct Content {
    std::shared_ptr<const StoredMask> mask;
    size_t n_entries;
  };
  class File;

  // Null where it is not in memory; both under the lock.
  Found find_in_memory(const Hash128& hash, std::string_view key);
  Found keep(const Hash128& hash, std::string_view key, MaskEntry entry);
  Found read_from(const std::shared_ptr<const File>& file, const Hash128& hash, std::string_view key);
  void drop(const Hash128& hash);
  void make_room();
  static size_t n_bytes_of(const Kept& kept);

  const std::string environment_;
  const size_t max_bytes_;
  const size_t n_words_;
  mutable std::mutex mutex_;
  std::unordered_map<Hash128, Kept, HashOfHash> kept_;
  std::unordered_map<Hash128, Content, HashOfHash> contents_;
  std::list<Hash128> order_;  // the most recently used first
  std::shared_ptr<const File> file_;
  Counts counts_;
  std::atomic<uint64_t> n_nearest_ = 0;
  std::atomic<uint64_t> generation_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_MASK_DICTIONARY_H_
