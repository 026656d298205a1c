// The class of every op at compile time.
#pragma once

#include "ricci/op/ops.h"

namespace ricci::rule {

template <OpStruct T>
inline constexpr OpClass class_of = OpClass::Primitive;

#define RICCI_LEAF(Type, builder) \
  template <>                     \
  inline constexpr OpClass class_of<op::Type> = OpClass::Leaf;
#define RICCI_STRUCTURED(Type, builder) \
  template <>                           \
  inline constexpr OpClass class_of<op::Type> = OpClass::Structured;
#define RICCI_STRUCTURED_FAMILY RICCI_STRUCTURED
#define RICCI_COMPOSITE(Type, builder) \
  template <>                          \
  inline constexpr OpClass class_of<op::Type> = OpClass::Composite;
#define RICCI_CONTROL(Type, builder) \
  template <>                        \
  inline constexpr OpClass class_of<op::Type> = OpClass::Control;
#define RICCI_CUSTOM(Type, builder) \
  template <>                       \
  inline constexpr OpClass class_of<op::Type> = OpClass::Custom;
#define RICCI_BLOCK(Type, builder) \
  template <>                      \
  inline constexpr OpClass class_of<op::Type> = OpClass::Block;
#include "ricci/op/list.def"

}  // namespace ricci::rule
