#include "ricci/io/image.h"

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "io/image_decoder.h"

namespace ricci::io {
namespace {

constexpr std::string_view PngFront = "\x89PNG\r\n\x1a\n";
constexpr std::string_view JpegFront = "\xFF\xD8\xFF";

// Brightness as television has it, in whole numbers.
std::uint8_t grey_of(const std::uint8_t* rgb) {
  const std::uint32_t sum = 19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2];
  return static_cast<std::uint8_t>((sum + 0x8000U) >> 16U);
}

Tensor with_channels(const Tensor& from, int wanted) {
  const auto has = static_cast<std::size_t>(from.dims()[2]);
  const auto want = static_cast<std::size_t>(wanted);
  if (wanted == 0 || has == want) return from;
  Tensor out = Tensor::zeros({DType::U8, {from.dims()[0], from.dims()[1], wanted}});
  const auto* in = reinterpret_cast<const std::uint8_t*>(from.data());
  auto* to = reinterpret_cast<std::uint8_t*>(out.mutable_data());
  const auto pixels = static_cast<std::size_t>(from.dims()[0] * from.dims()[1]);
  const bool is_grey = has < 3;
  const bool has_opacity = has == 2 || has == 4;
  for (std::size_t i = 0; i < pixels; ++i, in += has, to += want) {
    if (want == 1) {
      to[0] = is_grey ? in[0] : grey_of(in);
      continue;
    }
    for (std::size_t c = 0; c < 3; ++c) to[c] = is_grey ? in[0] : in[c];
    if (want == 4) to[3] = has_opacity ? in[has - 1] : 255;
  }
  return out;
}

}  // namespace

void require_size(std::uint64_t width, std::uint64_t height, const ImageLimits& limits) {
  const auto most = static_cast<std::uint64_t>(limits.max_side);
  if (width > 0 && height > 0 && width <= most && height <= most &&
      width * height <= static_cast<std::uint64_t>(limits.max_pixels)) {
    return;
  }
  file_fault("image_size",
             fmt::format("the picture is said to have {} × {} pixels, more than a side of {} or {} "
                         "in all, or none",
                         width, height, limits.max_side, limits.max_pixels),
             0, "ImageLimits allows more, if the file is trusted");
}

void image_fault(std::string_view format, std::string_view message) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "image",
                             .message = fmt::format("the {} file is damaged: {}", format, message),
                             .where = {},
                             .notes = {},
                             .help = "fetch or write it again"});
}

#ifdef RICCI_IMAGES
bool reads_images() noexcept { return true; }
#else
bool reads_images() noexcept { return false; }
Tensor parse_png(ByteSpan, const ImageLimits&) { return {}; }
Tensor parse_jpeg(ByteSpan, const ImageLimits&) { return {}; }
#endif

Tensor parse_image(std::span<const std::byte> bytes, const ImageOptions& options) {
  if (!reads_images()) {
    throw UserError(ErrorCode::Refused, "this build of Ricci reads no pictures",
                    "build it with -D RICCI_IMAGES=ON, or convert them to NPY");
  }
  if (options.channels != 0 && options.channels != 1 && options.channels != 3 &&
      options.channels != 4) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("a picture is asked for with {} channels", options.channels),
                    "1 (grey), 3, 4 (with opacity), or 0: as many as there are");
  }
  const std::string_view text = as_text(bytes);
  if (text.starts_with(PngFront)) {
    return with_channels(parse_png(bytes, options.limits), options.channels);
  }
  if (text.starts_with(JpegFront)) {
    return with_channels(parse_jpeg(bytes, options.limits), options.channels);
  }
  file_fault("image", "this is neither a PNG nor a JPEG file", 0, "other formats are not read");
}

Tensor read_image(const std::string& path, const ImageOptions& options) {
  const std::vector<std::byte> bytes = read_file(path, options.limits.max_file_bytes);
  try {
    return parse_image(bytes, options);
  } catch (const UserError& e) {
    if (e.code() != ErrorCode::File) throw;
    throw in_file(e, path);
  }
}

}  // namespace ricci::io
