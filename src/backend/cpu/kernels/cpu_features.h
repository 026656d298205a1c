// Which instruction sets this machine's processor has, by the names compilers give them.
#pragma once

#include <string_view>

namespace ricci::cpu {

/// Is it a name `cpu_has` knows?
[[nodiscard]] bool can_check_feature(std::string_view name) noexcept;
/// True for names it does not know.
[[nodiscard]] bool cpu_has(std::string_view name) noexcept;

}  // namespace ricci::cpu
