// PNG by libpng, which jumps where it fails: what it jumps over has nothing to be destroyed.
#ifdef RICCI_IMAGES

#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <png.h>

#include "io/image_decoder.h"

namespace ricci::io {
namespace {

// Deflate makes at most so many bytes of one.
constexpr std::uint64_t MostExpansion = 1032;
constexpr png_alloc_size_t MostChunkBytes = 8U << 20U;

struct PngFile {
  explicit PngFile(ByteSpan from) : bytes(from) {}
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;
  ~PngFile() { png_destroy_read_struct(&png, &info, nullptr); }

  ByteSpan bytes;
  std::size_t at = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::array<char, 160> fault{};
};

void on_error(png_structp png, png_const_charp message) {
  auto* file = static_cast<PngFile*>(png_get_error_ptr(png));
  std::strncpy(file->fault.data(), message, file->fault.size() - 1);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, std::size_t count) {
  auto* file = static_cast<PngFile*>(png_get_io_ptr(png));
  if (count > file->bytes.size() - file->at) png_error(png, "it is cut short");
  std::memcpy(to, file->bytes.data() + file->at, count);
  file->at += count;
}

bool begin(PngFile& f, const ImageLimits& limits) {
  f.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &f, on_error, on_warning);
  if (f.png == nullptr) return false;
  f.info = png_create_info_struct(f.png);
  if (f.info == nullptr) return false;
  if (setjmp(png_jmpbuf(f.png)) != 0) return false;
  const auto most =
      static_cast<png_uint_32>(limits.max_side < 0x7FFFFFFF ? limits.max_side : 0x7FFFFFFF);
  png_set_user_limits(f.png, most, most);
  // Of texts, profiles and the like nothing is unpacked: only pixels are wanted.
  png_set_keep_unknown_chunks(f.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_chunk_cache_max(f.png, 1);
  png_set_chunk_malloc_max(f.png, MostChunkBytes);
  png_set_read_fn(f.png, &f, on_read);
  png_read_info(f.png, f.info);
  return true;
}

// Bytes of 8 bits, one for each channel.
bool settle(PngFile& f) {
  if (setjmp(png_jmpbuf(f.png)) != 0) return false;
  png_set_expand(f.png);
  png_set_scale_16(f.png);
  (void)png_set_interlace_handling(f.png);
  png_read_update_info(f.png, f.info);
  return true;
}

bool read_rows(PngFile& f, png_bytepp rows) {
  if (setjmp(png_jmpbuf(f.png)) != 0) return false;
  png_read_image(f.png, rows);
  png_read_end(f.png, nullptr);
  return true;
}

[[noreturn]] void fail(const PngFile& f) {
  image_fault("PNG", f.fault[0] == '\0' ? "it cannot be read" : f.fault.data());
}

}  // namespace

Tensor parse_png(ByteSpan bytes, const ImageLimits& limits) {
  PngFile f(bytes);
  if (!begin(f, limits)) fail(f);
  const std::uint64_t width = png_get_image_width(f.png, f.info);
  const std::uint64_t height = png_get_image_height(f.png, f.info);
  require_size(width, height, limits);
  if (png_get_rowbytes(f.png, f.info) * height / MostExpansion > bytes.size()) {
    image_fault("PNG",
                fmt::format("{} × {} pixels cannot lie in {} bytes", width, height, bytes.size()));
  }
  if (!settle(f)) fail(f);
  const std::uint64_t channels = png_get_channels(f.png, f.info);
  if (png_get_bit_depth(f.png, f.info) != 8 ||
      png_get_rowbytes(f.png, f.info) != width * channels) {
    image_fault("PNG", "its rows are of no size that is known");
  }
  Tensor out = Tensor::zeros({DType::U8,
                              {static_cast<std::int64_t>(height), static_cast<std::int64_t>(width),
                               static_cast<std::int64_t>(channels)}});
  auto* to = reinterpret_cast<png_bytep>(out.mutable_data());
  std::vector<png_bytep> rows;
  for (std::uint64_t y = 0; y < height; ++y) rows.push_back(to + y * width * channels);
  if (!read_rows(f, rows.data())) fail(f);
  return out;
}

}  // namespace ricci::io

#endif
