// Kernels that read across the order of memory are cut in rows and in columns.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"

#include "backend/agreement.h"
#include "backend/all_widths.h"
#include "backend/cpu/run/tiling.h"
#include "support/compare.h"

namespace ricci::testing::crossed_tiles_test {
namespace {

// Few rows that are long are work for many tiles: each has some of the columns.
TEST(BackendCrossedTiles, FewRowsAreCutInColumns) {
  for (const auto& [rows, columns] :
       {std::pair{12, 50001}, std::pair{17, 40000}, std::pair{40, 20011}, std::pair{130, 4099}}) {
    SCOPED_TRACE(fmt::format("[{}, {}]", rows, columns));
    Graph g("few");
    const Value x = g.input("x", f32({columns, rows}));
    const Value row = g.input("r", f32({rows, 1}));
    const Value column = g.input("c", f32({columns}));
    g.set_outputs({add(mul(transpose(x, {.perm = {1, 0}}), exp(row)), column)});
    const std::vector<loop::Kernel> kernels = make_program(g).kernels;
    EXPECT_TRUE(std::ranges::any_of(kernels, [](const loop::Kernel& k) {
      return !cpu::crossed_loads(k).empty() && cpu::tile_count(k) > (k.rows() + 15) / 16;
    }));
    expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())},
                                    {"r", random_tensor(5, row.type())},
                                    {"c", random_tensor(6, column.type())}});
  }
}

// Every element is in one tile, and squares of whole vectors are left whole.
TEST(BackendCrossedTiles, TilesCoverRowsAndColumns) {
  for (const auto& [rows, columns] :
       {std::pair{12, 50001}, std::pair{17, 40000}, std::pair{2048, 300}, std::pair{130, 4099}}) {
    Graph g("tiles");
    const Value x = g.input("x", f32({columns, rows}));
    g.set_outputs({transpose(x, {.perm = {1, 0}})});
    const loop::Kernel k = make_program(g).kernels.at(0);
    const std::int64_t tiles = cpu::tile_count(k);
    std::vector<int> covered(static_cast<std::size_t>(rows * columns), 0);
    for (std::int64_t t = 0; t < tiles; ++t) {
      const cpu::TileRange range = cpu::tile_range(k, tiles, t);
      EXPECT_EQ(range.first % 16, 0);
      for (std::int64_t i = range.first; i < range.last; ++i) {
        for (std::int64_t j = range.inner_first; j < range.inner_last; ++j) {
          ++covered[static_cast<std::size_t>(i * columns + j)];
        }
      }
    }
    EXPECT_EQ(std::ranges::count(covered, 1), rows * columns);
  }
}

// Vectors of all widths, those too short for squares among them.
TEST(BackendCrossedTiles, VectorsOfAnyWidthDoThem) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    Graph g("widths");
    const Value x = g.input("x", {dtype, {20011, 19}});
    g.set_outputs({neg(transpose(x, {.perm = {1, 0}}))});
    const Feeds feeds{{"x", random_tensor(3, x.type())}};
    const std::vector<Tensor> expected = interpret(g, feeds);
    for (const cpu::TargetInfo& target : targets_of_all_widths()) {
      EXPECT_TRUE(same(run_kernels(g, feeds, target)[0], expected[0]))
          << target.name << ", " << target.vector_bits << " bits";
    }
  }
}

// A kernel that runs with the parts of a product has some rows at a time, and all columns of them.
TEST(BackendCrossedTiles, RowsOfAProductAreWhole) {
  Graph g("product");
  const Value a = g.input("a", f32({203, 41}));
  const Value b = g.input("b", f32({41, 517}));
  const Value c = g.input("c", f32({517, 203}));
  g.set_outputs({tanh(add(matmul(a, b), transpose(c, {.perm = {1, 0}})))});
  expect_agreement_everywhere(g, {{"a", random_tensor(3, a.type())},
                                  {"b", random_tensor(4, b.type())},
                                  {"c", random_tensor(5, c.type())}});
}

}  // namespace
}  // namespace ricci::testing::crossed_tiles_test
