#include "runtime/param_store.h"

namespace ricci::runtime {

void ParamStore::set(std::size_t input, const Tensor& value, bool in_place) {
  const UnforkedWork unforked;
  Stored& stored = values_[input];
  const Tensor plain = value.contiguous();
  const auto bytes = static_cast<std::int64_t>(plain.bytes().size());
  const bool own = in_place || !memory_.is_host();
  // Filled before anything of the old value is given up: there may be no room.
  if (own && (stored.array.data() == nullptr || stored.type != value.type())) {
    stored.array = device::Array(memory_, bytes);
  }
  if (own) stored.array.copy_in(plain.data());
  stored.given = true;
  stored.in_place = in_place;
  ++stored.version;
  ++version_;
  stored.type = value.type();
  stored.shared = in_place ? Tensor() : plain;
  stored.data = own ? stored.array.data() : stored.shared.data();
}

Tensor ParamStore::get(std::size_t input) const {
  const Stored& stored = values_[input];
  if (!stored.in_place) return stored.shared;
  Tensor copy = Tensor::zeros(stored.type);
  stored.array.copy_out(copy.mutable_data());
  return copy;
}

}  // namespace ricci::runtime
