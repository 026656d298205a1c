#include "runtime/staging.h"

namespace ricci::runtime {

Staging::Staging(device::Memory& memory, const Program& program)
    : memory_(memory), program_(program) {
  if (memory.is_host()) return;
  inputs_.resize(program.inputs.size());
  outputs_.resize(program.outputs.size());
  returns_.reserve(program.outputs.size());
}

std::int64_t Staging::bytes_of(BufferId buffer) const {
  return program_.buffers[static_cast<std::size_t>(buffer)].bytes();
}

void Staging::reserve(device::Memory& memory, Place& place, std::int64_t bytes) {
  if (place.array.data() == nullptr) place.array = device::Array(memory, bytes);
}

void Staging::stage_input(std::size_t input, const std::byte*& at) {
  if (memory_.is_host()) return;
  Place& place = inputs_[input];
  reserve(memory_, place, bytes_of(program_.inputs[input]));
  place.host = at;
  place.array.copy_in(at);
  at = place.array.data();
}

void Staging::stage_output(std::size_t output, std::byte*& at, int donor) {
  if (memory_.is_host()) return;
  Place* place = &outputs_[output];
  if (donor >= 0 && inputs_[static_cast<std::size_t>(donor)].host == at) {
    place = &inputs_[static_cast<std::size_t>(donor)];
  }
  reserve(memory_, *place, bytes_of(program_.outputs[output]));
  returns_.push_back({&place->array, at});
  at = place->array.data();
}

void Staging::begin() {
  for (Place& p : inputs_) p.host = nullptr;
  returns_.clear();
}

void Staging::collect() {
  for (const Return& r : returns_) r.from->copy_out(r.to);
}

}  // namespace ricci::runtime
