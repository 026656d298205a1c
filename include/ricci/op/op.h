// An op as a value: its kind and its immutable attributes. Copies share the attributes.
//
//   Op op(op::Concat{.axis = 1});
//   if (const auto* c = op.as<op::Concat>()) use(c->axis);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/op/attr.h"
#include "ricci/op/info.h"

namespace ricci {

// Every op, forward declared from the one list.
namespace op {
#define RICCI_OP(Type, builder) struct Type;
#include "ricci/op/list.def"
}  // namespace op

enum class OpKind : std::uint16_t {
#define RICCI_OP(Type, builder) Type,
#include "ricci/op/list.def"
};

inline constexpr std::size_t OpCount = 0
#define RICCI_OP(Type, builder) +1  // NOLINT: one term of the sum
#include "ricci/op/list.def"
    ;

namespace detail {
template <class T>
struct KindOf;
#define RICCI_OP(Type, builder)                   \
  template <>                                     \
  struct KindOf<op::Type> {                       \
    static constexpr OpKind value = OpKind::Type; \
  };
#include "ricci/op/list.def"
}  // namespace detail

template <class T>
concept OpStruct = requires { detail::KindOf<T>::value; };

template <OpStruct T>
inline constexpr OpKind kind_of = detail::KindOf<T>::value;

class Op {
 public:
  template <OpStruct T>
  explicit Op(T attributes)
      : kind_(kind_of<T>), attrs_(std::make_shared<const T>(std::move(attributes))) {}

  [[nodiscard]] OpKind kind() const noexcept { return kind_; }
  template <OpStruct T>
  [[nodiscard]] bool is() const noexcept {
    return kind_ == kind_of<T>;
  }
  /// The attributes, or nullptr when this is another op.
  template <OpStruct T>
  [[nodiscard]] const T* as() const noexcept {
    return is<T>() ? static_cast<const T*>(attrs_.get()) : nullptr;
  }
  [[nodiscard]] const void* attributes() const noexcept { return attrs_.get(); }

  [[nodiscard]] OpClass op_class() const noexcept;
  [[nodiscard]] const OpInfo& info() const noexcept;
  [[nodiscard]] bool has(Trait t) const noexcept { return ricci::has(info().traits, t); }
  /// The name in text: `concat`, and for element-wise families the member's, `tanh`.
  [[nodiscard]] std::string_view mnemonic() const;
  /// All fields, defaults included, in declared order.
  [[nodiscard]] std::vector<NamedAttr> attrs() const;
  [[nodiscard]] std::uint64_t hash() const;
  friend bool operator==(const Op& a, const Op& b);

 private:
  OpKind kind_;
  std::shared_ptr<const void> attrs_;
};

}  // namespace ricci
