#include "syntax/mask_dictionary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#define XXH_INLINE_ALL
#include "third_party/xxhash/xxhash.h"

namespace treefill::syntax {
namespace {

constexpr uint32_t kMagic = 0x31444D54;  // "TMD1"
constexpr size_t kEntryBytes = 160;      // of tables, a guess
constexpr size_t kMaxFileBytes = 256u << 20;
constexpr uint32_t kDeeper = 0xFFFFFFFF;  // in place of a form: there is no mask

// A file is a header, a row for each record in the order of their hashes, and the records.
struct Header {
  uint32_t magic;
  uint32_t n_records;
  Hash128 environment;
  uint64_t n_bytes;   // of the whole file
  uint64_t checksum;  // of the header up to here and the rows
};
struct Row {
  Hash128 hash;
  uint64_t offset;
  uint64_t n_bytes;
  uint64_t checksum;
};

template <typename T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void append_all(std::string& to, const std::vector<T>& values) {
  append(to, static_cast<uint32_t>(values.size()));
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
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

std::string record_of(std::string_view key, const MaskEntry& entry) {
  std::string record;
  append(record, static_cast<uint32_t>(key.size()));
  record += key;
  append_all(record, entry.open);
  append(record, entry.mask ? static_cast<uint32_t>(entry.mask->form()) : kDeeper);
  if (entry.mask) append_all(record, entry.mask->values());
  return record;
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

// What an earlier process has written. Read without the dictionary's lock held by others: `pread` has no place.
class MaskDictionary::File {
 public:
  File(const std::string& path, const Hash128& environment) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
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

  size_t n_records() const { return rows_.size(); }
  const Row* find(const Hash128& hash) const {
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), hash,
                                      [](const Row& each, const Hash128& sought) { return each.hash < sought; });
    return row != rows_.end() && row->hash == hash ? &*row : nullptr;
  }
  // Throws std::runtime_error or std::out_of_range where it is not as it was written.
  std::pair<std::string, MaskEntry> read(const Row& row) const {
    const std::string bytes = bytes_at(row.offset, row.n_bytes);
    if (XXH3_64bits(bytes.data(), bytes.size()) != row.checksum) throw std::runtime_error("a record is damaged");
    Reading reading(bytes);
    std::string key(reading.take(reading.one<uint32_t>()));
    MaskEntry entry;
    entry.open = reading.all<TokenRange>();
    const auto form = reading.one<uint32_t>();
    if (form != kDeeper) {
      if (form > static_cast<uint32_t>(StoredMask::Form::kBits)) throw std::runtime_error("a record is damaged");
      entry.mask = std::make_shared<const StoredMask>(static_cast<StoredMask::Form>(form), reading.all<uint32_t>());
    }
    return {std::move(key), std::move(entry)};
  }

 private:
  void read_rows(const Hash128& environment) {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0) throw std::runtime_error("it cannot be read");
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
    for (const Row& row : rows_)
      if (row.offset > size || row.n_bytes > size - row.offset) throw std::runtime_error("its table is damaged");
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
  std::vector<Row> rows_;
};

MaskDictionary::MaskDictionary(std::string environment, size_t max_bytes, size_t n_words)
    : environment_(std::move(environment)), max_bytes_(max_bytes), n_words_(n_words), generation_(new_generation()) {}

MaskDictionary::~MaskDictionary() = default;

Hash128 MaskDictionary::hash(std::string_view key) const { return hash_of(environment_ + std::string(key)); }

MaskDictionary::Found MaskDictionary::find(const Hash128& hash, std::string_view key) {
  std::lock_guard lock(mutex_);
  if (const auto known = kept_.find(hash); known != kept_.end()) {
    if (known->second.key != key) {
      ++counts_.n_collisions;
      ++counts_.n_missed;
      return nullptr;
    }
    ++counts_.n_found;
    order_.splice(order_.begin(), order_, known->second.place);
    return known->second.entry;
  }
  const Row* row = file_ ? file_->find(hash) : nullptr;
  if (row) {
    try {
      auto [written, entry] = file_->read(*row);
      if (entry.mask && !entry.mask->fits(n_words_)) throw std::runtime_error("a record is damaged");
      if (written == key) {
        ++counts_.n_read;
        return keep(hash, key, std::move(entry));
      }
      ++counts_.n_collisions;
    } catch (const std::exception&) {
      ++counts_.n_damaged;
      file_.reset();  // where one record is damaged none is to be believed
    }
  }
  ++counts_.n_missed;
  return nullptr;
}

MaskDictionary::Found MaskDictionary::add(const Hash128& hash, std::string_view key, MaskEntry entry) {
  std::lock_guard lock(mutex_);
  if (const auto known = kept_.find(hash); known != kept_.end()) drop(hash);
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
  const auto place = kept_.insert_or_assign(hash, Kept{std::string(key), kept, content, order_.begin()}).first;
  counts_.n_bytes += n_bytes_of(place->second);
  make_room();
  return kept;
}

size_t MaskDictionary::n_bytes_of(const Kept& kept) {
  return kEntryBytes + kept.key.size() + kept.entry->open.size() * sizeof(TokenRange);
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

void MaskDictionary::clear() {
  std::lock_guard lock(mutex_);
  generation_ = new_generation();
  kept_.clear();
  contents_.clear();
  order_.clear();
  counts_.n_bytes = 0;
}

std::string MaskDictionary::dump(size_t limit) const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<Row, std::string>> records;
  size_t n_bytes = sizeof(Header);
  for (const Hash128& hash : order_) {
    const Kept& kept = kept_.at(hash);
    if (kept.entry->is_private) continue;
    std::string record = record_of(kept.key, *kept.entry);
    if (n_bytes + sizeof(Row) + record.size() > std::min(limit, kMaxFileBytes)) break;
    n_bytes += sizeof(Row) + record.size();
    const uint64_t checksum = XXH3_64bits(record.data(), record.size());
    records.emplace_back(Row{hash, 0, record.size(), checksum}, std::move(record));
  }
  std::sort(records.begin(), records.end(),
            [](const auto& one, const auto& other) { return one.first.hash < other.first.hash; });
  std::string rows;
  std::string bodies;
  const size_t first = sizeof(Header) + records.size() * sizeof(Row);
  for (auto& [row, record] : records) {
    row.offset = first + bodies.size();
    append(rows, row);
    bodies += record;
  }
  Header header{kMagic, static_cast<uint32_t>(records.size()), hash_of(environment_), n_bytes, 0};
  header.checksum = checksum_of(header, rows);
  std::string file;
  append(file, header);
  return file + rows + bodies;
}

void MaskDictionary::open_file(const std::string& path) {
  auto file = std::make_unique<File>(path, hash_of(environment_));
  std::lock_guard lock(mutex_);
  file_ = std::move(file);
}

void MaskDictionary::close_file() {
  std::lock_guard lock(mutex_);
  file_.reset();
}

MaskDictionary::Counts MaskDictionary::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.n_nearest = n_nearest_;
  counts.n_entries = kept_.size();
  counts.n_masks = contents_.size();
  counts.n_in_file = file_ ? file_->n_records() : 0;
  return counts;
}

std::vector<Hash128> MaskDictionary::hashes() const {
  std::lock_guard lock(mutex_);
  return {order_.begin(), order_.end()};
}

}  // namespace treefill::syntax
