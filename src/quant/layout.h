// Where the fields of each block format lie: from bytes to fields and back, nothing lost on the
// way. Decoding is arithmetic on the fields, encoding a search for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ricci/type/small_float.h"

namespace ricci::quant {

/// Blocks of 32 with one scale: value = d·code, or d·code + m.
struct PlainBlock {
  static constexpr int Length = 32;
  Float16 d;
  Float16 extra;  ///< m, or what a Q8_1 block keeps there: d·Σ code
  std::array<std::int8_t, Length> code{};
};
struct PlainLayout {
  int bits;        ///< of a code: 4, 5 or 8
  bool has_extra;  ///< a second f16 after d
  int bias;        ///< what is added to a code before it is stored
};
/// d, extra, the fifth bits (a word of 32, one an element), then codes: nibbles, of which the low
/// ones are the first half of the block, or bytes.
[[nodiscard]] PlainBlock unpack_plain(const std::byte* block, const PlainLayout& layout) noexcept;
void pack_plain(const PlainBlock& fields, const PlainLayout& layout, std::byte* block) noexcept;

/// Blocks of 256 in sub-blocks of 16 or 32: value = d·scale·code - dmin·min, all of them whole
/// numbers of few bits.
struct AffineBlock {
  static constexpr int Length = 256;
  Float16 d;
  Float16 dmin;
  std::array<std::uint8_t, 16> scale{};
  std::array<std::uint8_t, 16> min{};
  std::array<std::uint8_t, Length> code{};
};
[[nodiscard]] AffineBlock unpack_q2_k(const std::byte* block) noexcept;
[[nodiscard]] AffineBlock unpack_q4_k(const std::byte* block) noexcept;
[[nodiscard]] AffineBlock unpack_q5_k(const std::byte* block) noexcept;
void pack_q2_k(const AffineBlock& fields, std::byte* block) noexcept;
void pack_q4_k(const AffineBlock& fields, std::byte* block) noexcept;
void pack_q5_k(const AffineBlock& fields, std::byte* block) noexcept;

/// Blocks of 256 in sub-blocks of 16: value = d·scale·code.
struct SymmetricBlock {
  static constexpr int Length = 256;
  Float16 d;
  std::array<std::int8_t, 16> scale{};
  std::array<std::int8_t, Length> code{};
};
[[nodiscard]] SymmetricBlock unpack_q3_k(const std::byte* block) noexcept;
[[nodiscard]] SymmetricBlock unpack_q6_k(const std::byte* block) noexcept;
void pack_q3_k(const SymmetricBlock& fields, std::byte* block) noexcept;
void pack_q6_k(const SymmetricBlock& fields, std::byte* block) noexcept;

/// Q8_K: value = d·code; sums of 16 codes for those who multiply by it.
struct WideBlock {
  static constexpr int Length = 256;
  float d = 0;
  std::array<std::int8_t, Length> code{};
  std::array<std::int16_t, 16> sum{};
};
[[nodiscard]] WideBlock unpack_q8_k(const std::byte* block) noexcept;
void pack_q8_k(const WideBlock& fields, std::byte* block) noexcept;

/// FP4 codes under scales of 8 bits, `Groups` of `Length / Groups` elements. In every group the low
/// nibbles are its first half.
template <int Elements, int GroupCount>
struct Fp4Fields {
  static constexpr int Length = Elements;
  static constexpr int Groups = GroupCount;
  static constexpr int GroupLength = Elements / GroupCount;
  std::array<std::uint8_t, GroupCount> scale{};
  std::array<std::uint8_t, Elements> code{};
};
using Mxfp4Fields = Fp4Fields<32, 1>;
using Nvfp4Fields = Fp4Fields<64, 4>;

template <class Block>
[[nodiscard]] Block unpack_fp4(const std::byte* block) noexcept {
  Block b;
  constexpr int Half = Block::GroupLength / 2;
  for (int g = 0; g < Block::Groups; ++g) {
    b.scale[static_cast<std::size_t>(g)] = std::to_integer<std::uint8_t>(block[g]);
    for (int i = 0; i < Half; ++i) {
      const auto byte = std::to_integer<unsigned>(block[Block::Groups + g * Half + i]);
      const auto at = static_cast<std::size_t>(g * Block::GroupLength + i);
      b.code[at] = static_cast<std::uint8_t>(byte & 15U);
      b.code[at + Half] = static_cast<std::uint8_t>(byte >> 4);
    }
  }
  return b;
}

template <class Block>
void pack_fp4(const Block& b, std::byte* block) noexcept {
  constexpr int Half = Block::GroupLength / 2;
  for (int g = 0; g < Block::Groups; ++g) {
    block[g] = static_cast<std::byte>(b.scale[static_cast<std::size_t>(g)]);
    for (int i = 0; i < Half; ++i) {
      const auto at = static_cast<std::size_t>(g * Block::GroupLength + i);
      block[Block::Groups + g * Half + i] =
          static_cast<std::byte>(b.code[at] | (b.code[at + Half] << 4));
    }
  }
}

}  // namespace ricci::quant
