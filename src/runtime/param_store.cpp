#include "runtime/param_store.h"

namespace ricci::runtime {

void ParamStore::set(std::size_t input, const Tensor& value, bool in_place) {
  const UnforkedWork unforked;
  Stored& stored = values_[input];
  const Tensor plain = value.contiguous();
  const auto bytes = static_cast<std::int64_t>(plain.bytes().size());
  const bool own = in_place || !memory_.is_host();
  // Filled before anything of the old value is given up: there may be no room.
  if (own && (stored.array.use_count() != 1 || stored.type != value.type())) {
    stored.array = std::make_shared<device::Array>(memory_, bytes);
  }
  if (own) stored.array->copy_in(plain.data());
  stored.given = true;
  stored.in_place = in_place;
  ++stored.version;
  ++version_;
  stored.type = value.type();
  stored.shared = in_place ? Tensor() : plain;
  stored.data = own ? stored.array->data() : stored.shared.data();
}

void ParamStore::share(std::size_t input, const ParamStore& other, std::size_t other_input) {
  const Stored& from = other.values_[other_input];
  if (from.in_place) {
    set(input, other.get(other_input), false);  // runs change it where it lies
    return;
  }
  Stored& stored = values_[input];
  const std::uint64_t version = stored.version;
  stored = from;
  stored.version = version + 1;
  ++version_;
}

Tensor ParamStore::get(std::size_t input) const {
  const Stored& stored = values_[input];
  if (!stored.in_place) return stored.shared;
  Tensor copy = Tensor::zeros(stored.type);
  stored.array->copy_out(copy.mutable_data());
  return copy;
}

}  // namespace ricci::runtime
