// Small loops are written out, whatever they are: of a length, with a condition, with kept rows. On
// every device they give the numbers of the reference, to the bit where the reference's are
// determined, and the same numbers as loops that are run body by body.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/runtime/session.h"

#include "runtime/models.h"
#include "support/every_device.h"

namespace ricci::testing::written_loops_test {
namespace {

class BackendWrittenLoops : public OnEveryDevice {
 protected:
  // Compiled as one step that is a loop, and without fusion as one that is not.
  void expect_exact(const std::string& text, const Feeds& feeds, bool is_loop = true) const {
    const Graph g = parse_graph(text);
    const std::vector<Tensor> expected = interpret(g, feeds);
    for (const bool fuse : {true, false}) {
      const CompiledGraph f = compile(g, device(), {.fuse = fuse});
      if (is_loop) {
        EXPECT_EQ(f.served_by(0), fuse ? "loop" : "control") << text;
      }
      const std::vector<Tensor> actual = f.run(feeds);
      for (std::size_t r = 0; r < expected.size(); ++r) {
        EXPECT_TRUE(actual[r].identical(expected[r]))
            << text << "\nresult " << r << (fuse ? "" : ", body by body");
      }
    }
  }
};

// x/2 or 3x+1, until 1 is reached: the number of trips is the answer.
constexpr const char* Collatz = R"(
graph @collatz {{
  %x = input "x" : i64[]
  %n, %trips = while %x {{max_iterations = {}}} cond {{
    %c = input "c" : i64[]
    %one = constant 1 : i64[]
    %p = gt %c, %one
    return %p
  }} body {{
    %c = input "c" : i64[]
    %one = constant 1 : i64[]
    %three = constant 3 : i64[]
    %half = shift_right %c, %one
    %odd = bitwise_and %c, %one
    %t = mul %c, %three
    %u = add %t, %one
    %next = where %odd, %u, %half
    return %next
  }}
  return %n, %trips
}}
)";

TEST_P(BackendWrittenLoops, ConditionsAreAskedBeforeEveryTrip) {
  for (const int most : {0, 1, 110, 111, 112, 100000}) {
    for (const std::int64_t start : {0, 1, 2, 27}) {
      expect_exact(fmt::format(Collatz, most), {{"x", Tensor::splat({DType::I64, {}}, start)}});
    }
  }
}

TEST_P(BackendWrittenLoops, ConditionsWithoutABound) {
  const std::string text = R"(
graph @halve {
  %x = input "x" : f32[3]
  %y, %trips = while %x cond {
    %c = input "c" : f32[3]
    %one = constant 1.0 : f32[]
    %p = gt %c, %one
    return %p
  } body {
    %c = input "c" : f32[3]
    %half = constant 0.5 : f32[]
    %n = mul %c, %half
    return %n
  }
  return %y, %trips
}
)";
  expect_exact(text, {{"x", Tensor::of<float>({3}, {5, 900, 31})}});
  expect_exact(text, {{"x", Tensor::of<float>({3}, {5, 0.5F, 31})}});
  // More than the trips between two looks at the stop button.
  expect_exact(R"(
graph @count {
  %x = input "x" : i32[]
  %y, %trips = while %x cond {
    %c = input "c" : i32[]
    return %c
  } body {
    %c = input "c" : i32[]
    %one = constant 1 : i32[]
    %n = sub %c, %one
    return %n
  }
  return %y, %trips
}
)",
               {{"x", Tensor::splat({DType::I32, {}}, 2500)}});
}

// Every dtype a flag may have, and any shape: NaN is not zero, -0 is.
TEST_P(BackendWrittenLoops, ConditionsOfAnyType) {
  for (const char* dtype : {"bool", "u8", "i16", "f16", "bf16", "f32", "f64"}) {
    for (const char* shape : {"[]", "[5]", "[2, 3]", "[0]"}) {
      const std::string type = std::string(dtype) + shape;
      const std::string text = fmt::format(R"(
graph @flags {{
  %f = input "f" : {0}
  %n = input "n" : i32[]
  %g, %y = while %f, %n {{max_iterations = 4}} cond {{
    %c = input "c" : {0}
    %k = input "k" : i32[]
    return %c
  }} body {{
    %c = input "c" : {0}
    %k = input "k" : i32[]
    %one = constant 1 : i32[]
    %m = add %k, %one
    return %c, %m
  }}
  return %y, %g
}}
)",
                                           type);
      const Graph read = parse_graph(text);
      const Type t = read.nodes()[0].types[0];
      const Tensor n = Tensor::splat({DType::I32, {}}, 0);
      Tensor mixed = Tensor::splat(t, 1).contiguous();
      if (mixed.numel() > 1) {
        const auto size = static_cast<std::size_t>(size_of(t.dtype));
        std::fill_n(mixed.mutable_data() + (mixed.bytes().size() - size), size, std::byte{});
      }
      for (const Tensor& flag : {Tensor::splat(t, 1), Tensor::splat(t, 0), mixed}) {
        expect_exact(text, {{"f", flag.contiguous()}, {"n", n}});
      }
      if (!is_float(t.dtype)) continue;
      for (const double x : {-0.0, std::nan(""), 1e-300}) {
        expect_exact(text, {{"f", Tensor::splat(t, x).contiguous()}, {"n", n}});
      }
    }
  }
}

TEST_P(BackendWrittenLoops, TapesHaveTheCarriesThatEnterTrips) {
  for (const int checkpoints : {0, 1, 2, 3, 7}) {
    for (const float start : {0.5F, 3.0F, 90.0F, 1e9F}) {
      expect_exact(fmt::format(R"(
graph @tape {{
  %x = input "x" : f32[2]
  %y, %trips, %tape = while %x {{max_iterations = 7, num_checkpoints = {}}} cond {{
    %c = input "c" : f32[2]
    %one = constant 1.0 : f32[]
    %p = gt %c, %one
    return %p
  }} body {{
    %c = input "c" : f32[2]
    %half = constant 0.5 : f32[]
    %n = mul %c, %half
    return %n
  }}
  return %y, %trips, %tape
}}
)",
                               checkpoints),
                   {{"x", Tensor::of<float>({2}, {start, start + 1})}});
    }
  }
}

TEST_P(BackendWrittenLoops, KeptRowsOfScans) {
  std::vector<double> numbers;
  for (int i = 0; i < 13 * 3; ++i) numbers.push_back(i * 7 % 19 - 9);
  const Tensor xs = Tensor::from_numbers<double>(f32({13, 3}), numbers);
  for (const int checkpoints : {0, 1, 2, 5, 12, 13}) {
    for (const bool reverse : {false, true}) {
      expect_exact(fmt::format(R"(
graph @kept {{
  %x = input "x" : f32[3]
  %a = input "a" : f32[3]
  %xs = input "xs" : f32[13, 3]
  %kept, %ys = scan %x, %a, %xs {{length = 13, num_bcast = 1, num_xs = 1, save_trajectory = true, num_checkpoints = {}, reverse = {}}} body {{
    %c = input "c" : f32[3]
    %b = input "b" : f32[3]
    %r = input "r" : f32[3]
    %s = add %c, %r
    %m = mul %b, %r
    return %s, %m
  }}
  return %kept, %ys
}}
)",
                               checkpoints, reverse),
                   {{"x", Tensor::of<float>({3}, {1, 2, 3})},
                    {"a", Tensor::of<float>({3}, {2, 4, 8})},
                    {"xs", xs}});
    }
  }
}

// Nothing is left of the loop but its carries.
TEST_P(BackendWrittenLoops, NoTripsGiveTheCarries) {
  expect_exact(R"(
graph @none {
  %x = input "x" : f32[3]
  %xs = input "xs" : f32[0, 3]
  %last, %ys = scan %x, %xs {length = 0, num_xs = 1} body {
    %c = input "c" : f32[3]
    %r = input "r" : f32[3]
    %s = add %c, %r
    return %s, %c
  }
  return %last, %ys
}
)",
               {{"x", Tensor::of<float>({3}, {1, 2, 3})}, {"xs", Tensor::zeros(f32({0, 3}))}},
               false);
}

RICCI_ON_EVERY_DEVICE(BackendWrittenLoops);

}  // namespace
}  // namespace ricci::testing::written_loops_test
