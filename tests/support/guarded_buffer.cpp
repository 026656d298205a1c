#include "support/guarded_buffer.h"

#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace ricci::testing {
namespace {

std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

const char* volatile noted = nullptr;

extern "C" void on_fault(int signal) {
  constexpr char Start[] = "a step over the edge of a buffer: ";
  (void)!::write(STDERR_FILENO, Start, sizeof(Start) - 1);
  if (const char* what = noted) (void)!::write(STDERR_FILENO, what, std::strlen(what));
  (void)!::write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);  // and again, to end as faults do
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, Edge edge) : size_(bytes) {
  const std::size_t room = (bytes + page() - 1) / page() * page();
  mapped_ = room + 2 * page();
  void* pages = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<std::byte*>(pages);
  if (room != 0 && ::mprotect(pages_ + page(), room, PROT_READ | PROT_WRITE) != 0) {
    throw std::bad_alloc();
  }
  data_ = pages_ + page() + (edge == Edge::End ? room - bytes : 0);
  if (bytes != 0) std::memset(data_, 0xA5, bytes);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_),
      size_(other.size_) {}

GuardedBuffer::~GuardedBuffer() {
  if (pages_ != nullptr) ::munmap(pages_, mapped_);
}

void GuardedBuffer::make_read_only() {
  if (mapped_ > 2 * page()) ::mprotect(pages_ + page(), mapped_ - 2 * page(), PROT_READ);
}

FaultNote::FaultNote(const char* what) {
  noted = what;
  std::signal(SIGSEGV, on_fault);
}

FaultNote::~FaultNote() {
  std::signal(SIGSEGV, SIG_DFL);
  noted = nullptr;
}

}  // namespace ricci::testing
