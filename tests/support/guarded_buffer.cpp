#include "support/guarded_buffer.h"

#include <bit>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace ricci::testing {
namespace {

std::size_t page() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// Rooms that wait to be used again, by size. Larger ones are rare and given back.
constexpr std::size_t MostKept = std::size_t{4} << 20;
std::vector<std::byte*>& waiting(std::size_t size) {
  static std::map<std::size_t, std::vector<std::byte*>> rooms;
  return rooms[size];
}

std::byte* map_room(std::size_t size) {
  void* pages = ::mmap(nullptr, size + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  std::byte* room = static_cast<std::byte*>(pages) + page();
  if (::mprotect(room, size, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  return room;
}

const char* volatile noted = nullptr;

extern "C" void on_fault(int signal) {
  constexpr char Start[] = "a step over the edge of a buffer: ";
  (void)!::write(STDERR_FILENO, Start, sizeof(Start) - 1);
  if (const char* what = noted) (void)!::write(STDERR_FILENO, what, std::strlen(what));
  (void)!::write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);  // and again, to end as faults do
}

}  // namespace

GuardedPages::GuardedPages(std::size_t bytes)
    : size_(std::bit_ceil((bytes + page() - 1) / page()) * page()) {
  std::vector<std::byte*>& rooms = waiting(size_);
  if (rooms.empty()) {
    room_ = map_room(size_);
  } else {
    room_ = rooms.back();
    rooms.pop_back();
  }
}

GuardedPages::GuardedPages(GuardedPages&& other) noexcept
    : room_(std::exchange(other.room_, nullptr)),
      size_(other.size_),
      read_only_(other.read_only_) {}

GuardedPages::~GuardedPages() {
  if (room_ == nullptr) return;
  const bool keep = size_ <= MostKept;
  if (keep && (!read_only_ || ::mprotect(room_, size_, PROT_READ | PROT_WRITE) == 0)) {
    waiting(size_).push_back(room_);
  } else {
    ::munmap(room_ - page(), size_ + 2 * page());
  }
}

void GuardedPages::make_read_only() {
  if (::mprotect(room_, size_, PROT_READ) != 0) throw std::bad_alloc();
  read_only_ = true;
}

GuardedBuffer::GuardedBuffer(std::size_t bytes, Edge edge) : pages_(bytes), size_(bytes) {
  const std::span<std::byte> room = pages_.room();
  data_ = edge == Edge::End ? room.data() + room.size() - bytes : room.data();
  // Among floats the one is a NaN, the other next to nothing.
  if (bytes != 0) std::memset(data_, edge == Edge::End ? 0xFF : 0xA5, bytes);
}

FaultNote::FaultNote(const char* what) : outer_(noted) {
  noted = what;
  struct sigaction ours = {};
  ours.sa_handler = on_fault;
  ::sigaction(SIGSEGV, &ours, &before_);
}

FaultNote::~FaultNote() {
  ::sigaction(SIGSEGV, &before_, nullptr);
  noted = outer_;
}

}  // namespace ricci::testing
