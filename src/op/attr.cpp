#include "ricci/op/attr.h"

#include "ricci/support/hash.h"
#include "ricci/support/text.h"

namespace ricci {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::string print_list(const std::vector<AttrValue>& list, const char* open, const char* close) {
  std::vector<std::string> parts;
  parts.reserve(list.size());
  for (const AttrValue& v : list) parts.push_back(v.to_string());
  return open + join(parts, ", ") + close;
}

}  // namespace

bool Enumerator::operator==(const Enumerator&) const = default;

bool AttrValue::operator==(const AttrValue& other) const {
  const auto* a = get<std::shared_ptr<const Tensor>>();
  const auto* b = other.get<std::shared_ptr<const Tensor>>();
  if (a != nullptr && b != nullptr) return (*a)->identical(**b);
  return value == other.value;
}

std::string AttrValue::to_string() const {
  return std::visit(Overloaded{
                        [](std::monostate) { return std::string("absent"); },
                        [](bool v) { return std::string(v ? "true" : "false"); },
                        [](std::int64_t v) { return std::to_string(v); },
                        [](const Real& v) { return print_f64(v.value); },
                        [](const std::string& v) { return quote(v); },
                        [](const Enumerator& v) {
                          return v.args.empty() ? v.name : v.name + print_list(v.args, "(", ")");
                        },
                        [](const std::vector<AttrValue>& v) { return print_list(v, "[", "]"); },
                        [](const Dim& v) { return v.to_string(); },
                        [](const Type& v) { return v.to_string(); },
                        [](const Bytes& v) { return "hex " + quote(to_hex(v.data)); },
                        [](const std::shared_ptr<const Tensor>& v) { return v->to_string(); },
                    },
                    value);
}

std::uint64_t AttrValue::hash() const {
  Hasher h;
  h.add(static_cast<std::uint64_t>(value.index()));
  std::visit(Overloaded{
                 [](std::monostate) {},
                 [&](bool v) { h.add(static_cast<std::uint64_t>(v)); },
                 [&](std::int64_t v) { h.add(static_cast<std::uint64_t>(v)); },
                 [&](const Real& v) { h.add(v.bits()); },
                 [&](const std::string& v) { h.add(v); },
                 [&](const Enumerator& v) {
                   h.add(v.name);
                   for (const AttrValue& a : v.args) h.add(a.hash());
                 },
                 [&](const std::vector<AttrValue>& v) {
                   h.add(static_cast<std::uint64_t>(v.size()));
                   for (const AttrValue& a : v) h.add(a.hash());
                 },
                 [&](const Dim& v) { h.add(v.hash()); },
                 [&](const Type& v) { h.add(v.hash()); },
                 [&](const Bytes& v) { h.add(std::span<const std::byte>(v.data)); },
                 [&](const std::shared_ptr<const Tensor>& v) { h.add(v->hash()); },
             },
             value);
  return h.value();
}

AttrValue AttrCodec<bool>::to(const bool& v) { return {v}; }
bool AttrCodec<bool>::from(const AttrValue& v) {
  if (const auto* b = v.get<bool>()) return *b;
  throw AttrMismatch{describe()};
}
std::string AttrCodec<bool>::describe() { return "true or false"; }

AttrValue AttrCodec<std::int64_t>::to(const std::int64_t& v) { return {v}; }
std::int64_t AttrCodec<std::int64_t>::from(const AttrValue& v) {
  if (const auto* i = v.get<std::int64_t>()) return *i;
  throw AttrMismatch{describe()};
}
std::string AttrCodec<std::int64_t>::describe() { return "integer"; }

AttrValue AttrCodec<Real>::to(const Real& v) { return {v}; }
Real AttrCodec<Real>::from(const AttrValue& v) {
  if (const auto* r = v.get<Real>()) return *r;
  if (const auto* i = v.get<std::int64_t>()) return static_cast<double>(*i);
  throw AttrMismatch{describe()};
}
std::string AttrCodec<Real>::describe() { return "number"; }

AttrValue AttrCodec<std::string>::to(const std::string& v) { return {v}; }
std::string AttrCodec<std::string>::from(const AttrValue& v) {
  if (const auto* s = v.get<std::string>()) return *s;
  throw AttrMismatch{describe()};
}
std::string AttrCodec<std::string>::describe() { return "string"; }

AttrValue AttrCodec<DType>::to(const DType& v) { return {Enumerator{std::string(name(v)), {}}}; }
DType AttrCodec<DType>::from(const AttrValue& v) {
  if (const auto* e = v.get<Enumerator>(); e != nullptr && e->args.empty()) {
    if (const auto d = dtype_from_name(e->name)) return *d;
  }
  throw AttrMismatch{describe()};
}
std::string AttrCodec<DType>::describe() { return "dtype"; }

// A number stays a number, so that `4` and the dimension 4 are one attribute value.
AttrValue AttrCodec<Dim>::to(const Dim& v) {
  if (const auto n = v.try_value()) return {*n};
  return {v};
}
Dim AttrCodec<Dim>::from(const AttrValue& v) {
  if (const auto* i = v.get<std::int64_t>()) return *i;
  if (const auto* d = v.get<Dim>()) return *d;
  if (const auto* e = v.get<Enumerator>(); e != nullptr && e->args.empty()) {
    return Dim::symbol(e->name);
  }
  throw AttrMismatch{describe()};
}
std::string AttrCodec<Dim>::describe() { return "dimension"; }

AttrValue AttrCodec<Axis>::to(const Axis& v) { return {v.value}; }
Axis AttrCodec<Axis>::from(const AttrValue& v) {
  if (const auto* i = v.get<std::int64_t>()) return *i;
  throw AttrMismatch{describe()};
}
std::string AttrCodec<Axis>::describe() { return "axis"; }

AttrValue AttrCodec<Type>::to(const Type& v) { return {v}; }
Type AttrCodec<Type>::from(const AttrValue& v) {
  if (const auto* t = v.get<Type>()) return *t;
  throw AttrMismatch{describe()};
}
std::string AttrCodec<Type>::describe() { return "type"; }

AttrValue AttrCodec<Bytes>::to(const Bytes& v) { return {v}; }
Bytes AttrCodec<Bytes>::from(const AttrValue& v) {
  if (const auto* b = v.get<Bytes>()) return *b;
  throw AttrMismatch{describe()};
}
std::string AttrCodec<Bytes>::describe() { return "hex bytes"; }

AttrValue AttrCodec<Tensor>::to(const Tensor& v) {
  return {std::make_shared<const Tensor>(v.canonical())};
}
Tensor AttrCodec<Tensor>::from(const AttrValue& v) {
  if (const auto* t = v.get<std::shared_ptr<const Tensor>>()) return **t;
  throw AttrMismatch{describe()};
}
std::string AttrCodec<Tensor>::describe() { return "tensor"; }

}  // namespace ricci
