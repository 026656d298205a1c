// JPEG by libjpeg, which jumps where it fails: what it jumps over has nothing to be destroyed.
#ifdef RICCI_IMAGES

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h uses FILE

#include <jerror.h>
#include <jpeglib.h>

#include "io/image_decoder.h"

namespace ricci::io {
namespace {

// Scans of a progressive picture: a file of many scans of the whole of it would take for ever.
constexpr int MostScans = 500;

struct JpegFile {
  JpegFile() = default;
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;
  ~JpegFile() { jpeg_destroy_decompress(&info); }

  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> fault{};
};

void on_error(j_common_ptr info) {
  auto* file = static_cast<JpegFile*>(info->client_data);
  info->err->format_message(info, file->fault.data());
  std::longjmp(file->jump, 1);
}

// Warnings are of data that are damaged, but for some that many programs cause.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA: return;
    default: on_error(info);
  }
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= MostScans) return;
  info->err->msg_code = JERR_BAD_PROGRESSION;
  on_error(info);
}

bool begin(JpegFile& f, ByteSpan bytes) {
  f.info.err = jpeg_std_error(&f.errors);
  f.errors.error_exit = on_error;
  f.errors.emit_message = on_message;
  f.info.client_data = &f;
  if (setjmp(f.jump) != 0) return false;
  jpeg_create_decompress(&f.info);
  f.info.client_data = &f;
  f.progress.progress_monitor = on_progress;
  f.info.progress = &f.progress;
  jpeg_mem_src(&f.info, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  (void)jpeg_read_header(&f.info, TRUE);
  if (f.info.jpeg_color_space == JCS_GRAYSCALE) {
    f.info.out_color_space = JCS_GRAYSCALE;
  } else if (f.info.num_components == 4) {
    f.info.out_color_space = JCS_CMYK;
  } else {
    f.info.out_color_space = JCS_RGB;
  }
  return true;
}

bool start(JpegFile& f) {
  if (setjmp(f.jump) != 0) return false;
  (void)jpeg_start_decompress(&f.info);
  return true;
}

bool read_rows(JpegFile& f, JSAMPLE* to) {
  if (setjmp(f.jump) != 0) return false;
  const std::size_t row_bytes =
      std::size_t{f.info.output_width} * static_cast<std::size_t>(f.info.output_components);
  while (f.info.output_scanline < f.info.output_height) {
    JSAMPROW row = to + f.info.output_scanline * row_bytes;
    (void)jpeg_read_scanlines(&f.info, &row, 1);
  }
  (void)jpeg_finish_decompress(&f.info);
  return true;
}

// Inks, which Adobe writes inverted.
Tensor from_inks(const Tensor& inks, bool inverted) {
  Tensor out = Tensor::zeros({DType::U8, {inks.dims()[0], inks.dims()[1], 3}});
  const auto* in = reinterpret_cast<const std::uint8_t*>(inks.data());
  auto* to = reinterpret_cast<std::uint8_t*>(out.mutable_data());
  const auto flip = static_cast<unsigned>(inverted ? 0 : 255);
  for (std::int64_t i = 0; i < inks.dims()[0] * inks.dims()[1]; ++i, in += 4, to += 3) {
    for (int c = 0; c < 3; ++c) {
      to[c] = static_cast<std::uint8_t>(((in[c] ^ flip) * (in[3] ^ flip) + 127U) / 255U);
    }
  }
  return out;
}

}  // namespace

Tensor parse_jpeg(ByteSpan bytes, const ImageLimits& limits) {
  JpegFile f;
  if (!begin(f, bytes)) image_fault("JPEG", f.fault.data());
  require_size(f.info.image_width, f.info.image_height, limits);
  if (!start(f)) image_fault("JPEG", f.fault.data());
  Tensor out = Tensor::zeros({DType::U8,
                              {static_cast<std::int64_t>(f.info.output_height),
                               static_cast<std::int64_t>(f.info.output_width),
                               static_cast<std::int64_t>(f.info.output_components)}});
  if (!read_rows(f, reinterpret_cast<JSAMPLE*>(out.mutable_data()))) {
    image_fault("JPEG", f.fault.data());
  }
  return f.info.out_color_space == JCS_CMYK ? from_inks(out, f.info.saw_Adobe_marker != 0) : out;
}

}  // namespace ricci::io

#endif
