#include "train/writing.h"

#include <algorithm>

#include <fmt/format.h>

namespace ricci::tool {

std::string answers(const std::vector<std::int64_t>& said, const std::vector<std::int64_t>& right) {
  std::string first = "says";
  std::string second = "is  ";
  std::string third = "    ";
  std::size_t count = 0;
  for (std::size_t i = 0; i < said.size() && i < right.size(); ++i) {
    first += fmt::format(" {:>2}", said[i]);
    second += fmt::format(" {:>2}", right[i]);
    third += said[i] == right[i] ? "   " : "  ^";
    count += said[i] == right[i] ? 1 : 0;
  }
  return fmt::format("{}\n{}\n{}\n{} of {} right", first, second, third, count, said.size());
}

nn::MambaModel stepping(const nn::MambaLm& trained) {
  nn::MambaModel out;
  out.tokens = trained.tokens;
  for (const nn::MambaLmLayer& layer : trained.layers) {
    out.layers.push_back({layer.norm, layer.mixer});
  }
  out.norm = trained.norm;
  return out;
}

std::string Writer::write_on(const WritingOptions& options,
                             const std::function<void(const std::string&)>& piece) {
  std::vector<std::int32_t> tokens = tokenizer_.encode(options.prompt, false);
  if (tokens.empty()) tokens.push_back(0);
  const auto places = static_cast<std::size_t>(generator_->max_places());  // 0: any number
  std::string text = options.prompt;
  GenerateOptions how{.max_tokens = options.length, .sampling = options.sampling};
  for (; how.max_tokens > 0; ++how.sampling.seed) {
    if (places > 0 && tokens.size() > places) {
      const std::size_t kept = std::max<std::size_t>(places / 2, 1);
      tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(kept));
    }
    const std::vector<std::int32_t> window = tokens;
    (void)(*generator_)(window, how, [&](std::int32_t token) {
      tokens.push_back(token);
      --how.max_tokens;
      const std::string bytes = tokenizer_.bytes(token);
      if (piece) piece(bytes);
      text += bytes;
      return true;
    });
  }
  return text;
}

}  // namespace ricci::tool
