#include "train/data.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/support/text.h"
#include "ricci/train/digits.h"

namespace ricci::tool {
namespace {

void require_data(const std::string& path) {
  if (path.empty() || is_there(path)) return;
  throw UserError(ErrorCode::File, fmt::format("there is no data at '{}'", path),
                  "name a file or a folder with --data, or leave it out to try things");
}

std::string file_text(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Tokenizer tokenizer_for(const RunSettings& s, const std::string& own, const std::string& text) {
  if (!own.empty() && is_there(own)) return Tokenizer::load(own);
  if (!s.tokenizer.empty()) return Tokenizer::load(s.tokenizer);
  if (s.vocabulary == 256) return {};
  return Tokenizer::train(text, {.vocabulary = s.vocabulary});
}

// Windows of what is kept back do not overlap.
TokenOptions windows(const RunSettings& s, std::int64_t stride, std::int64_t vocabulary) {
  return {.window = s.context, .stride = stride, .vocabulary = vocabulary};
}

std::int64_t kept_back(const RunSettings& s, std::int64_t count, bool only_test) {
  if (only_test) return count;
  return static_cast<std::int64_t>(s.held_out * static_cast<double>(count));
}

[[noreturn]] void too_short(const RunSettings& s, std::size_t tokens) {
  throw UserError(
      ErrorCode::Shape,
      fmt::format("the text has {} tokens, too few for pieces of {}", tokens, s.context),
      "give it a longer text, or make --context smaller");
}

// Any bytes are a text; those of arrays and folders of images are meant for other kinds.
void require_text(const RunSettings& s) {
  const bool arrays = s.data.ends_with(".npz") || s.data.ends_with(".npy");
  if (!arrays && !is_folder(s.data)) return;
  throw UserError(
      ErrorCode::File, fmt::format("'{}' is no text", s.data),
      fmt::format("{} reads a text, or tokens in a file that ends in .bin; cnn, mlp and "
                  "vit take images",
                  s.kind));
}

[[noreturn]] void wrong_images(const std::string& path, const std::string& what) {
  throw UserError(ErrorCode::Shape, fmt::format("'{}': {}", path, what),
                  "an archive has 'x', [examples, channels, height, width], [examples, height, "
                  "width] or [examples, numbers], and 'y', whole numbers [examples]");
}

struct Examples {
  Array x, y;
};

// A model has an output for each class, up to the last.
void require_classes(const std::string& path, const Array& y) {
  constexpr std::int64_t Most = 1'000'000;
  for (const std::int64_t c : y.to_vector<std::int64_t>()) {
    if (c < 0 || c >= Most) {
      wrong_images(path,
                   fmt::format("'y' has a class of {}, and classes are 0 to {}", c, Most - 1));
    }
  }
}

Examples examples_in(const std::string& path) {
  const std::map<std::string, Array> found = load_npz(path);
  for (const char* name : {"x", "y"}) {
    if (!found.contains(name)) wrong_images(path, fmt::format("there is no array '{}'", name));
  }
  Array x = found.at("x");
  Array y = found.at("y");
  if (x.rank() < 2 || x.rank() > 4 || x.size() == 0) {
    wrong_images(path, fmt::format("'x' is {}", x.type().to_string()));
  }
  const bool is_bytes = x.dtype() == DType::U8;
  if (is_complex(x.dtype())) wrong_images(path, "'x' is complex");
  if (y.rank() != 1 || is_float(y.dtype()) || is_complex(y.dtype())) {
    wrong_images(path, fmt::format("'y' is {}", y.type().to_string()));
  }
  if (y.dim(0) != x.dim(0)) {
    wrong_images(path, fmt::format("'x' has {} examples, 'y' {}", x.dim(0).to_string(),
                                   y.dim(0).to_string()));
  }
  require_classes(path, y);
  x = cast(x, DType::F32);
  if (is_bytes) x = x / 255;
  if (x.rank() == 3) x = expand_dims(x, 1);
  return {x.eval(), cast(y, DType::I32).eval()};
}

Examples drawn_examples(const RunSettings& s) {
  const DrawnDigits drawn = drawn_digits(s.examples, 1, s.size);
  return {drawn.images, drawn.labels};
}

nn::ImageOptions shape_of(const Examples& e) {
  const auto classes = static_cast<std::int64_t>(max(e.y).item()) + 1;
  if (e.x.rank() == 2) {
    return {.channels = 1, .height = 1, .width = e.x.dim(1).value(), .classes = classes};
  }
  return {.channels = e.x.dim(1).value(),
          .height = e.x.dim(2).value(),
          .width = e.x.dim(3).value(),
          .classes = classes};
}

ImageData shared_out(const RunSettings& s, const Dataset<ImageBatch>& all,
                     const nn::ImageOptions& image, bool only_test) {
  ImageData out;
  out.image = image;
  const auto shuffled = all.shuffle(static_cast<std::uint64_t>(s.seed));
  const std::int64_t back = kept_back(s, all.size(), only_test);
  out.test = shuffled.take(back);
  out.train = shuffled.skip(back);
  return out;
}

}  // namespace

TextData text_data(const RunSettings& s, const std::string& tokenizer_file, bool only_test) {
  require_data(s.data);
  TextData out;
  if (s.data.ends_with(".bin")) {
    out.tokenizer = tokenizer_for(s, tokenizer_file, "");
    const auto all = token_windows(s.data, windows(s, s.context, out.tokenizer.size()));
    const std::int64_t back = kept_back(s, all.size(), only_test);
    out.train = all.take(all.size() - back);
    out.test = all.skip(all.size() - back);
    if ((only_test ? out.test : out.train).empty()) too_short(s, 0);
    return out;
  }
  require_text(s);
  const std::string text = s.data.empty() ? std::string(bundled_text()) : file_text(s.data);
  out.tokenizer = tokenizer_for(s, tokenizer_file, text);
  const std::vector<std::int32_t> tokens = out.tokenizer.encode(text, false);
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::int64_t back = kept_back(s, count, only_test);
  const std::span<const std::int32_t> all(tokens);
  const auto cut = static_cast<std::size_t>(count - back);
  out.train = token_windows(all.first(cut), windows(s, 1, 0));
  out.test = token_windows(all.subspan(cut), windows(s, s.context, 0));
  if ((only_test ? out.test : out.train).empty()) too_short(s, only_test ? tokens.size() : cut);
  return out;
}

ImageData image_data(const RunSettings& s, bool only_test) {
  require_data(s.data);
  if (!s.data.empty() && is_folder(s.data)) {
    const ImageFolder folder = image_folder(s.data, {.height = s.size, .width = s.size});
    const auto classes = static_cast<std::int64_t>(folder.classes.size());
    return shared_out(s, folder.data,
                      {.channels = 3, .height = s.size, .width = s.size, .classes = classes},
                      only_test);
  }
  if (!s.data.empty() && !s.data.ends_with(".npz")) {
    throw UserError(ErrorCode::File, fmt::format("'{}' is no folder and no .npz", s.data),
                    "images come from a folder with one folder a class, or an archive with 'x' and "
                    "'y'");
  }
  const Examples all = s.data.empty() ? drawn_examples(s) : examples_in(s.data);
  const nn::ImageOptions image = shape_of(all);
  if (s.kind != "mlp" && all.x.rank() != 4) {
    wrong_images(
        s.data, fmt::format("'x' is {}, and {} looks at images", all.x.type().to_string(), s.kind));
  }
  return shared_out(s, Dataset<ImageBatch>(ImageBatch{all.x, all.y}), image, only_test);
}

}  // namespace ricci::tool
