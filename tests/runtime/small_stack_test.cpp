// Threads of the host program may have little stack: a mebibyte is enough for the deepest program.
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <pthread.h>

#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "runtime/models.h"
#include "support/sanitized.h"

namespace ricci::testing {
namespace {

void on_a_stack_of(std::size_t bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread{};
  const auto call = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Scans in scans, as deep as they may be.
std::string nested_scans(int depth) {
  std::string begin;
  std::string end;
  for (int i = 0; i < depth; ++i) {
    begin += "%n = scan %c {length = 1} body {\n%c = input \"c\" : f32[2]\n";
    end += "return %n }\n";
  }
  return "graph @deep { %c = input \"x\" : f32[2]\n" + begin + "%n = sin %c\n" + end +
         "%z = reduce %n {op = sum, axes = [0]}\nreturn %z }";
}

TEST(RuntimeSmallStack, HasRoomForTheDeepestProgram) {
  if (SpaceIsTaken) GTEST_SKIP() << "a sanitizer takes more of it";
  const std::string text = nested_scans(62);
  on_a_stack_of(std::size_t{1} << 20, [&] {
    const Graph g = parse_graph(text);
    verify(g);
    EXPECT_EQ(parse_graph(print(g)), g);
    (void)canonicalize(g);
    (void)jvp(g, {"x"});
    (void)vmap(g, {{"x"}}, 3);
    const Graph gradient = grad(g, {std::string("x")}).graph;
    const Feeds feeds = {{"x", Tensor::of<float>({2}, {0.5F, 1})}};
    const std::vector<Tensor> expected = interpret(g, feeds);
    for (const std::string& device : Device::names()) {
      if (device == "cuda") continue;
      EXPECT_TRUE(close(compile(g, Device::named(device)).run(feeds)[0], expected[0])) << device;
    }
  });
}

}  // namespace
}  // namespace ricci::testing
