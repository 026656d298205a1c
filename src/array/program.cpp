#include "array/program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "ricci/array/function.h"
#include "ricci/support/checked.h"
#include "ricci/support/error.h"

#include "support/machine_memory.h"

namespace ricci {
namespace detail {
namespace {

constexpr std::size_t MostIdle = 8;
constexpr std::align_val_t Alignment{64};

// Small values lie with their count, so that they are allocated once.
constexpr std::int64_t SmallBytes = 1024;

[[noreturn]] void no_room(const Type& type) {
  throw UserError(
      ErrorCode::OutOfMemory,
      fmt::format("there is no room for a result {}: the machine has {} bytes of memory",
                  type.to_string(), machine_memory()),
      "use smaller sizes, or look at a part of it");
}

// Systems hand out more memory than there is, and end the process when it is written to.
std::shared_ptr<std::byte> memory_for(const Type& type) {
  std::int64_t bytes = size_of(type.dtype);
  for (const Dim& d : type.dims) bytes = saturating_mul(bytes, d.value());
  if (std::ranges::any_of(type.dims, [](const Dim& d) { return d.is(0); })) bytes = 0;
  bytes = std::max<std::int64_t>(bytes, 1);
  const auto size = static_cast<std::size_t>(bytes);
  if (bytes <= SmallBytes) {
    auto small = std::make_shared_for_overwrite<std::byte[]>(size);  // NOLINT: as many as it takes
    std::byte* first = small.get();
    return {std::move(small), first};
  }
  if (bytes > machine_memory()) no_room(type);
  auto* room = static_cast<std::byte*>(::operator new(size, Alignment, std::nothrow));
  if (room == nullptr) no_room(type);
  return {room, [](std::byte* p) { ::operator delete(p, Alignment); }};
}

Room room_for(const TypeList& type, const std::shared_ptr<std::byte>& given) {
  return {given ? given : memory_for(type[0]), type};
}

struct ChosenDevice {
  ForkMutex mutex;
  std::optional<Device> device;
};
ChosenDevice& chosen_device() {
  static ChosenDevice& d = *new ChosenDevice;
  return d;
}

std::atomic<std::size_t> compiled_programs = 0;

}  // namespace

Tensor Room::tensor() const {
  return Tensor::borrow(type[0], memory.get(), row_major_strides(type[0].static_dims()), memory);
}

Device current_device() {
  ChosenDevice& c = chosen_device();
  const std::lock_guard lock(c.mutex);
  if (!c.device) c.device = Device::standard();
  return *c.device;
}

// A context for one run, handed back after it.
class ArrayProgram::Lease {
 public:
  Lease(ArrayProgram& program, const SymbolBindings& sizes) : program_(program), sizes_(sizes) {
    {
      const std::lock_guard lock(program.mutex_);
      for (std::size_t k = program.idle_.size(); k-- > 0 && !context_;) {
        if (program.idle_[k].sizes != sizes) continue;
        context_.emplace(std::move(program.idle_[k].context));
        program.idle_.erase(program.idle_.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
    if (!context_) context_.emplace(program.compiled_.make_context(sizes));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    std::optional<Idle> dropped;  // freed without the lock
    const std::lock_guard lock(program_.mutex_);
    std::vector<Idle>& idle = program_.idle_;
    if (idle.size() == MostIdle) {
      dropped.emplace(std::move(idle.front()));
      idle.erase(idle.begin());
    }
    idle.push_back({sizes_, std::move(*context_)});
  }
  ExecutionContext& operator*() { return *context_; }

 private:
  ArrayProgram& program_;
  const SymbolBindings& sizes_;
  std::optional<ExecutionContext> context_;
};

ArrayProgram::ArrayProgram(const Graph& graph, const Device& device,
                           std::vector<Donation> donations)
    : compiled_(compile(graph, device, {.donations = std::move(donations)})),
      outputs_(compiled_.outputs().begin(), compiled_.outputs().end()) {
  idle_.reserve(MostIdle);
  compiled_programs.fetch_add(1, std::memory_order_relaxed);
}

std::size_t programs_compiled() noexcept {
  return compiled_programs.load(std::memory_order_relaxed);
}

std::vector<Room> ArrayProgram::run(std::span<const void* const> inputs,
                                    const SymbolBindings& sizes,
                                    std::span<const std::shared_ptr<std::byte>> given) {
  std::vector<Room> results;
  results.reserve(outputs_.size());
  std::array<void*, 16> few;
  std::vector<void*> many;
  std::span<void*> outputs(few.data(), std::min(outputs_.size(), few.size()));
  if (outputs_.size() > few.size()) {
    many.resize(outputs_.size());
    outputs = many;
  }
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const std::shared_ptr<std::byte>& memory = given.empty() ? nullptr : given[o];
    results.push_back(sizes.empty() ? room_for(outputs_[o], memory)
                                    : room_for(outputs_[o][0].bind(sizes), memory));
    outputs[o] = results.back().memory.get();
  }
  Lease context(*this, sizes);
  compiled_.run(*context, inputs, outputs);
  return results;
}

}  // namespace detail

void use_device(const Device& device) {
  detail::ChosenDevice& c = detail::chosen_device();
  const std::lock_guard lock(c.mutex);
  c.device = device;
}

}  // namespace ricci
