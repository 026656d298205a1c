// A program of examples/ that is no C++: a network that is trained from C.
#include <gtest/gtest.h>

#include "ricci/ir/text.h"
#include "ricci/model/training.h"

#include "support/c_program.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

const std::string Examples = RICCI_SOURCE_DIR "/examples/";

TEST(RuntimeExamples, ANetworkIsTrainedFromC) {
  const Graph net = parse_graph(read_text(Examples + "train_from_c/net.ric"));
  const TrainingGraph training =
      make_training_graph(GraphModule::from_graph(net), {.optimizer = Adam{.learning_rate = 0.01}});
  const std::string program = build_c("train_from_c", read_text(Examples + "train_from_c/main.c"),
                                      {compile_object(training, {.name = "net"})});
  ASSERT_FALSE(program.empty());
  const ToolRun run = run_shell("'" + program + "'");
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("step  900  loss 0.000"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace ricci::testing
