// Programs whose values were computed by NumPy, SciPy and JAX; see make_reference.py.
#include <algorithm>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/leaf.h"

#include "support/compare.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::reference_test {
namespace {

constexpr const char* Folder = RICCI_SOURCE_DIR "/tests/reference/values";

std::vector<std::string> families() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(Folder)) {
    if (entry.path().extension() == ".ric") out.push_back(entry.path().stem());
  }
  std::ranges::sort(out);
  return out;
}

// Two independent implementations in one precision.
Tolerance between_systems(DType dtype) {
  if (dtype == DType::F64 || dtype == DType::C128) return {1e-10, 1e-12};
  if (dtype == DType::F32 || dtype == DType::C64) return {1e-5, 1e-6};
  return tolerance(dtype);
}

class Reference : public ::testing::TestWithParam<std::string> {};

TEST_P(Reference, ValuesAgree) {
  const std::filesystem::path base = std::filesystem::path(Folder) / GetParam();
  std::map<std::string, Tensor> arrays;
  for (auto& [name, tensor] : io::read_npz(base.string() + ".npz")) arrays.emplace(name, tensor);
  const std::vector<Graph> graphs = parse(read_text(base.string() + ".ric"), {.file = GetParam()});
  EXPECT_FALSE(graphs.empty());
  for (const Graph& g : graphs) {
    SCOPED_TRACE(g.name());
    verify(g);
    Feeds feeds;
    for (const NodeId in : g.inputs()) {
      const std::string& name = g.node(in).op.as<op::Input>()->name;
      feeds.emplace(name, arrays.at(g.name() + ".in." + name));
    }
    const std::vector<Tensor> out = interpret(g, feeds);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Tensor& expected = arrays.at(g.name() + ".out." + std::to_string(i));
      EXPECT_TRUE(close(out[i], expected, between_systems(expected.dtype()))) << "output " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Values, Reference, ::testing::ValuesIn(families()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace ricci::testing::reference_test
