#include "serve/service/picture_json.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "ricci/data/files.h"
#include "ricci/io/image.h"
#include "ricci/support/error.h"

#include "data/pictures.h"

namespace ricci::serve {
namespace {

// Of all pictures of a request together, as they are and as they are wanted: small files may unfold
// to much, and requests wait.
constexpr std::int64_t MostPixels = std::int64_t{1} << 23;
constexpr std::size_t MostNumbers = std::size_t{1} << 22;

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> from_base64(std::string_view text) {
  const std::size_t padded = text.size();
  while (padded - text.size() < 2 && text.ends_with('=')) text.remove_suffix(1);
  if (padded != text.size() && padded % 4 != 0) return std::nullopt;
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xFFU);
  }
  return out;
}

bool takes_pictures(const Type& type) {
  if (type.dtype != DType::F32 || type.dims.size() != 4) return false;
  for (std::size_t axis = 1; axis < 4; ++axis) {
    if (!type.dims[axis].is_static() || type.dims[axis].value() < 1) return false;
  }
  const std::int64_t channels = type.dims[1].value();
  return channels == 1 || channels == 3 || channels == 4;
}

bool pictures_come(io::JsonCursor& json, std::string_view text) {
  std::size_t at = json.offset();
  if (at < text.size() && text[at] == '[') at = text.find_first_not_of(" \t\r\n", at + 1);
  return at < text.size() && text[at] == '"';
}

Tensor read_pictures(io::JsonCursor& json, std::string_view text, const Type& type) {
  const auto size = [&](std::size_t axis) { return type.dims[axis].value(); };
  std::vector<float> out;
  std::int64_t count = 0;
  std::int64_t pixels = 0;
  const auto one = [&] {
    const std::optional<std::string> bytes = from_base64(json.string());
    if (!bytes) json.fault("a picture is the bytes of a PNG or JPEG in base64");
    try {
      const Tensor picture = io::parse_image(
          std::as_bytes(std::span<const char>(*bytes)),
          {.channels = static_cast<int>(size(1)),
           .limits = {.max_pixels = std::max<std::int64_t>(MostPixels - pixels, 1)}});
      pixels += picture.dims()[0] * picture.dims()[1];
      const Tensor fitting = resized(picture, size(2), size(3));
      const std::size_t before = out.size();
      if (count > 0 && before + static_cast<std::size_t>(fitting.numel()) > MostNumbers) {
        json.fault(fmt::format("the pictures of a request are {} numbers at most", MostNumbers));
      }
      out.resize(before + static_cast<std::size_t>(fitting.numel()));
      put_picture(fitting, out.data() + before);
    } catch (const UserError& e) {
      json.fault(e.diagnostic().message);
    }
    ++count;
  };
  const std::size_t at = json.offset();
  if (at < text.size() && text[at] == '"') {
    one();
  } else {
    json.array(one);
  }
  const Dim& wanted = type.dims[0];
  if (wanted.is_static() && wanted.value() != count) {
    json.fault(fmt::format("{} takes {} pictures, and here are {}", type.to_string(),
                           wanted.value(), count));
  }
  return Tensor::of<float>({count, size(1), size(2), size(3)}, out);
}

}  // namespace ricci::serve
