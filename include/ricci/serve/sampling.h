// How the next token is drawn from logits.
//
//   Sampler draw({.temperature = 0.8, .top_k = 40, .seed = 7});
//   std::int32_t next = draw(logits, tokens);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ricci {

struct Sampling {
  double temperature = 1;         ///< what logits are divided by; 0: the likeliest token
  std::int64_t top_k = 0;         ///< of the so many likeliest; 0: of all
  double top_p = 1;               ///< of the likeliest that together have this probability
  double repetition_penalty = 1;  ///< logits of tokens there were: over it, or times it if negative
  std::uint64_t seed = 0;

  /// UserError(attr) when one is out of its range.
  void check() const;
  bool operator==(const Sampling&) const = default;
};

/// Draws one token after the other; what it draws depends on the seed, on how many it has drawn and
/// on what it is given, and on nothing else.
class Sampler {
 public:
  explicit Sampler(const Sampling& how);
  /// `seen`: the tokens so far, for the repetition penalty. UserError(refused) when a logit is NaN
  /// or there is none above -∞. Of equal logits the first is likelier.
  [[nodiscard]] std::int32_t operator()(std::span<const float> logits,
                                        std::span<const std::int32_t> seen);

 private:
  void penalise(std::span<const std::int32_t> seen);
  [[nodiscard]] std::int32_t likeliest() const;
  [[nodiscard]] std::int32_t drawn();
  void keep_likeliest();

  Sampling how_;
  std::uint64_t drawn_ = 0;
  std::vector<double> logits_;
  std::vector<std::int32_t> candidates_;  // the likeliest first, where only some are drawn from
};

}  // namespace ricci
