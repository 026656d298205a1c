#include "backend/cuda/run/launch_arguments.h"

#include "ricci/support/error.h"

#include "backend/cuda/codegen/kernel_text.h"

namespace ricci::cuda {
namespace {

void* address_of(const auto& argument) {
  return const_cast<void*>(static_cast<const void*>(&argument));
}

}  // namespace

std::byte* first_element(const BufferView& view, std::span<std::byte* const> buffers) {
  if (view.buffer < 0) return nullptr;
  return buffers[static_cast<std::size_t>(view.buffer)] +
         view.layout.offset * size_of(view.type.dtype);
}

std::vector<std::byte*> first_elements(std::span<const BufferView> views,
                                       std::span<std::byte* const> buffers) {
  std::vector<std::byte*> out;
  out.reserve(views.size());
  for (const BufferView& v : views) out.push_back(first_element(v, buffers));
  return out;
}

std::vector<std::byte*> kernel_pointers(const loop::Kernel& kernel, const Launch& launch,
                                        std::span<std::byte* const> buffers) {
  std::vector<std::byte*> out;
  out.reserve(launch.buffers.size());
  for (std::size_t a = 0; a < launch.buffers.size(); ++a) {
    if (kernel.arguments[a].role == loop::ArgumentRole::Local) continue;
    out.push_back(buffers[static_cast<std::size_t>(launch.buffers[a])]);
  }
  return out;
}

// A step may have more operands and results than its plan names: those have no parameter.
std::vector<std::byte*> loop_pointers(const LoopStep& step, std::span<std::byte* const> buffers) {
  const auto operands = static_cast<std::size_t>(loop_operands(step.loop.plan));
  const auto results = static_cast<std::size_t>(loop_results(step.loop.plan));
  check_internal(operands <= step.operands.size() && results <= step.results.size(),
                 "a loop's plan names arrays that its step does not have");
  std::vector<std::byte*> out = first_elements(std::span(step.operands).first(operands), buffers);
  for (std::size_t r = 0; r < results; ++r) out.push_back(first_element(step.results[r], buffers));
  return out;
}

LaunchArguments::LaunchArguments(std::span<std::byte* const> pointers,
                                 const CommonArguments& common) {
  constexpr std::size_t Common = 3;
  all_ = few_;
  if (pointers.size() + Common > few_.size()) {
    many_.resize(pointers.size() + Common);
    all_ = many_;
  }
  all_ = all_.first(pointers.size() + Common);
  std::size_t next = 0;
  for (std::byte* const& p : pointers) all_[next++] = address_of(p);
  all_[next++] = address_of(common.scratch);
  all_[next++] = address_of(common.fault);
  all_[next] = address_of(common.origin);
}

}  // namespace ricci::cuda
