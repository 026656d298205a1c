#include "device/buffer_check.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::device {
namespace {

[[noreturn]] void fail(std::string message, std::string help = {}) {
  throw UserError(
      Diagnostic{ErrorCode::Attr, "buffer", std::move(message), {}, {}, std::move(help)});
}

std::size_t alignment_of(DType dtype) {
  return with_element_type(dtype, []<class T>() { return alignof(T); });
}

template <class Need>
void check_pointer(const std::byte* at, const Need& need, const std::string& name,
                   const std::string& null_help) {
  if (at == nullptr && need.bytes > 0) {
    fail(fmt::format("the buffer of {} is null", name), null_help);
  }
  if (reinterpret_cast<std::uintptr_t>(at) % need.alignment != 0) {
    fail(fmt::format("the buffer of {} is not aligned to {} bytes", name, need.alignment));
  }
}

}  // namespace

BufferCheck::BufferCheck(BufferPorts ports, const Program& program) : ports_(std::move(ports)) {
  const auto need = [&](BufferId b) {
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(b)];
    return Need{static_cast<std::size_t>(buffer.bytes()), alignment_of(buffer.dtype)};
  };
  for (const BufferId b : program.inputs) inputs_.push_back(need(b));
  for (const BufferId b : program.outputs) outputs_.push_back(need(b));
  good_.assign(inputs_.size() + outputs_.size(), nullptr);
  ranges_.reserve(good_.size());
}

void BufferCheck::check(std::span<const std::byte* const> inputs,
                        std::span<std::byte* const> outputs) {
  const auto middle = good_.begin() + static_cast<std::ptrdiff_t>(inputs_.size());
  if (checked_ && std::equal(inputs.begin(), inputs.end(), good_.begin()) &&
      std::equal(outputs.begin(), outputs.end(), middle)) {
    return;
  }
  for (std::size_t k = 0; k < inputs.size(); ++k)
    check_pointer(inputs[k], inputs_[k], ports_.inputs[k], ports_.null_help);
  for (std::size_t k = 0; k < outputs.size(); ++k)
    check_pointer(outputs[k], outputs_[k], ports_.outputs[k], ports_.null_help);
  checked_ = false;
  check_overlap(inputs, outputs);
  std::ranges::copy(inputs, good_.begin());
  std::ranges::copy(outputs, middle);
  checked_ = true;
}

const std::string& BufferCheck::name_of(const Range& r) const {
  return r.input >= 0 ? ports_.inputs[static_cast<std::size_t>(r.input)]
                      : ports_.outputs[static_cast<std::size_t>(r.output)];
}

// In order of address, a buffer overlaps one before it when it starts before the furthest end.
void BufferCheck::check_overlap(std::span<const std::byte* const> inputs,
                                std::span<std::byte* const> outputs) {
  ranges_.clear();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs_[k].bytes > 0) {
      ranges_.push_back({inputs[k], inputs[k] + inputs_[k].bytes, static_cast<int>(k), -1});
    }
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs_[k].bytes == 0) continue;
    const int donor = ports_.donors[k];
    if (donor >= 0 && inputs[static_cast<std::size_t>(donor)] == outputs[k]) {
      // One buffer for both: it counts once, as an output.
      const auto pair = std::ranges::find(ranges_, donor, &Range::input);
      *pair = {outputs[k], outputs[k] + outputs_[k].bytes, -1, static_cast<int>(k)};
    } else {
      ranges_.push_back({outputs[k], outputs[k] + outputs_[k].bytes, -1, static_cast<int>(k)});
    }
  }
  std::ranges::sort(ranges_, {}, &Range::first);
  const Range* furthest = nullptr;
  const Range* furthest_output = nullptr;
  for (const Range& r : ranges_) {
    const Range* other = r.output >= 0 ? furthest : furthest_output;
    if (other != nullptr && r.first < other->last) {
      fail(fmt::format("the buffers of {} and {} overlap", name_of(*other), name_of(r)),
           "an output may share a buffer only with the input it is donated by, and then all of it");
    }
    if (furthest == nullptr || r.last > furthest->last) furthest = &r;
    if (r.output >= 0 && (furthest_output == nullptr || r.last > furthest_output->last)) {
      furthest_output = &r;
    }
  }
}

}  // namespace ricci::device
