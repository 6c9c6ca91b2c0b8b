// Buffers that end where memory ends: an element read or written beyond them is a crash, in vector code too.

#ifndef TREEFILL_TESTS_GUARDED_H_
#define TREEFILL_TESTS_GUARDED_H_

#include <cstddef>
#include <vector>

#if !defined(__SANITIZE_ADDRESS__)
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#endif

namespace treefill {

#if defined(__SANITIZE_ADDRESS__)

// AddressSanitizer guards both ends of every allocation already.
template <typename T>
using Buffer = std::vector<T>;

#else

// The last element lies right before a page that nobody may touch.
template <typename T>
struct GuardedAllocator {
  using value_type = T;

  GuardedAllocator() = default;
  template <typename U>
  GuardedAllocator(const GuardedAllocator<U>&) {}

  T* allocate(size_t n) {
    void* pages = mmap(nullptr, n_bytes(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    std::byte* guard = static_cast<std::byte*>(pages) + n_bytes(n) - page();
    if (mprotect(guard, page(), PROT_NONE) != 0) throw std::bad_alloc();
    return reinterpret_cast<T*>(guard) - n;
  }

  void deallocate(T* elements, size_t n) {
    munmap(reinterpret_cast<std::byte*>(elements + n) + page() - n_bytes(n), n_bytes(n));
  }

  bool operator==(const GuardedAllocator&) const { return true; }

 private:
  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  static size_t n_bytes(size_t n) { return ((n * sizeof(T) + page() - 1) / page() + 1) * page(); }
};

template <typename T>
using Buffer = std::vector<T, GuardedAllocator<T> >;

#endif

}  // namespace treefill

#endif  // TREEFILL_TESTS_GUARDED_H_
