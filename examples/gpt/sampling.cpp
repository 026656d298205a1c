#include "sampling.h"

#include <algorithm>
#include <cmath>

namespace gpt {

using namespace ricci;  // NOLINT: examples read better without prefixes

Writer::Writer(Session& session, const Sizes& sizes, Vocabulary vocabulary)
    : sizes_(sizes),
      vocabulary_(std::move(vocabulary)),
      model_(session.compile(make_model(sizes, 1))) {}

void Writer::set_param(const std::string& name, const Tensor& value) {
  model_.set_param(name, value);
}

std::string Writer::write(const std::string& prompt, std::size_t count, double temperature,
                          std::mt19937_64& random) const {
  std::string text = prompt;
  Tokens tokens = vocabulary_.encode(prompt);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t token = next(tokens, temperature, random);
    tokens.push_back(static_cast<std::int32_t>(token));
    text.push_back(vocabulary_.decode(token));
  }
  return text;
}

std::size_t Writer::next(const Tokens& so_far, double temperature, std::mt19937_64& random) const {
  // The model sees the last `context` characters. Where there are fewer, what stands after them
  // does not matter: attention is causal.
  const auto context = static_cast<std::size_t>(sizes_.context);
  const std::size_t seen = std::min(so_far.size(), context);
  Tokens ids(so_far.end() - static_cast<std::ptrdiff_t>(seen), so_far.end());
  ids.resize(context);
  const Tensor input =
      Tensor::of<std::int32_t>({1, sizes_.context}, std::span<const std::int32_t>(ids));
  const Tensor output = model_.run({{"ids", input}})[0];

  const Tensor row = output.narrowed(1, static_cast<std::int64_t>(seen) - 1, 1);
  std::vector<double> chances = row.numbers<double>();
  const double highest = *std::max_element(chances.begin(), chances.end());
  for (double& c : chances) c = std::exp((c - highest) / temperature);
  return std::discrete_distribution<std::size_t>(chances.begin(), chances.end())(random);
}

}  // namespace gpt
