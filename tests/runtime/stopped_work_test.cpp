// What is no run and may take long as its input is large obeys the stop button of the scope it is
// called in; it takes no token. It says so with the code of a stop, whatever it makes of other
// errors, and works again afterwards.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/compiler/rewrite/canonicalize.h"
#include "ricci/data/loader.h"
#include "ricci/data/tokenizer.h"
#include "ricci/io/csv.h"
#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/nn.h"
#include "ricci/quant/scheme.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/support/stop.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "draw/draw.h"
#include "runtime/models.h"
#include "support/compare.h"
#include "support/scratch_folder.h"

namespace ricci::testing {
namespace {

// How work ends that begins when the button is pressed.
std::string end_when_pressed(const std::function<void()>& work) {
  const StopSource stop;
  stop.request_stop();
  const StopScope scope(stop.token());
  try {
    work();
  } catch (const UserError& e) {
    return e.code() == ErrorCode::Stopped ? "stopped" : e.what();
  }
  return "done";
}

quant::Scheme scheme(const char* name) { return quant::scheme_from_name(name).value(); }

TEST(RuntimeStoppedWork, SaysSoAndWorksAgain) {
  const Graph g = wide_graph();
  Graph loss("loss");
  loss.set_outputs({sum(tanh(loss.input("x", f32({4})) * 0.5))});
  const std::string text = print(g);
  const Array x = ones({4});
  const std::vector<float> weights(std::size_t{256} * 4, 0.5F);
  const auto f = [](const Array& a) { return sum(tanh(a) * 0.5); };
  Loader plain(Dataset<Array>(ones({8, 2})), {.batch = 4});
  Loader threaded(Dataset<Array>(ones({8, 2})), {.batch = 4, .threads = 1});
  const ScratchFolder scratch;
  io::write_npz(scratch.file("x.npz"), {{"x", x.tensor()}});
  const std::vector<std::pair<const char*, std::function<void()>>> all = {
      {"read", [&] { (void)io::read_npz(scratch.file("x.npz")); }},
      {"parse", [&] { (void)parse(text); }},
      {"parse, looking for all faults", [&] { (void)parse(text, {.most_faults = 100}); }},
      {"verify", [&] { verify(g); }},
      {"grad", [&] { (void)grad(loss, {std::string("x")}); }},
      {"jvp", [&] { (void)jvp(g, {"x"}); }},
      {"vmap", [&] { (void)vmap(g, {{"x"}}, 3); }},
      {"canonicalize", [&] { (void)canonicalize(g); }},
      {"compile", [&] { (void)compile(g, Device::named("lir")); }},
      {"draw", [&] { (void)draw::to_svg(g); }},
      {"encode", [&] { (void)quant::encode_matrix(scheme("int4_block_32"), 256, 4, weights); }},
      {"encode rows", [&] { (void)quant::encode_matrix(scheme("q4_k"), 256, 4, weights); }},
      {"csv", [] { (void)io::parse_csv("a,b\n1,2\n3,4\n"); }},
      {"tokenizer", [] { (void)Tokenizer::train("one and one is two", {.vocabulary = 300}); }},
      {"tokens", [] { (void)Tokenizer().encode("one and one is two"); }},
      {"array", [&] { (void)(tanh(ones({5})) + 1.0).tensor(); }},
      {"jit", [&] { (void)jit(f)(x).tensor(); }},
      {"grad of a function", [&] { (void)grad(f)(x).tensor(); }},
      {"loader", [&] { (void)plain.next(); }},
      {"loader with threads", [&] { (void)threaded.next(); }},
  };
  for (const auto& [name, work] : all) {
    EXPECT_EQ(end_when_pressed(work), "stopped") << name;
    EXPECT_NO_THROW(work()) << name;
  }
}

struct StoppedLine {
  Array w = ones({4});
};
Array stopped_loss(const StoppedLine& m, const Array& x) { return mean(square(x * m.w - 1.0)); }

TEST(RuntimeStoppedWork, TrainersTakeNoStepThatIsStopped) {
  Trainer stopped(StoppedLine{}, stopped_loss, Sgd{.learning_rate = 0.1});
  Trainer undisturbed(StoppedLine{}, stopped_loss, Sgd{.learning_rate = 0.1});
  const Array x = ones({2, 4}) * 0.5;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(end_when_pressed([&] { (void)stopped(x); }), "stopped") << i;
    EXPECT_EQ(stopped(x).item(), undisturbed(x).item()) << i;
  }
  EXPECT_EQ(stopped.steps(), 3);
  EXPECT_TRUE(same(stopped.model().w.tensor(), undisturbed.model().w.tensor()));
}

}  // namespace
}  // namespace ricci::testing
