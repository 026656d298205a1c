#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "ricci/data/files.h"
#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "data/pictures.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void folder_fault(const std::string& path, std::string message, std::string help) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "images",
                             .message = std::move(message),
                             .where = {.file = path, .line = 0, .column = 0, .text = {}},
                             .notes = {},
                             .help = std::move(help)});
}

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) out.push_back(at->path());
  if (error) {
    folder_fault(folder.string(), fmt::format("cannot read the folder: {}", error.message()), {});
  }
  std::ranges::sort(out);
  return out;
}

// Where each new place begins and ends among the old ones, and what counts how much in it.
struct Share {
  std::int64_t from = 0;
  double weight = 0;
};
std::vector<std::vector<Share>> shares(std::int64_t from, std::int64_t to) {
  std::vector<std::vector<Share>> out(static_cast<std::size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  // Triangles as wide as a new place, and no narrower than an old one.
  const double reach = std::max(1.0, scale);
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    std::vector<Share>& one = out[static_cast<std::size_t>(i)];
    double sum = 0;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - reach));
    const auto last = std::min(from, static_cast<std::int64_t>(centre + reach) + 1);
    for (std::int64_t k = first; k < last; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - centre) / reach;
      if (distance >= 1) continue;
      one.push_back({k, 1 - distance});
      sum += 1 - distance;
    }
    for (Share& s : one) s.weight /= sum;
  }
  return out;
}

// Sums along the middle axis of [outer, from, inner].
std::vector<float> along(const std::vector<float>& in, std::int64_t outer, std::int64_t from,
                         std::int64_t to, std::int64_t inner) {
  if (from == to) return in;
  const auto parts = shares(from, to);
  const auto width = static_cast<std::size_t>(inner);
  std::vector<float> out(static_cast<std::size_t>(outer * to * inner));
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < to; ++i) {
      float* row = out.data() + static_cast<std::size_t>(o * to + i) * width;
      for (const Share& s : parts[static_cast<std::size_t>(i)]) {
        const float* old = in.data() + static_cast<std::size_t>(o * from + s.from) * width;
        for (std::size_t k = 0; k < width; ++k) row[k] += static_cast<float>(s.weight) * old[k];
      }
    }
  }
  return out;
}

struct Listed {
  std::vector<std::string> files;
  std::vector<std::int32_t> classes;
};

Tensor picture_at(const std::string& file, const ImageFolderOptions& options,
                  const StaticDims& size) {
  Tensor picture = io::read_image(file, {.channels = options.channels, .limits = options.limits});
  if (options.height > 0) return resized(picture, options.height, options.width);
  if (picture.dims() == size) return picture;
  folder_fault(file,
               fmt::format("the picture has {} × {} pixels, the first one has {} × {}",
                           picture.dims()[1], picture.dims()[0], size[1], size[0]),
               "give ImageFolderOptions a height and a width to bring all of them to one size");
}

ImageBatch pictures(const Listed& from, const ImageFolderOptions& options, const StaticDims& size,
                    std::span<const std::int64_t> rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  Tensor x = Tensor::zeros({DType::F32, {count, size[2], size[0], size[1]}});
  std::vector<std::int32_t> y;
  const auto each = static_cast<std::size_t>(size[0] * size[1] * size[2]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    put_picture(picture_at(from.files[row], options, size),
                reinterpret_cast<float*>(x.mutable_data()) + i * each);
    y.push_back(from.classes[row]);
  }
  return {x, Tensor::of<std::int32_t>({count}, y)};
}

// Reading a pipe among the pictures would wait for someone to write one.
void refuse_pipes(const std::string& path) {
  if (!is_there(path) || is_plain_file(path) || is_folder(path)) return;
  folder_fault(path, "this is no plain file", {});
}

Listed list_files(const std::string& path, std::vector<std::string>& classes) {
  Listed out;
  const std::vector<fs::path> entries = sorted_entries(path);
  for (const fs::path& entry : entries) {
    if (!is_folder(entry.string())) continue;
    const auto number = static_cast<std::int32_t>(classes.size());
    classes.push_back(entry.filename().string());
    for (const fs::path& file : sorted_entries(entry)) {
      if (!is_picture(file)) continue;
      refuse_pipes(file.string());
      out.files.push_back(file.string());
      out.classes.push_back(number);
    }
  }
  if (!classes.empty()) return out;
  classes.push_back(fs::path(path).filename().string());
  for (const fs::path& file : entries) {
    if (!is_picture(file)) continue;
    refuse_pipes(file.string());
    out.files.push_back(file.string());
  }
  out.classes.assign(out.files.size(), 0);
  return out;
}

}  // namespace

void put_picture(const Tensor& picture, float* to) {
  const auto* in = reinterpret_cast<const std::uint8_t*>(picture.data());
  const auto pixels = static_cast<std::size_t>(picture.dims()[0] * picture.dims()[1]);
  const auto channels = static_cast<std::size_t>(picture.dims()[2]);
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < channels; ++c) {
      to[c * pixels + i] = static_cast<float>(in[i * channels + c]) / 255.0F;
    }
  }
}

Tensor resized(const Tensor& image, std::int64_t height, std::int64_t width) {
  const DefaultFloatEnvironment floats;
  constexpr std::int64_t Most = 65535;
  if (image.rank() != 3 || image.dtype() != DType::U8 || image.numel() == 0 || height < 1 ||
      width < 1 || height > Most || width > Most) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("a picture of {} is to have {} × {} pixels",
                                image.type().to_string(), width, height),
                    "pictures are u8[height, width, channels], of at least one pixel");
  }
  const Tensor plain = image.contiguous();
  const StaticDims& d = plain.dims();
  const auto* in = reinterpret_cast<const std::uint8_t*>(plain.data());
  std::vector<float> values(in, in + plain.numel());
  values = along(values, d[0], d[1], width, d[2]);
  values = along(values, 1, d[0], height, width * d[2]);
  Tensor out = Tensor::zeros({DType::U8, {height, width, d[2]}});
  auto* to = reinterpret_cast<std::uint8_t*>(out.mutable_data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    to[i] = static_cast<std::uint8_t>(std::clamp(std::lround(values[i]), 0L, 255L));
  }
  return out;
}

ImageFolder image_folder(const std::string& path, const ImageFolderOptions& options) {
  if ((options.height > 0) != (options.width > 0) || options.height < 0 || options.width < 0 ||
      (options.channels != 1 && options.channels != 3 && options.channels != 4)) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("pictures are to be {} × {} with {} channels", options.width,
                                options.height, options.channels),
                    "give both height and width or neither, and 1, 3 or 4 channels");
  }
  ImageFolder out;
  auto listed = std::make_shared<const Listed>(list_files(path, out.classes));
  if (listed->files.empty()) {
    folder_fault(path, "there is no picture in the folder",
                 "folders of classes have files that end in .png, .jpg or .jpeg");
  }
  out.files = listed->files;
  StaticDims size = {options.height, options.width, options.channels};
  if (options.height == 0) {
    size =
        io::read_image(listed->files[0], {.channels = options.channels, .limits = options.limits})
            .dims();
  }
  const auto count = static_cast<std::int64_t>(listed->files.size());
  out.data = {count, [listed, options, size](std::span<const std::int64_t> rows) {
                return pictures(*listed, options, size, rows);
              }};
  return out;
}

}  // namespace ricci
