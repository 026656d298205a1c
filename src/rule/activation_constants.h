// The constants of selu: with them its values keep zero mean and unit variance from layer to layer.
#pragma once

namespace ricci::rule {

inline constexpr double SeluScale = 1.0507009873554804934193349852946;
inline constexpr double SeluAlpha = 1.6732632423543772848170429916717;

}  // namespace ricci::rule
