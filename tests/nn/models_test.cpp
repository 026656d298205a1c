// Initialisers, decoding with a cache, adapters on models, and tables of what models are made of.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "ricci/nn.h"
#include "ricci/support/error.h"

namespace ricci::models_test {
namespace {

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(NnInitializers, HaveTheSpreadOfTheirPapers) {  // [FE-4a]
  const Dims matrix = {60, 140};
  const auto deviation = [&](const nn::Initializer& init) {
    return stddev(init(Key(3), matrix)).item();
  };
  EXPECT_NEAR(deviation(nn::glorot_uniform), std::sqrt(2.0 / 200), 0.004);
  EXPECT_NEAR(deviation(nn::glorot_normal), std::sqrt(2.0 / 200), 0.004);
  EXPECT_NEAR(deviation(nn::he_uniform), std::sqrt(2.0 / 60), 0.006);
  EXPECT_NEAR(deviation(nn::he_normal), std::sqrt(2.0 / 60), 0.006);
  EXPECT_NEAR(deviation(nn::lecun_normal), std::sqrt(1.0 / 60), 0.004);
  // Cut off at two deviations, 0.8796 of the spread is left.
  EXPECT_NEAR(deviation(nn::truncated_normal(0.5)), 0.5 * 0.8796, 0.01);
  EXPECT_LE(max(abs(nn::truncated_normal(0.5)(Key(1), matrix))).item(), 1.0);
  EXPECT_LE(max(abs(nn::he_uniform(Key(1), matrix))).item(), std::sqrt(6.0 / 60));
  const nn::Fans fans = nn::fans_of({8, 3, 5, 2});
  EXPECT_EQ(fans.in, 30);
  EXPECT_EQ(fans.out, 80);
  EXPECT_NE(refusal([] { (void)nn::he_normal(Key(1), {3}); }).find("no fans"), std::string::npos);
}

TEST(NnInitializers, OrthogonalOnesAre) {
  const Array tall = nn::orthogonal(Key(1), {6, 4});
  EXPECT_TRUE(allclose(matmul(transpose(tall), tall), eye(4), 1e-5, 1e-5));
  const Array wide = reshape(nn::orthogonal(Key(2), {3, 2, 2}), {3, 4});
  EXPECT_TRUE(allclose(matmul(wide, transpose(wide)), eye(3), 1e-5, 1e-5));
}

TEST(NnInitializers, ASeedMakesTheSameNet) {
  struct Two {
    nn::Linear a{3, 4}, b{3, 4};
  };
  nn::seed(42);
  const Two first;
  const Two second;
  nn::seed(42);
  const Two again;
  EXPECT_TRUE(array_equal(first.a.w, again.a.w));
  EXPECT_TRUE(array_equal(first.b.w, again.b.w));
  EXPECT_FALSE(array_equal(first.a.w, first.b.w));
  EXPECT_FALSE(array_equal(first.a.w, second.a.w));
  EXPECT_NE(refusal([] { nn::Linear{0, 4}; }).find("positive"), std::string::npos);
}

TEST(NnModels, DecodingWithACacheIsFullAttention) {
  nn::seed(4);
  const nn::MultiHeadAttention layer{8, 4, {.kv_heads = 2, .causal = true, .rope = 10000.0}};
  const Array x = normal(Key(5), {2, 6, 8});
  const Array whole = layer(x);
  // A prompt of three places, then one by one.
  auto [head, cache] = layer.decode(x(slice(), slice(0, 3)), layer.make_cache(2, 6));
  EXPECT_TRUE(allclose(head, whole(slice(), slice(0, 3)), 1e-4, 1e-5));
  const auto next = jit([](const nn::MultiHeadAttention& l, const Array& row,
                           const nn::KvCache& c) { return l.decode(row, c); });
  for (std::int64_t t = 3; t < 6; ++t) {
    const auto [y, after] = next(layer, x(slice(), slice(t, t + 1)), cache);
    EXPECT_TRUE(allclose(y, whole(slice(), slice(t, t + 1)), 1e-4, 1e-5)) << t;
    cache = after;
  }
  EXPECT_EQ(next.compiled(), 1U);
  EXPECT_EQ(cache.length.item(), 6);
  const std::string full = refusal([&] { (void)layer.decode(x(slice(), slice(0, 1)), cache); });
  EXPECT_NE(full.find("a cache for 6 places has 6 and is given 1 more"), std::string::npos) << full;
}

TEST(NnModels, GeneratingIsDecodingOneByOne) {
  nn::seed(6);
  for (const std::optional<double> rope : {std::optional<double>(), std::optional(10000.0)}) {
    const nn::Gpt gpt{
        {.vocabulary = 11, .context = 12, .width = 8, .heads = 2, .layers = 2, .rope = rope}};
    EXPECT_EQ(gpt.places.has_value(), !rope.has_value());
    Array ids = array({{1, 2, 3}, {7, 4, 9}});
    const Array made = gpt.generate(ids, 4, Key(1), 0);
    EXPECT_EQ(made.shape(), (Dims{2, 4}));
    for (std::int64_t t = 0; t < 4; ++t) {
      const Array likeliest = cast(argmax(gpt(ids)(slice(), -1)), DType::I32);
      EXPECT_TRUE(array_equal(likeliest, made(slice(), t))) << t;
      ids = concat({ids, expand_dims(likeliest, 1)}, 1);
    }
    const Array drawn = gpt.generate(ids, 5, Key(2), 1.0);
    EXPECT_TRUE(array_equal(drawn, gpt.generate(ids, 5, Key(2), 1.0)));
    EXPECT_FALSE(array_equal(drawn, gpt.generate(ids, 5, Key(3), 1.0)));
  }
}

struct Tower {
  nn::Linear a{3, 4}, b{4, 4};
  nn::Linear head{4, 2};
  Array operator()(const Array& x) const { return head(tanh(b(tanh(a(x))))); }
};
Array fit(const Tower& net, const Array& x, const Array& y) { return mse(net(x), y); }

TEST(NnAdapters, ChangeOnlyWhatTheyShould) {
  nn::seed(8);
  const Tower net;
  const Array x = normal(Key(1), {5, 3});
  const Array y = normal(Key(2), {5, 2});
  for (const nn::AdapterKind& kind :
       {nn::AdapterKind(nn::LoRA{.rank = 2}), nn::AdapterKind(nn::DoRA{.rank = 2}),
        nn::AdapterKind(nn::IA3{})}) {
    SCOPED_TRACE(kind.index());
    const Tower tuned = nn::adapt(net, "?", kind);  // a and b, not head
    EXPECT_TRUE(tuned.a.adapter && tuned.b.adapter && !tuned.head.adapter);
    EXPECT_TRUE(allclose(tuned(x), net(x), 1e-5, 1e-6));  // nothing yet
    Trainer train(tuned, fit, Adam{.learning_rate = 0.05}, {.trainable = nn::is_adapter});
    const double before = train(x, y).item();
    double after = before;
    for (int i = 0; i < 15; ++i) after = train(x, y).item();
    EXPECT_LT(after, before);
    const Tower trained = train.model();
    for (std::size_t i = 0; i < 2; ++i) {
      const nn::Linear& now = i == 0 ? trained.a : trained.b;
      const nn::Linear& was = i == 0 ? net.a : net.b;
      EXPECT_TRUE(array_equal(now.w, was.w) && array_equal(now.b, was.b));
    }
    EXPECT_TRUE(array_equal(trained.head.w, net.head.w));
    // Worked into the weights they do the same.
    const Tower merged = nn::merge_adapters(trained);
    EXPECT_FALSE(merged.a.adapter);
    EXPECT_EQ(leaf_names(merged), leaf_names(net));
    EXPECT_TRUE(allclose(merged(x), trained(x), 1e-4, 1e-5));
    EXPECT_FALSE(allclose(merged(x), net(x), 1e-4, 1e-5));
  }
}

TEST(NnAdapters, SayWhatIsWrong) {
  const Tower net;
  EXPECT_NE(refusal([&] { (void)nn::adapt(net, "c*"); }).find("it has a, b, head"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)nn::adapt(net, "a", nn::LoRA{.rank = 9}); }).find("maps 3 to 4"),
            std::string::npos);
  const Tower once = nn::adapt(net, "a", nn::LoRA{.rank = 1});
  EXPECT_NE(refusal([&] { (void)nn::adapt(once, "*"); }).find("has an adapter already"),
            std::string::npos);
  EXPECT_TRUE(nn::matches("blocks.10.attention.q", "*.attention.?"));
  EXPECT_FALSE(nn::matches("blocks.10.attention.out", "*.attention.?"));
  EXPECT_TRUE(nn::matches("aXbXc", "a*b*c"));
  EXPECT_FALSE(nn::matches("a", ""));
  EXPECT_TRUE(nn::is_adapter("a.adapter.b") && !nn::is_adapter("a.w"));
}

struct Mixed {
  nn::Conv2d c1{1, 8, 3};
  nn::BatchNorm norm{8};
  std::vector<nn::Linear> heads = {nn::Linear{300, 10}, nn::Linear{4, 2, {.bias = false}}};
  Array scale = ones({});
};

TEST(NnSummary, ListsStructsWithArrays) {
  EXPECT_EQ(
      nn::summary(Mixed{}),
      R"(name     type       arrays                                                         params
         Mixed      scale f32[]                                                         1
c1       Conv2d     w f32[8, 1, 3, 3], b f32[8]                                        80
norm     BatchNorm  w f32[8], b f32[8], mean f32[8] (buffer), var f32[8] (buffer)      16
heads.0  Linear     w f32[300, 10], b f32[10]                                       3,010
heads.1  Linear     w f32[4, 2]                                                         8
Mixed: 3,115 params, 16 in buffers, 12.2 KiB
)");
}

TEST(NnSummary, OneArrayIsATable) {
  EXPECT_NE(nn::summary(ones({2, 3})).find("6 params, 24 bytes"), std::string::npos);
}

// From one text to another: a task that wants both the source and the target so far.
TEST(NnModels, AnEncoderDecoderLearnsToTurnTextsAround) {
  nn::seed(3);
  const nn::EncoderDecoder model({.source_vocabulary = 7,
                                  .vocabulary = 8,
                                  .context = 6,
                                  .width = 16,
                                  .heads = 2,
                                  .layers = 2});
  const Array source = array({{1, 2, 3, 4}, {5, 6, 0, 1}});
  const Array target = array({{7, 4, 3}, {7, 1, 0}});
  const Array logits = model(source, target);
  EXPECT_EQ(logits.type().to_string(), "f32[2, 3, 8]");
  // A place sees what is before it, and all of the source.
  const Array later = model(source, array({{7, 4, 5}, {7, 1, 5}}));
  const auto before = [](const Array& l) { return l(slice(), slice(0, 2)); };
  EXPECT_TRUE(allclose(before(later), before(logits), 1e-6, 1e-6));
  const Array other = model(array({{1, 2, 3, 0}, {5, 6, 0, 0}}), target);
  EXPECT_FALSE(allclose(other(slice(), 0), logits(slice(), 0), 1e-6, 1e-6));
  EXPECT_TRUE(allclose(model.decode(target, model.encode(source)), logits, 1e-6, 1e-6));
  EXPECT_NE(refusal([&] {
              (void)model(zeros({1, 7}, {.dtype = int32}), target);
            }).find("an 'EncoderDecoder' with a context of 6 is given 7 places"),
            std::string::npos);

  struct Pair {
    Array from, to;
  };
  Trainer train(
      model,
      [](const nn::EncoderDecoder& m, const Pair& b) {
        const Array first = full_like(b.to(slice(), slice(0, 1)), 7);
        const Array shifted = concatenate({first, b.to(slice(), slice(0, -1))}, 1);
        return cross_entropy(m(b.from, shifted), b.to);
      },
      AdamW{.learning_rate = 1e-2});
  double loss = 0;
  for (std::int64_t i = 0; i < 400; ++i) {
    const Array text = randint(Key(static_cast<std::uint64_t>(i)), {16, 4}, 0, 7);
    loss = train(Pair{text, flip(text, 1)}).item();
  }
  EXPECT_LT(loss, 0.8) << "log 7 is 1.95";
}

}  // namespace
}  // namespace ricci::models_test
