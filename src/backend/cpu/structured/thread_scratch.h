// Room for what a tile keeps to itself: one piece per thread, kept from call to call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ricci::cpu {

/// At least `bytes` bytes, 64-aligned, for the calling thread alone; valid until it asks for more.
[[nodiscard]] std::byte* thread_scratch(std::int64_t bytes);
/// How many bytes it takes for that.
[[nodiscard]] std::int64_t thread_scratch_bytes(std::int64_t bytes);

}  // namespace ricci::cpu
