#include "syntax/mask_dictionary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "syntax/bytes.h"

#define XXH_INLINE_ALL
#include "third_party/xxhash/xxhash.h"

namespace treefill::syntax {
namespace {

constexpr uint32_t kMagic = 0x32444D54;  // "TMD2"
constexpr size_t kEntryBytes = 160;      // of tables, a guess
constexpr size_t kMaxFileBytes = 256u << 20;
constexpr uint32_t kDeeper = 0xFFFFFFFF;  // in place of a form: there is no mask

// A file is a header, a row for each record in the order of their hashes, the masks, and the records that share them.
struct Header {
  uint32_t magic;
  uint32_t n_records;
  Hash128 environment;
  uint64_t n_bytes;   // of the whole file
  uint64_t checksum;  // of the header up to here and the rows
};
struct Stretch {
  uint64_t offset;
  uint64_t n_bytes;
  uint64_t checksum;
};
struct Row {
  Hash128 hash;
  Stretch record;
};

template <typename T>
void append_all(std::string& to, const std::vector<T>& values) {
  append(to, static_cast<uint32_t>(values.size()));
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Are they ranges of at most so many tokens, one behind the other?
bool are_in_order(const std::vector<TokenRange>& ranges, size_t n_tokens) {
  uint32_t end = 0;
  for (const TokenRange& range : ranges) {
    if (range.from < end || range.to <= range.from || range.to > n_tokens) return false;
    end = range.to;
  }
  return true;
}

// Reads what `append` wrote; throws std::out_of_range past the end.
class Reading {
 public:
  explicit Reading(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T one() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> all() {
    const size_t n = one<uint32_t>();
    if (n > bytes_.size() / sizeof(T)) throw std::out_of_range("more than there is");
    std::vector<T> values(n);
    std::memcpy(values.data(), take(n * sizeof(T)).data(), n * sizeof(T));
    return values;
  }
  std::string_view take(size_t n) {
    if (n > bytes_.size()) throw std::out_of_range("more than there is");
    const std::string_view taken = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return taken;
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// `mask` is where its mask is.
std::string record_of(std::string_view key, const MaskEntry& entry, const Stretch& mask) {
  std::string record;
  append(record, static_cast<uint32_t>(key.size()));
  record += key;
  append_all(record, entry.open);
  append(record, entry.mask ? static_cast<uint32_t>(entry.mask->form()) : kDeeper);
  append(record, mask);
  return record;
}

// Where `bytes` are once they are put behind what begins at `first`.
Stretch put(std::string& behind, size_t first, std::string_view bytes) {
  const Stretch stretch{first + behind.size(), bytes.size(), XXH3_64bits(bytes.data(), bytes.size())};
  behind += bytes;
  return stretch;
}

uint64_t new_generation() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

uint64_t checksum_of(Header header, std::string_view rows) {
  header.checksum = 0;
  std::string bytes;
  append(bytes, header);
  bytes += rows;
  return XXH3_64bits(bytes.data(), bytes.size());
}

void set_bits(std::span<const uint32_t> ids, std::span<uint32_t> words) {
  for (uint32_t id : ids) words[id / 32] |= uint32_t{1} << (id % 32);
}

Hash128 content_hash(const StoredMask& mask) {
  std::string bytes;
  append(bytes, mask.form());
  append_all(bytes, mask.values());
  return hash_of(bytes);
}

}  // namespace

Hash128 hash_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

StoredMask::StoredMask(std::span<const uint32_t> words, std::span<const uint32_t> all) : form_(Form::kBits) {
  std::vector<uint32_t> allowed;
  std::vector<uint32_t> refused;
  for (uint32_t id : all) (words[id / 32] >> (id % 32) & 1 ? allowed : refused).push_back(id);
  if (allowed.size() <= refused.size() && allowed.size() < words.size()) {
    form_ = Form::kAllowed;
    values_ = std::move(allowed);
  } else if (refused.size() < words.size()) {
    form_ = Form::kRefused;
    values_ = std::move(refused);
  } else {
    values_.assign(words.begin(), words.end());
  }
}

bool StoredMask::fits(size_t n_words) const {
  if (form_ == Form::kBits) return values_.size() == n_words;
  return std::all_of(values_.begin(), values_.end(), [&](uint32_t id) { return id / 32 < n_words; });
}

void StoredMask::apply(std::span<uint32_t> words, std::span<const uint32_t> all) const {
  if (form_ == Form::kBits) {
    for (size_t i = 0; i < values_.size(); ++i) words[i] |= values_[i];
  } else if (form_ == Form::kAllowed) {
    set_bits(values_, words);
  } else {
    for (size_t i = 0; i < all.size(); ++i) words[i] |= all[i];
    for (uint32_t id : values_) words[id / 32] &= ~(uint32_t{1} << (id % 32));
  }
}

// What an earlier process has written. Reading it has no place in the file that another reader could move.
class MaskDictionary::File {
 public:
  // Whatever lies there, nobody waits for it.
  File(const std::string& path, const Hash128& environment)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0) throw std::runtime_error("it cannot be opened");
    try {
      read_rows(environment);
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::vector<Row>& rows() const { return rows_; }
  const Row* find(const Hash128& hash) const {
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), hash,
                                      [](const Row& each, const Hash128& sought) { return each.hash < sought; });
    return row != rows_.end() && row->hash == hash ? &*row : nullptr;
  }
  // Throws std::runtime_error or std::out_of_range where it is not as it was written.
  std::pair<std::string, MaskEntry> read(const Row& row) const {
    const std::string bytes = bytes_in(row.record);
    Reading reading(bytes);
    std::string key(reading.take(reading.one<uint32_t>()));
    MaskEntry entry;
    entry.open = reading.all<TokenRange>();
    const auto form = reading.one<uint32_t>();
    if (form != kDeeper) {
      if (form > static_cast<uint32_t>(StoredMask::Form::kBits)) throw std::runtime_error("a record is damaged");
      const std::string values = bytes_in(reading.one<Stretch>());
      entry.mask =
          std::make_shared<const StoredMask>(static_cast<StoredMask::Form>(form), Reading(values).all<uint32_t>());
    }
    return {std::move(key), std::move(entry)};
  }

 private:
  void read_rows(const Hash128& environment) {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) throw std::runtime_error("it cannot be read");
    const auto size = static_cast<uint64_t>(status.st_size);
    if (size < sizeof(Header) || size > kMaxFileBytes) throw std::runtime_error("it has not a dictionary's size");
    const auto header = Reading(bytes_at(0, sizeof(Header))).one<Header>();
    if (header.magic != kMagic) throw std::runtime_error("it is no dictionary of this version");
    if (header.environment != environment) throw std::runtime_error("it is of another grammar, model or version");
    if (header.n_bytes != size || header.n_records > (size - sizeof(Header)) / sizeof(Row))
      throw std::runtime_error("it is cut short");
    const std::string rows = bytes_at(sizeof(Header), header.n_records * sizeof(Row));
    if (checksum_of(header, rows) != header.checksum) throw std::runtime_error("its table is damaged");
    rows_.resize(header.n_records);
    std::memcpy(rows_.data(), rows.data(), rows.size());
    n_bytes_ = size;
  }

  std::string bytes_in(const Stretch& stretch) const {
    if (stretch.offset > n_bytes_ || stretch.n_bytes > n_bytes_ - stretch.offset)
      throw std::runtime_error("a record is damaged");
    std::string bytes = bytes_at(stretch.offset, stretch.n_bytes);
    if (XXH3_64bits(bytes.data(), bytes.size()) != stretch.checksum) throw std::runtime_error("a record is damaged");
    return bytes;
  }

  std::string bytes_at(uint64_t offset, size_t n) const {
    std::string bytes(n, '\0');
    for (size_t done = 0; done < n;) {
      const ssize_t got = ::pread(descriptor_, bytes.data() + done, n - done, static_cast<off_t>(offset + done));
      if (got <= 0) throw std::runtime_error("it cannot be read");
      done += static_cast<size_t>(got);
    }
    return bytes;
  }

  int descriptor_;
  uint64_t n_bytes_ = 0;
  std::vector<Row> rows_;
};

MaskDictionary::MaskDictionary(std::string environment, size_t max_bytes, size_t n_words)
    : environment_(std::move(environment)), max_bytes_(max_bytes), n_words_(n_words), generation_(new_generation()) {}

MaskDictionary::~MaskDictionary() = default;

Hash128 MaskDictionary::hash(std::string_view key) const { return hash_of(environment_ + std::string(key)); }

MaskDictionary::Found MaskDictionary::find(const Hash128& hash, std::string_view key) {
  std::shared_ptr<const File> file;
  {
    std::lock_guard lock(mutex_);
    if (kept_.contains(hash)) return find_in_memory(hash, key);
    file = key.size() <= kMaxKeyBytes ? file_ : nullptr;
    if (!file || !file->find(hash)) {
      ++counts_.n_missed;
      return nullptr;
    }
  }
  return read_from(file, hash, key);
}

MaskDictionary::Found MaskDictionary::find_in_memory(const Hash128& hash, std::string_view key) {
  const Kept& known = kept_.at(hash);
  if (*known.key != key) {
    ++counts_.n_collisions;
    ++counts_.n_missed;
    return nullptr;
  }
  ++counts_.n_found;
  order_.splice(order_.begin(), order_, known.place);
  return known.entry;
}

// The record is read without the lock; meanwhile others may have read it, too, or may have found the file to be wrong.
MaskDictionary::Found MaskDictionary::read_from(const std::shared_ptr<const File>& file, const Hash128& hash,
                                                std::string_view key) {
  std::pair<std::string, MaskEntry> record;
  bool is_whole = true;
  try {
    record = file->read(*file->find(hash));
    const MaskEntry& entry = record.second;
    is_whole = (!entry.mask || entry.mask->fits(n_words_)) && are_in_order(entry.open, n_words_ * 32);
  } catch (const std::exception&) {
    is_whole = false;
  }
  std::lock_guard lock(mutex_);
  if (kept_.contains(hash)) return find_in_memory(hash, key);
  if (is_whole && file == file_ && record.first == key) {
    ++counts_.n_read;
    return keep(hash, key, std::move(record.second));
  }
  ++counts_.n_missed;
  if (is_whole) {
    counts_.n_collisions += record.first != key;
    return nullptr;
  }
  ++counts_.n_damaged;
  if (file == file_) file_.reset();  // where one record is damaged none is to be believed
  return nullptr;
}

MaskDictionary::Found MaskDictionary::add(const Hash128& hash, std::string_view key, MaskEntry entry) {
  std::lock_guard lock(mutex_);
  if (const auto known = kept_.find(hash); known != kept_.end()) drop(hash);
  if (key.size() > kMaxKeyBytes) {
    ++counts_.n_too_long;
    return std::make_shared<const MaskEntry>(std::move(entry));
  }
  counts_.n_new += !entry.is_private;
  return keep(hash, key, std::move(entry));
}

MaskDictionary::Found MaskDictionary::keep(const Hash128& hash, std::string_view key, MaskEntry entry) {
  Hash128 content{};
  if (entry.mask) {
    content = content_hash(*entry.mask);
    const auto [known, is_new] = contents_.try_emplace(content, Content{entry.mask, 0});
    if (is_new)
      counts_.n_bytes += entry.mask->n_bytes();
    else
      entry.mask = known->second.mask;
    ++known->second.n_entries;
  }
  order_.push_front(hash);
  auto kept = std::make_shared<const MaskEntry>(std::move(entry));
  const auto place =
      kept_.insert_or_assign(hash, Kept{std::make_shared<const std::string>(key), kept, content, order_.begin()}).first;
  counts_.n_bytes += n_bytes_of(place->second);
  make_room();
  return kept;
}

size_t MaskDictionary::n_bytes_of(const Kept& kept) {
  return kEntryBytes + kept.key->size() + kept.entry->open.size() * sizeof(TokenRange);
}

void MaskDictionary::drop(const Hash128& hash) {
  const auto known = kept_.find(hash);
  counts_.n_bytes -= n_bytes_of(known->second);
  if (known->second.entry->mask) {
    const auto content = contents_.find(known->second.content);
    if (--content->second.n_entries == 0) {
      counts_.n_bytes -= content->second.mask->n_bytes();
      contents_.erase(content);
    }
  }
  order_.erase(known->second.place);
  kept_.erase(known);
}

void MaskDictionary::make_room() {
  while (counts_.n_bytes > max_bytes_ && kept_.size() > 1) {
    drop(order_.back());
    ++counts_.n_dropped;
  }
}

bool MaskDictionary::evict(const Hash128& hash) {
  std::lock_guard lock(mutex_);
  generation_ = new_generation();
  file_.reset();  // it may be wrong there, too
  if (!kept_.contains(hash)) return false;
  drop(hash);
  ++counts_.n_evicted;
  return true;
}

std::string MaskDictionary::dump(size_t limit) const {
  struct Chosen {
    Hash128 hash;
    std::shared_ptr<const std::string> key;
    Found entry;
    Hash128 content;
  };
  std::vector<Chosen> in_memory;
  std::unordered_set<Hash128, HashOfHash> hashes_in_memory;
  std::shared_ptr<const File> read;
  {
    std::lock_guard lock(mutex_);
    read = file_;
    for (const Hash128& hash : order_) {
      const Kept& kept = kept_.at(hash);
      hashes_in_memory.insert(hash);
      if (!kept.entry->is_private) in_memory.push_back({hash, kept.key, kept.entry, kept.content});
    }
  }
  std::vector<Chosen> chosen;
  std::unordered_map<Hash128, std::pair<std::shared_ptr<const StoredMask>, Stretch>, HashOfHash> masks;
  size_t n_bytes = sizeof(Header);
  const auto has_room = [&](Chosen each) {
    const bool is_new = each.entry->mask && !masks.contains(each.content);
    n_bytes += sizeof(Row) + record_of(*each.key, *each.entry, {}).size();
    n_bytes += is_new ? sizeof(uint32_t) + each.entry->mask->n_bytes() : 0;
    if (n_bytes > std::min(limit, kMaxFileBytes)) return false;
    if (is_new) masks.emplace(each.content, std::pair(each.entry->mask, Stretch{}));
    chosen.push_back(std::move(each));
    return true;
  };
  bool is_room = true;
  for (size_t i = 0; is_room && i < in_memory.size(); ++i) is_room = has_room(std::move(in_memory[i]));
  // What an earlier process had and nobody asked for in this one.
  for (size_t i = 0; is_room && read && i < read->rows().size(); ++i) {
    const Row& row = read->rows()[i];
    if (hashes_in_memory.contains(row.hash)) continue;
    try {
      auto [key, entry] = read->read(row);
      const Hash128 content = entry.mask ? content_hash(*entry.mask) : Hash128{};
      is_room = has_room({row.hash, std::make_shared<const std::string>(std::move(key)),
                          std::make_shared<const MaskEntry>(std::move(entry)), content});
    } catch (const std::exception&) {
      break;  // where one record is damaged none is to be believed
    }
  }
  std::sort(chosen.begin(), chosen.end(), [](const Chosen& one, const Chosen& other) { return one.hash < other.hash; });

  const size_t first = sizeof(Header) + chosen.size() * sizeof(Row);
  std::string bodies;
  for (auto& [content, mask] : masks) {
    std::string values;
    append_all(values, mask.first->values());
    mask.second = put(bodies, first, values);
  }
  std::string rows;
  for (const Chosen& each : chosen) {
    const Stretch mask = each.entry->mask ? masks.at(each.content).second : Stretch{};
    append(rows, Row{each.hash, put(bodies, first, record_of(*each.key, *each.entry, mask))});
  }
  Header header{kMagic, static_cast<uint32_t>(chosen.size()), hash_of(environment_), first + bodies.size(), 0};
  header.checksum = checksum_of(header, rows);
  std::string file;
  append(file, header);
  return file + rows + bodies;
}

void MaskDictionary::open_file(const std::string& path) {
  auto file = std::make_shared<const File>(path, hash_of(environment_));
  std::lock_guard lock(mutex_);
  file_ = std::move(file);
}

MaskDictionary::Counts MaskDictionary::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.n_nearest = n_nearest_;
  counts.n_entries = kept_.size();
  counts.n_masks = contents_.size();
  counts.n_in_file = file_ ? file_->rows().size() : 0;
  return counts;
}

std::vector<Hash128> MaskDictionary::hashes() const {
  std::lock_guard lock(mutex_);
  return {order_.begin(), order_.end()};
}

}  // namespace treefill::syntax
