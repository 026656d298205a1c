// Programs whose derivatives were computed by JAX; see gradients.py for what is stored.
//
// One set of numbers serves f64 and f32: inputs are exact in both, and the program in f32 is the
// same text with the narrower types. Forward over reverse and reverse over reverse give the same
// second derivatives, so both are compared with one array.
#include <algorithm>
#include <complex>
#include <filesystem>
#include <map>
#include <regex>

#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/leaf.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"

#include "support/compare.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::reference_gradients_test {
namespace {

const std::filesystem::path Folder = RICCI_SOURCE_DIR "/tests/reference/values/gradients";

using Names = std::vector<std::string>;

struct Program {
  std::string family;
  std::string name;
};
// Shown when a test is listed or fails.
void PrintTo(const Program& p, std::ostream* out) { *out << p.family << "." << p.name; }

std::string text_of(const std::string& family) {
  return read_text((Folder / (family + ".ric")).string());
}

std::vector<Program> programs() {
  std::vector<Program> out;
  const std::regex heading("graph @([a-z0-9_]+)");
  for (const auto& entry : std::filesystem::directory_iterator(Folder)) {
    if (entry.path().extension() != ".ric") continue;
    const std::string family = entry.path().stem();
    const std::string text = text_of(family);
    for (std::sregex_iterator it(text.begin(), text.end(), heading), end; it != end; ++it) {
      out.push_back({family, (*it)[1]});
    }
  }
  std::ranges::sort(out, {}, [](const Program& p) { return std::pair(p.family, p.name); });
  return out;
}

enum class Precision { Double, Single };

DType in_precision(DType dtype, Precision precision) {
  if (precision == Precision::Double) return dtype;
  if (dtype == DType::F64) return DType::F32;
  return dtype == DType::C128 ? DType::C64 : dtype;
}

Tensor in_precision(const Tensor& t, Precision precision) {
  const Type type{in_precision(t.dtype(), precision), t.type().dims};
  if (type.dtype == t.dtype()) return t;
  return Tensor::from_numbers<std::complex<double>>(type, t.numbers<std::complex<double>>());
}

// Two independent implementations in one precision; a sum's rounding errors are as large as its
// largest terms, so the largest element sets the scale.
Tolerance between_systems(const Tensor& expected, Precision precision) {
  double largest = 0;
  for (const std::complex<double> v : expected.numbers<std::complex<double>>()) {
    largest = std::max(largest, std::abs(v));
  }
  return precision == Precision::Double ? Tolerance{1e-10, 1e-12 * (1 + largest)}
                                        : Tolerance{1e-5, 1e-5 * (1 + largest)};
}

// A program, its feeds and what is stored about it.
class Stored {
 public:
  Stored(const Program& p, Precision precision) : precision_(precision), graph_(read(p)) {
    for (auto& [key, tensor] : io::read_npz((Folder / (p.family + ".npz")).string())) {
      if (key.starts_with(p.name + ".")) arrays_.emplace(key.substr(p.name.size() + 1), tensor);
    }
    verify(graph_);
    for (const NodeId in : graph_.inputs()) {
      const std::string& name = graph_.node(in).op.as<op::Input>()->name;
      feeds_.emplace(name, at("in." + name));
      if (has("d." + name)) wrt_.push_back(name);
    }
  }

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Feeds& feeds() const { return feeds_; }
  [[nodiscard]] const Names& wrt() const { return wrt_; }
  [[nodiscard]] std::vector<ValueRef> refs() const { return {wrt_.begin(), wrt_.end()}; }
  [[nodiscard]] bool has(const std::string& key) const { return arrays_.contains(key); }
  [[nodiscard]] Tensor at(const std::string& key) const {
    return in_precision(arrays_.at(key), precision_);
  }
  void expect(const Tensor& actual, const std::string& key) const {
    const Tensor expected = at(key);
    EXPECT_TRUE(close(actual, expected, between_systems(expected, precision_))) << key;
  }

 private:
  [[nodiscard]] Graph read(const Program& p) const {
    std::string text = text_of(p.family);
    if (precision_ == Precision::Single) {
      text = std::regex_replace(text, std::regex("\\bf64\\b"), "f32");
      text = std::regex_replace(text, std::regex("\\bc128\\b"), "c64");
    }
    for (Graph& g : parse(text, {.file = p.family})) {
      if (g.name() == p.name) return std::move(g);
    }
    throw std::runtime_error("no graph " + p.name);
  }

  Precision precision_;
  Graph graph_;
  std::map<std::string, Tensor> arrays_;
  Feeds feeds_;
  Names wrt_;
};

Feeds with(Feeds feeds, const std::string& name, const Tensor& value) {
  feeds.insert_or_assign(name, value);
  return feeds;
}

Feeds with_directions(const Stored& s, const Transformed& t, Feeds feeds) {
  for (const std::string& name : s.wrt()) {
    feeds = with(std::move(feeds), t.names.at("tangent_" + name), s.at("v." + name));
  }
  return feeds;
}

// A derivative that is zero for want of a path is zero here as it is in JAX.
Transformed gradients_of(const Stored& s) {
  return grad(s.graph(), s.refs(), {.zero_missing_wrt = true, .external_seed = true});
}

void check_first_order(const Stored& s) {
  const Transformed reverse = grad_with_loss_opts(s.graph(), s.refs(), GradOptions::training());
  verify(reverse.graph);
  const auto out =
      interpret(reverse.graph, with(s.feeds(), reverse.names.at("d_output"), s.at("u")));
  const std::size_t first = out.size() - s.wrt().size();
  s.expect(out[0], "out");
  for (std::size_t i = 0; i < s.wrt().size(); ++i) s.expect(out[first + i], "d." + s.wrt()[i]);

  const Transformed forward = jvp(s.graph(), s.refs());
  verify(forward.graph);
  const auto tangents = interpret(forward.graph, with_directions(s, forward, s.feeds()));
  s.expect(tangents[s.graph().outputs().size()], "t");
}

void check_second_order(const Stored& s) {
  const Transformed first = gradients_of(s);
  const Feeds feeds = with(s.feeds(), first.names.at("d_output"), s.at("u"));

  const Transformed forward = jvp(first.graph, s.refs());
  verify(forward.graph);
  const auto along = interpret(forward.graph, with_directions(s, forward, feeds));
  const Transformed reverse = vjp(first.graph, s.refs(), GradOptions::training());
  verify(reverse.graph);
  Feeds seeded = feeds;
  for (std::size_t i = 0; i < s.wrt().size(); ++i) {
    const std::string seed = reverse.names.at("d_output_" + std::to_string(i));
    seeded = with(std::move(seeded), seed, s.at("v." + s.wrt()[i]));
  }
  const auto back = interpret(reverse.graph, seeded);
  for (std::size_t i = 0; i < s.wrt().size(); ++i) {
    const std::string key = "dd." + s.wrt()[i];
    SCOPED_TRACE("forward over reverse, then reverse over reverse");
    s.expect(along[s.wrt().size() + i], key);
    s.expect(back[s.wrt().size() + i], key);
  }
}

void check_whole_matrices(const Stored& s) {
  if (s.has("j." + s.wrt()[0])) {
    for (const Transformed& t : {jacfwd(s.graph(), s.refs()), jacrev(s.graph(), s.refs())}) {
      const auto out = interpret(t.graph, s.feeds());
      for (std::size_t i = 0; i < s.wrt().size(); ++i) s.expect(out[i], "j." + s.wrt()[i]);
    }
  }
  if (s.has("h." + s.wrt()[0] + "." + s.wrt()[0])) {
    const Transformed t = hessian(s.graph(), s.refs());
    const auto out = interpret(t.graph, s.feeds());
    std::size_t i = 0;
    for (const std::string& a : s.wrt()) {
      for (const std::string& b : s.wrt()) s.expect(out[i++], "h." + a + "." + b);
    }
  }
}

class ReferenceGradients : public ::testing::TestWithParam<Program> {};

TEST_P(ReferenceGradients, FirstOrderInF64) { check_first_order({GetParam(), Precision::Double}); }
TEST_P(ReferenceGradients, FirstOrderInF32) { check_first_order({GetParam(), Precision::Single}); }
TEST_P(ReferenceGradients, SecondOrderAndWholeMatrices) {
  const Stored s(GetParam(), Precision::Double);
  check_second_order(s);
  check_whole_matrices(s);
}

INSTANTIATE_TEST_SUITE_P(Jax, ReferenceGradients, ::testing::ValuesIn(programs()),
                         [](const auto& p) { return p.param.family + "_" + p.param.name; });

}  // namespace
}  // namespace ricci::testing::reference_gradients_test
