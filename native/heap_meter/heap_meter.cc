// Counts the heap of a whole process: load it with LD_PRELOAD, ask it over the three functions
// at the end. It knows nothing of the allocator behind it but glibc's own entry points.
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {
void* __libc_malloc(size_t size);
void __libc_free(void* block);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

constexpr size_t kPage = 4096;
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

// Bytes are those that the allocator really set aside, so that malloc and free always agree.
int64_t size_of(void* block) { return static_cast<int64_t>(malloc_usable_size(block)); }

void* count(void* block) {
  if (block == nullptr) return nullptr;
  const int64_t size = size_of(block);
  const int64_t now = live_bytes.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return block;
}

void discount(int64_t size) { live_bytes.fetch_sub(size, std::memory_order_relaxed); }

}  // namespace

extern "C" {

void* malloc(size_t size) { return count(__libc_malloc(size)); }

void free(void* block) {
  if (block == nullptr) return;
  discount(size_of(block));
  __libc_free(block);
}

void* calloc(size_t number, size_t size) { return count(__libc_calloc(number, size)); }

// While a block moves, glibc holds both copies; only the larger one is counted here.
void* realloc(void* block, size_t size) {
  const int64_t before = block == nullptr ? 0 : size_of(block);
  void* moved = __libc_realloc(block, size);
  if (moved == nullptr && size != 0) return nullptr;  // the old block still stands
  discount(before);
  return count(moved);
}

void* memalign(size_t alignment, size_t size) {
  return count(__libc_memalign(alignment, size));
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** block, size_t alignment, size_t size) {
  void* made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

void* valloc(size_t size) { return memalign(kPage, size); }

// Bytes in use now.
int64_t regal_heap_live() { return live_bytes.load(); }

// Most bytes in use at once since the last reset.
int64_t regal_heap_peak() { return peak_bytes.load(); }

void regal_heap_reset() { peak_bytes.store(live_bytes.load()); }

}  // extern "C"
