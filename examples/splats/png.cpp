#include "png.h"

#include <algorithm>
#include <array>

namespace splats {
namespace {

void put_big_endian(std::string& out, std::uint32_t n) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(n >> shift & 0xFF));
}

// The remainder that PNG checks its chunks with (CRC-32).
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

void put_chunk(std::string& out, std::string_view kind, std::string_view data) {
  put_big_endian(out, static_cast<std::uint32_t>(data.size()));
  const std::string body = std::string(kind) + std::string(data);
  out += body;
  put_big_endian(out, checksum(body));
}

// A zlib stream of blocks that are stored as they are.
std::string stored(std::string_view data) {
  constexpr std::size_t LargestBlock = 65535;
  std::string out = "\x78\x01";
  for (std::size_t at = 0; at < data.size(); at += LargestBlock) {
    const std::string_view block = data.substr(at, LargestBlock);
    const auto size = static_cast<std::uint16_t>(block.size());
    const bool last = at + block.size() == data.size();
    for (const int byte : {last ? 1 : 0, size & 0xFF, size >> 8, ~size & 0xFF, ~size >> 8 & 0xFF}) {
      out.push_back(static_cast<char>(byte));
    }
    out += block;
  }
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : data) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  put_big_endian(out, b << 16 | a);
  return out;
}

}  // namespace

std::string png_bytes(std::span<const std::uint8_t> rgb, std::uint32_t width,
                      std::uint32_t height) {
  std::string out = "\x89PNG\r\n\x1a\n";
  std::string header;
  put_big_endian(header, width);
  put_big_endian(header, height);
  for (const int byte : {8, 2, 0, 0, 0}) header.push_back(static_cast<char>(byte));  // 8-bit RGB
  put_chunk(out, "IHDR", header);
  std::string rows;
  for (std::size_t row = 0; row < height; ++row) {
    rows.push_back(0);  // not filtered
    for (const std::uint8_t v : rgb.subspan(row * width * 3, std::size_t{width} * 3)) {
      rows.push_back(static_cast<char>(v));
    }
  }
  put_chunk(out, "IDAT", stored(rows));
  put_chunk(out, "IEND", "");
  return out;
}

}  // namespace splats
