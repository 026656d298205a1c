// Offsets are those of the formats' public descriptions; all numbers are little-endian.
#include "quant/layout.h"

#include <bit>
#include <cstring>

namespace ricci::quant {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are stored little-endian");

template <class T>
T load_field(const std::byte* at) noexcept {
  T v{};
  std::memcpy(&v, at, sizeof v);
  return v;
}
template <class T>
void store_field(T v, std::byte* at) noexcept {
  std::memcpy(at, &v, sizeof v);
}
Float16 load_f16(const std::byte* at) noexcept {
  Float16 v;
  v.bits = load_field<std::uint16_t>(at);
  return v;
}
unsigned byte_at(const std::byte* at, std::size_t i) noexcept {
  return std::to_integer<unsigned>(at[i]);
}
void put_bits(std::byte& at, unsigned bits, std::size_t shift) noexcept {
  at |= static_cast<std::byte>(bits << shift);
}

}  // namespace

PlainBlock unpack_plain(const std::byte* block, const PlainLayout& layout) noexcept {
  PlainBlock b;
  b.d = load_f16(block);
  block += 2;
  if (layout.has_extra) {
    b.extra = load_f16(block);
    block += 2;
  }
  std::uint32_t fifth = 0;
  if (layout.bits == 5) {
    fifth = load_field<std::uint32_t>(block);
    block += 4;
  }
  for (std::size_t i = 0; i < PlainBlock::Length; ++i) {
    if (layout.bits == 8) {
      b.code[i] = load_field<std::int8_t>(block + i);
      continue;
    }
    const unsigned byte = byte_at(block, i % 16);
    const unsigned nibble = i < 16 ? byte & 15U : byte >> 4;
    const unsigned code = nibble | ((fifth >> i) & 1U) << 4;
    b.code[i] = static_cast<std::int8_t>(static_cast<int>(code) - layout.bias);
  }
  return b;
}

void pack_plain(const PlainBlock& b, const PlainLayout& layout, std::byte* block) noexcept {
  store_field(b.d.bits, block);
  block += 2;
  if (layout.has_extra) {
    store_field(b.extra.bits, block);
    block += 2;
  }
  std::byte* fifth_at = block;
  std::uint32_t fifth = 0;
  if (layout.bits == 5) block += 4;
  if (layout.bits == 8) {
    std::memcpy(block, b.code.data(), b.code.size());
    return;
  }
  for (std::size_t i = 0; i < 16; ++i) {
    const auto low = static_cast<unsigned>(b.code[i] + layout.bias);
    const auto high = static_cast<unsigned>(b.code[i + 16] + layout.bias);
    block[i] = static_cast<std::byte>((low & 15U) | (high & 15U) << 4);
    fifth |= (low >> 4) << i | (high >> 4) << (i + 16);
  }
  if (layout.bits == 5) store_field(fifth, fifth_at);
}

// Q2_K: scales[16] @0 (scale in the low nibble, min in the high), codes[64] @16, d @80, dmin @82.
// Element 128a + 32g + l is in bits 2g of byte 32a + l.
AffineBlock unpack_q2_k(const std::byte* block) noexcept {
  AffineBlock b;
  for (std::size_t j = 0; j < 16; ++j) {
    b.scale[j] = static_cast<std::uint8_t>(byte_at(block, j) & 15U);
    b.min[j] = static_cast<std::uint8_t>(byte_at(block, j) >> 4);
  }
  for (std::size_t e = 0; e < 256; ++e) {
    const std::size_t a = e / 128;
    const std::size_t g = e % 128 / 32;
    b.code[e] = static_cast<std::uint8_t>((byte_at(block, 16 + 32 * a + e % 32) >> (2 * g)) & 3U);
  }
  b.d = load_f16(block + 80);
  b.dmin = load_f16(block + 82);
  return b;
}

void pack_q2_k(const AffineBlock& b, std::byte* block) noexcept {
  std::memset(block, 0, 84);
  for (std::size_t j = 0; j < 16; ++j) {
    block[j] = static_cast<std::byte>(b.scale[j] | b.min[j] << 4);
  }
  for (std::size_t e = 0; e < 256; ++e) {
    put_bits(block[16 + 32 * (e / 128) + e % 32], b.code[e], 2 * (e % 128 / 32));
  }
  store_field(b.d.bits, block + 80);
  store_field(b.dmin.bits, block + 82);
}

// Q3_K: high bits[32] @0, codes[64] @32 as in Q2_K, scales[12] @96, d @108. The high bit of element
// 128a + 32g + l is bit 4a + g of byte l; where it is clear, 4 is taken off. Scale j is four bits
// of byte j mod 8 and two of byte 8 + j mod 4, less 32.
SymmetricBlock unpack_q3_k(const std::byte* block) noexcept {
  SymmetricBlock b;
  const std::byte* scales = block + 96;
  for (std::size_t j = 0; j < 16; ++j) {
    const unsigned low = j < 8 ? byte_at(scales, j) & 15U : byte_at(scales, j - 8) >> 4;
    const unsigned high = (byte_at(scales, 8 + j % 4) >> (2 * (j / 4))) & 3U;
    b.scale[j] = static_cast<std::int8_t>(static_cast<int>(low | high << 4) - 32);
  }
  for (std::size_t e = 0; e < 256; ++e) {
    const unsigned low =
        (byte_at(block, 32 + 32 * (e / 128) + e % 32) >> (2 * (e % 128 / 32))) & 3U;
    const unsigned high = (byte_at(block, e % 32) >> (e / 32)) & 1U;
    b.code[e] = static_cast<std::int8_t>(static_cast<int>(low) - (high != 0 ? 0 : 4));
  }
  b.d = load_f16(block + 108);
  return b;
}

void pack_q3_k(const SymmetricBlock& b, std::byte* block) noexcept {
  std::memset(block, 0, 110);
  std::byte* scales = block + 96;
  for (std::size_t j = 0; j < 16; ++j) {
    const auto s = static_cast<unsigned>(b.scale[j] + 32);
    put_bits(scales[j % 8], s & 15U, j < 8 ? 0 : 4);
    put_bits(scales[8 + j % 4], s >> 4, 2 * (j / 4));
  }
  for (std::size_t e = 0; e < 256; ++e) {
    const auto code = static_cast<unsigned>(b.code[e] + 4);
    put_bits(block[32 + 32 * (e / 128) + e % 32], code & 3U, 2 * (e % 128 / 32));
    put_bits(block[e % 32], code >> 2, e / 32);
  }
  store_field(b.d.bits, block + 108);
}

namespace {

// Eight scales and eight mins of 6 bits in 12 bytes: those of the first four sub-blocks in the low
// six bits of bytes 0 to 3 and 4 to 7; of the others four bits in bytes 8 to 11, and two on top of
// the first.
void unpack_sixes(const std::byte* s, AffineBlock& b) noexcept {
  for (std::size_t j = 0; j < 4; ++j) {
    b.scale[j] = static_cast<std::uint8_t>(byte_at(s, j) & 63U);
    b.min[j] = static_cast<std::uint8_t>(byte_at(s, j + 4) & 63U);
  }
  for (std::size_t j = 4; j < 8; ++j) {
    b.scale[j] =
        static_cast<std::uint8_t>((byte_at(s, j + 4) & 15U) | (byte_at(s, j - 4) >> 6) << 4);
    b.min[j] = static_cast<std::uint8_t>((byte_at(s, j + 4) >> 4) | (byte_at(s, j) >> 6) << 4);
  }
}

void pack_sixes(const AffineBlock& b, std::byte* s) noexcept {
  for (std::size_t j = 0; j < 4; ++j) {
    s[j] = static_cast<std::byte>(b.scale[j] | (b.scale[j + 4] >> 4) << 6);
    s[j + 4] = static_cast<std::byte>(b.min[j] | (b.min[j + 4] >> 4) << 6);
    s[j + 8] = static_cast<std::byte>((b.scale[j + 4] & 15U) | (b.min[j + 4] & 15U) << 4);
  }
}

// d @0, dmin @2, scales[12] @4, then codes: element 64p + l is the low nibble of byte 32p + l,
// element 64p + 32 + l the high one; a fifth bit is bit e / 32 of the byte l of `fifths`.
AffineBlock unpack_q45_k(const std::byte* block, const std::byte* fifths,
                         const std::byte* codes) noexcept {
  AffineBlock b;
  b.d = load_f16(block);
  b.dmin = load_f16(block + 2);
  unpack_sixes(block + 4, b);
  for (std::size_t e = 0; e < 256; ++e) {
    const unsigned byte = byte_at(codes, 32 * (e / 64) + e % 32);
    unsigned code = e % 64 < 32 ? byte & 15U : byte >> 4;
    if (fifths != nullptr) code |= ((byte_at(fifths, e % 32) >> (e / 32)) & 1U) << 4;
    b.code[e] = static_cast<std::uint8_t>(code);
  }
  return b;
}

void pack_q45_k(const AffineBlock& b, std::byte* block, std::byte* fifths,
                std::byte* codes) noexcept {
  store_field(b.d.bits, block);
  store_field(b.dmin.bits, block + 2);
  pack_sixes(b, block + 4);
  for (std::size_t e = 0; e < 256; ++e) {
    put_bits(codes[32 * (e / 64) + e % 32], b.code[e] & 15U, e % 64 < 32 ? 0 : 4);
    if (fifths != nullptr) put_bits(fifths[e % 32], b.code[e] >> 4U, e / 32);
  }
}

}  // namespace

AffineBlock unpack_q4_k(const std::byte* block) noexcept {
  return unpack_q45_k(block, nullptr, block + 16);
}
void pack_q4_k(const AffineBlock& b, std::byte* block) noexcept {
  std::memset(block, 0, 144);
  pack_q45_k(b, block, nullptr, block + 16);
}

// As Q4_K with fifth bits[32] @16 and codes @48.
AffineBlock unpack_q5_k(const std::byte* block) noexcept {
  return unpack_q45_k(block, block + 16, block + 48);
}
void pack_q5_k(const AffineBlock& b, std::byte* block) noexcept {
  std::memset(block, 0, 176);
  pack_q45_k(b, block, block + 16, block + 48);
}

// Q6_K: low nibbles[128] @0, high pairs[64] @128, scales[16] @192, d @208. Element 128a + 32g + l
// has the low (g < 2) or high nibble of byte 64a + 32(g mod 2) + l and bits 2g of byte 32a + l,
// less 32.
SymmetricBlock unpack_q6_k(const std::byte* block) noexcept {
  SymmetricBlock b;
  for (std::size_t e = 0; e < 256; ++e) {
    const std::size_t a = e / 128;
    const std::size_t g = e % 128 / 32;
    const unsigned byte = byte_at(block, 64 * a + 32 * (g % 2) + e % 32);
    const unsigned low = g < 2 ? byte & 15U : byte >> 4;
    const unsigned high = (byte_at(block, 128 + 32 * a + e % 32) >> (2 * g)) & 3U;
    b.code[e] = static_cast<std::int8_t>(static_cast<int>(low | high << 4) - 32);
  }
  std::memcpy(b.scale.data(), block + 192, 16);
  b.d = load_f16(block + 208);
  return b;
}

void pack_q6_k(const SymmetricBlock& b, std::byte* block) noexcept {
  std::memset(block, 0, 192);
  for (std::size_t e = 0; e < 256; ++e) {
    const std::size_t a = e / 128;
    const std::size_t g = e % 128 / 32;
    const auto code = static_cast<unsigned>(b.code[e] + 32);
    put_bits(block[64 * a + 32 * (g % 2) + e % 32], code & 15U, g < 2 ? 0 : 4);
    put_bits(block[128 + 32 * a + e % 32], code >> 4, 2 * g);
  }
  std::memcpy(block + 192, b.scale.data(), 16);
  store_field(b.d.bits, block + 208);
}

// Q8_K: d as f32 @0, codes[256] @4, sums[16] @260.
WideBlock unpack_q8_k(const std::byte* block) noexcept {
  WideBlock b;
  b.d = load_field<float>(block);
  std::memcpy(b.code.data(), block + 4, 256);
  std::memcpy(b.sum.data(), block + 260, 32);
  return b;
}

void pack_q8_k(const WideBlock& b, std::byte* block) noexcept {
  store_field(b.d, block);
  std::memcpy(block + 4, b.code.data(), 256);
  std::memcpy(block + 260, b.sum.data(), 32);
}

}  // namespace ricci::quant
