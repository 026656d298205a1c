// Generation with a past that is kept is computing the whole sequence anew, whatever is beside it.
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "ricci/serve.h"
#include "ricci/support/error.h"

namespace ricci::generation_test {
namespace {

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

nn::Gpt small_gpt(std::optional<double> rope = {}) {
  nn::seed(5);
  nn::Gpt out({.vocabulary = 23,
               .context = 200,
               .width = 16,
               .heads = 4,
               .layers = 2,
               .rope = rope,
               .kv_heads = rope ? 2 : 0});
  // Far enough apart that rounding makes no other token likeliest.
  out.tokens.w = (out.tokens.w * 40).eval();
  return out;
}

std::vector<std::int32_t> counted(std::int32_t first, std::size_t length) {
  std::vector<std::int32_t> out(length);
  for (std::size_t i = 0; i < length; ++i) {
    out[i] = static_cast<std::int32_t>((static_cast<std::size_t>(first) + i * i + 3 * i) % 23);
  }
  return out;
}

template <class Model>
std::vector<std::int32_t> recomputed(const Model& model, std::vector<std::int32_t> tokens,
                                     std::size_t count) {
  const std::size_t start = tokens.size();
  while (tokens.size() < start + count) {
    const auto length = static_cast<std::int64_t>(tokens.size());
    const Array logits = model(array(tokens, {1, length}));
    tokens.push_back(static_cast<std::int32_t>(argmax(logits(0, -1)).item()));
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(start), tokens.end()};
}

template <class Model>
void expect_recomputed(const Model& model) {
  const GenerateOptions greedy{.max_tokens = 6, .sampling = {.temperature = 0}};
  // Lengths around the sizes of pieces: one token, a whole piece, one more, and more than the
  // fewest places of a past.
  std::vector<std::vector<std::int32_t>> prompts;
  for (const std::size_t length : {1U, 2U, 8U, 9U, 33U, 62U, 70U, 131U}) {
    prompts.push_back(counted(static_cast<std::int32_t>(length), length));
  }
  Generator together(model, {.rows = 3});
  const std::vector<Generated> made = together(prompts, greedy);
  Generator alone(model);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    SCOPED_TRACE(prompts[i].size());
    EXPECT_EQ(made[i].finished, FinishReason::Length);
    EXPECT_EQ(made[i].tokens, recomputed(model, prompts[i], 6));
    EXPECT_EQ(alone(prompts[i], greedy).tokens, made[i].tokens);
  }
  EXPECT_LE(together.compiled(), 16U);
}

TEST(NnGeneration, OfGptIsComputingAnew) { expect_recomputed(small_gpt()); }
TEST(NnGeneration, WithRotaryPositionsIsComputingAnew) { expect_recomputed(small_gpt(10000.0)); }

TEST(NnGeneration, OfLlamaIsComputingAnew) {
  nn::seed(6);
  nn::Llama model(
      {.vocabulary = 23, .width = 16, .hidden = 24, .heads = 4, .kv_heads = 1, .layers = 2});
  model.head.w = (model.head.w * 60).eval();
  expect_recomputed(model);
}

TEST(NnGeneration, OfMambaIsComputingAnew) {
  nn::seed(7);
  nn::MambaModel model({.vocabulary = 23, .width = 12, .layers = 2, .block = {.state = 4}});
  model.tokens.w = (model.tokens.w * 40).eval();
  expect_recomputed(model);
}

// Logits, not only what is likeliest, and to a tolerance: 2e-5 of logits of about 1.
TEST(NnGeneration, LogitsAreThoseOfTheWholeSequence) {
  const nn::Gpt model = small_gpt(10000.0);
  const std::vector<std::int32_t> tokens = counted(4, 12);
  const Array whole = model(array(tokens, {1, 12}));
  nn::Gpt::Past past = model.make_past(1, 16);
  // 5 places with 3 of padding, then one by one.
  std::vector<std::int32_t> padded(tokens.begin(), tokens.begin() + 5);
  padded.resize(8, 0);
  const auto i32s = [](std::int32_t x) { return array(std::vector<std::int32_t>{x}); };
  auto [logits, now] = model.advance(array(padded, {1, 8}), {i32s(0), i32s(5)}, past);
  EXPECT_TRUE(allclose(logits[0], whole(0, 4), 2e-5, 2e-5));
  for (std::size_t l = 0; l < past.size(); ++l) {
    past[l].k = past[l].k.at(slice(), slice(0, 5)).set(now[l].k(slice(), slice(0, 5)));
    past[l].v = past[l].v.at(slice(), slice(0, 5)).set(now[l].v(slice(), slice(0, 5)));
  }
  for (std::int64_t t = 5; t < 12; ++t) {
    const std::vector<std::int32_t> one{tokens[static_cast<std::size_t>(t)]};
    std::tie(logits, now) =
        model.advance(array(one, {1, 1}), {i32s(static_cast<std::int32_t>(t)), i32s(1)}, past);
    EXPECT_TRUE(allclose(logits[0], whole(0, t), 2e-5, 2e-5)) << t;
    for (std::size_t l = 0; l < past.size(); ++l) {
      past[l].k = past[l].k.at(slice(), slice(t, t + 1)).set(now[l].k);
      past[l].v = past[l].v.at(slice(), slice(t, t + 1)).set(now[l].v);
    }
  }
}

TEST(NnGeneration, SequencesComeAndGo) {
  const nn::Gpt model = small_gpt();
  Generator g(model, {.rows = 2});
  const GenerateOptions greedy{.max_tokens = 5, .sampling = {.temperature = 0}};
  const SequenceId first = g.add(counted(1, 3), greedy);
  (void)g.step();
  const SequenceId second = g.add(counted(2, 40), greedy);
  EXPECT_FALSE(g.has_room());
  EXPECT_NE(refusal([&] { (void)g.add(counted(1, 3), greedy); }).find("error[busy]"),
            std::string::npos);
  (void)g.step();
  g.remove(first);
  g.remove(first);
  EXPECT_EQ(g.active(), 1U);
  // In the row that is free again nothing is left of what was there.
  const SequenceId third = g.add(counted(9, 4), greedy);
  std::vector<std::int32_t> made;
  std::vector<std::int32_t> of_second;
  while (g.active() > 0) {
    for (const TokenEvent& e : g.step()) {
      if (e.sequence == third && e.token) made.push_back(*e.token);
      if (e.sequence == second && e.token) of_second.push_back(*e.token);
    }
  }
  EXPECT_EQ(made, recomputed(model, counted(9, 4), 5));
  EXPECT_EQ(g.compiled(), g.compiled());
}

TEST(NnGeneration, GoesOnWithAModelThatWasTrainedFurther) {
  const nn::Gpt first = small_gpt();
  nn::Gpt second = first;
  second.tokens.w = (second.tokens.w + 3 * normal(Key(4), second.tokens.w.shape())).eval();
  const GenerateOptions greedy{.max_tokens = 6, .sampling = {.temperature = 0}};
  const std::vector<std::int32_t> prompt = counted(3, 9);
  Generator generate(first);
  const std::vector<std::int32_t> before = generate(prompt, greedy).tokens;
  const std::size_t compiled = generate.compiled();
  generate.set_model(second);
  EXPECT_EQ(generate(prompt, greedy).tokens, recomputed(second, prompt, 6));
  EXPECT_EQ(generate.compiled(), compiled);
  generate.set_model(first);
  EXPECT_EQ(generate(prompt, greedy).tokens, before);
  EXPECT_NE(refusal([&] { generate.set_model(small_gpt(10000.0)); }).find("another model"),
            std::string::npos);
  (void)generate.add(prompt, greedy);
  EXPECT_NE(refusal([&] { generate.set_model(second); }).find("busy"), std::string::npos);
}

TEST(NnGeneration, AStopChangesNothing) {
  const nn::Gpt model = small_gpt();
  Generator g(model, {.rows = 2});
  const GenerateOptions greedy{.max_tokens = 4, .sampling = {.temperature = 0}};
  (void)g.add(counted(1, 12), greedy);
  StopSource stop;
  stop.request_stop();
  EXPECT_NE(refusal([&] { (void)g.step(stop.token()); }).find("stopped"), std::string::npos);
  std::vector<std::int32_t> made;
  while (g.active() > 0) {
    for (const TokenEvent& e : g.step()) made.push_back(e.token.value());
  }
  EXPECT_EQ(made, recomputed(model, counted(1, 12), 4));
}

TEST(NnGeneration, EndsWhereItShould) {
  const nn::Gpt model = small_gpt();
  Generator g(model, {.max_places = 12});
  const std::vector<std::int32_t> tokens = recomputed(model, counted(3, 5), 7);
  const Generated all = g(counted(3, 5), {.max_tokens = 100, .sampling = {.temperature = 0}});
  EXPECT_EQ(all.finished, FinishReason::Context);
  EXPECT_EQ(all.tokens.size(), 8U);  // the last one is drawn and never read
  const Generated cut =
      g(counted(3, 5),
        {.max_tokens = 100, .sampling = {.temperature = 0}, .stop_tokens = {tokens[3]}});
  EXPECT_EQ(cut.finished, FinishReason::Stop);
  EXPECT_LT(cut.tokens.size(), 4U);
  int seen = 0;
  const Generated stopped = g(counted(3, 5), {}, [&](std::int32_t) { return ++seen < 2; });
  EXPECT_EQ(stopped.tokens.size(), 2U);
  EXPECT_EQ(g.active(), 0U);
  EXPECT_NE(refusal([&] { (void)g.add({}, {}); }).find("no token"), std::string::npos);
  EXPECT_NE(refusal([&] { (void)g.add(std::vector<std::int32_t>{23}, {}); }).find("has 23"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)g.add(counted(1, 13), {}); }).find("12 places"), std::string::npos);
}

TEST(NnGeneration, SeedsDecideWhatIsDrawn) {
  const nn::Gpt model = [] {
    nn::seed(5);
    return nn::Gpt({.vocabulary = 23, .context = 64, .width = 16, .heads = 4, .layers = 1});
  }();
  Generator g(model, {.rows = 4});
  const auto draw = [&](std::uint64_t seed) {
    return g(counted(1, 3), {.max_tokens = 12, .sampling = {.seed = seed}}).tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  const std::vector<std::vector<std::int32_t>> same(3, counted(1, 3));
  const auto many = g(same, {.max_tokens = 12, .sampling = {.seed = 1}});
  EXPECT_EQ(many[0].tokens, draw(1));
  EXPECT_EQ(many[1].tokens, draw(2));
}

TEST(NnGeneration, FewBitsAreNearlyTheSame) {
  nn::seed(9);
  const nn::Llama model(
      {.vocabulary = 64, .width = 256, .hidden = 256, .heads = 4, .layers = 1, .tied = true});
  const Array tokens = array({{3, 1, 40, 5, 9}});
  const Array exact = model(tokens);
  for (const char* scheme : {"q8_0", "int8_block_32", "q4_k", "q6_k"}) {
    SCOPED_TRACE(scheme);
    const nn::Llama packed = nn::pack_weights(model, scheme);
    EXPECT_TRUE(packed.tokens.packed && packed.blocks[0].attention.q.packed);
    const double error = max(abs(packed(tokens) - exact)).item() / max(abs(exact)).item();
    EXPECT_LT(error, std::string(scheme) == "q4_k" ? 0.3 : 0.05);
    Generator g(packed);
    EXPECT_EQ(g(counted(1, 5), {.max_tokens = 3}).tokens.size(), 3U);
  }
  EXPECT_NE(refusal([&] { (void)nn::pack_weights(model, "q3_z"); }).find("'q3_z'"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)nn::pack_weights(model, "q4_k", {.pattern = "x"});
            }).find("none matches 'x'"),
            std::string::npos);
}

TEST(NnGeneration, LogitsThatAreNoNumbersAreSaid) {
  nn::Gpt model = small_gpt();
  model.norm.b = full({16}, std::nan(""));
  Generator g(model);
  EXPECT_NE(refusal([&] { (void)g(counted(1, 3), {}); }).find("NaN"), std::string::npos);
  EXPECT_EQ(g.active(), 0U);
}

}  // namespace
}  // namespace ricci::generation_test
