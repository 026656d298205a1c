#include "runtime/param_store.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace ricci::runtime {
namespace {

constexpr std::align_val_t Alignment{64};

}  // namespace

void ParamStore::Free::operator()(std::byte* p) const noexcept { ::operator delete(p, Alignment); }

void ParamStore::set(std::size_t input, const Tensor& value, bool in_place) {
  Stored& stored = values_[input];
  const Tensor plain = value.contiguous();
  if (!in_place) {
    stored = {true, value.type(), plain.data(), plain, nullptr};
    return;
  }
  const std::span<const std::byte> bytes = plain.bytes();
  if (!stored.buffer || stored.type != value.type()) {
    stored.buffer.reset(
        static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes.size(), 1), Alignment)));
  }
  if (!bytes.empty()) std::memcpy(stored.buffer.get(), bytes.data(), bytes.size());
  stored.given = true;
  stored.type = value.type();
  stored.data = stored.buffer.get();
}

Tensor ParamStore::get(std::size_t input) const {
  const Stored& stored = values_[input];
  if (!stored.buffer) return stored.shared;
  const auto bytes = static_cast<std::size_t>(*stored.type.numel() * size_of(stored.type.dtype));
  return Tensor::from_bytes(stored.type, {stored.data, bytes});
}

}  // namespace ricci::runtime
