#include "array/program.h"

#include <array>
#include <mutex>
#include <new>
#include <optional>

#include "ricci/runtime/device.h"

namespace ricci::detail {
namespace {

constexpr std::size_t MostIdle = 8;
constexpr std::align_val_t Alignment{64};

}  // namespace

Tensor room_for(const Type& type, void*& data) {
  StaticDims dims = type.static_dims();
  std::int64_t bytes = size_of(type.dtype);
  for (const std::int64_t d : dims) bytes *= d;
  std::byte* room = static_cast<std::byte*>(
      ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), Alignment));
  std::shared_ptr<std::byte> owner(room, [](std::byte* p) { ::operator delete(p, Alignment); });
  data = room;
  return Tensor::borrow(type, room, row_major_strides(dims), std::move(owner));
}

class ArrayProgram::Lease {
 public:
  explicit Lease(ArrayProgram& program) : program_(program) {
    {
      const std::lock_guard lock(program.mutex_);
      if (!program.idle_.empty()) {
        context_.emplace(std::move(program.idle_.back()));
        program.idle_.pop_back();
      }
    }
    if (!context_) context_.emplace(program.compiled_.make_context());
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    const std::lock_guard lock(program_.mutex_);
    if (program_.idle_.size() < MostIdle) program_.idle_.push_back(std::move(*context_));
  }
  ExecutionContext& operator*() { return *context_; }

 private:
  ArrayProgram& program_;
  std::optional<ExecutionContext> context_;
};

ArrayProgram::ArrayProgram(const Graph& graph)
    : compiled_(compile(graph)), outputs_(compiled_.outputs().begin(), compiled_.outputs().end()) {
  idle_.reserve(MostIdle);
}

std::vector<Tensor> ArrayProgram::run(std::span<const void* const> inputs) {
  std::vector<Tensor> results;
  results.reserve(outputs_.size());
  std::array<void*, 16> few;
  std::vector<void*> many;
  std::span<void*> outputs(few.data(), std::min(outputs_.size(), few.size()));
  if (outputs_.size() > few.size()) {
    many.resize(outputs_.size());
    outputs = many;
  }
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    results.push_back(room_for(outputs_[o], outputs[o]));
  }
  Lease context(*this);
  compiled_.run(*context, inputs, outputs);
  return results;
}

}  // namespace ricci::detail
