// Checkpoints: whole or refused, and a run that goes on from one takes the steps of a run that was
// never interrupted, bit for bit.
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "ricci/io/file.h"
#include "ricci/io/safetensors.h"
#include "ricci/nn.h"

#include "dataset/refusal.h"
#include "support/scratch_folder.h"

namespace ricci::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using testing::refusal;
using testing::says;

struct Batch {
  Array x, y;
};
struct Net {
  nn::Linear hidden{3, 8};
  nn::BatchNorm norm{8};
  nn::Dropout drop{0.3};
  nn::Linear out{8, 1};
  Array operator()(const Array& x) const { return out(drop(tanh(norm(hidden(x))))); }
};
Array squared_error(const Net& net, const Batch& b) { return mse(net(b.x), b.y); }

Dataset<Batch> samples() {
  const Array x = normal(Key(3), {50, 3});
  return Batch{x, sum(x * array({1.0, -2.0, 0.5}), 1, true)};
}
const LoaderOptions Batches{.batch = 8, .shuffle = 4, .drop_last = true, .steps = 13};

using MakeTrainer = std::function<Trainer<Net, decltype(&squared_error)>()>;
MakeTrainer trainer_of(const Optimizer& optimizer, const TrainingOptions& training = {}) {
  return [=] {
    nn::seed(5);
    return Trainer(Net{}, &squared_error, optimizer, {.seed = 9, .training = training});
  };
}

void expect_same(const TrainingState& a, const TrainingState& b) {
  EXPECT_EQ(a.step, b.step);
  const auto compare = [](const io::NamedTensors& x, const io::NamedTensors& y) {
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(x[i].first, y[i].first);
      EXPECT_TRUE(x[i].second.identical(y[i].second)) << x[i].first;
    }
  };
  compare(a.model, b.model);
  compare(a.kept, b.kept);
  EXPECT_EQ(a.generator_count, b.generator_count);
}

// Interrupted after each of some steps, in a trainer and a loader made anew.
void expect_resumes(const MakeTrainer& make) {
  const testing::ScratchFolder folder;
  const std::string file = folder.file("run");
  manual_seed(1);
  auto whole = make();
  Loader all(samples(), Batches);
  for (const Batch& b : all) (void)whole(b);
  const TrainingState expected = whole.state();
  for (const std::int64_t interrupted : {0, 1, 6, 12}) {
    manual_seed(1);
    {
      auto first = make();
      Loader data(samples(), Batches);
      for (std::int64_t i = 0; i < interrupted; ++i) (void)first(*data.next());
      save(file, first, data);
    }
    manual_seed(77);
    auto second = make();
    Loader data(samples(), Batches);
    const CheckpointInfo info = restore(file, second, data);
    EXPECT_EQ(data.position().step, interrupted);
    EXPECT_EQ(info.data->step, interrupted);
    for (const Batch& b : data) (void)second(b);
    expect_same(expected, second.state());
  }
}

TEST(Checkpoint, ResumesWithAdamW) { expect_resumes(trainer_of(AdamW{.learning_rate = 1e-2})); }
TEST(Checkpoint, ResumesWithSchedules) {
  expect_resumes(trainer_of(AdamW{.learning_rate = cosine(1e-2, {.warm_up = 4, .steps = 13})}));
}
TEST(Checkpoint, ResumesWithMomentum) {
  expect_resumes(trainer_of(Sgd{.learning_rate = 1e-2, .momentum = 0.9}));
}
TEST(Checkpoint, ResumesWithLion) { expect_resumes(trainer_of(Lion{.learning_rate = 1e-3})); }
TEST(Checkpoint, ResumesWithAdafactor) { expect_resumes(trainer_of(Adafactor{})); }
TEST(Checkpoint, ResumesWithMuon) { expect_resumes(trainer_of(Muon{})); }
TEST(Checkpoint, ResumesWithScheduleFree) { expect_resumes(trainer_of(ScheduleFreeAdamW{})); }
TEST(Checkpoint, ResumesWithAccumulationAndAverages) {
  expect_resumes(
      trainer_of(AdamW{.learning_rate = 1e-2}, {.clip_norm = 1.0, .accumulate = 3, .ema = 0.9}));
}
TEST(Checkpoint, ResumesWithLossScaling) {
  expect_resumes(
      trainer_of(AdamW{.learning_rate = 1e-2}, {.loss_scaling = LossScaling{.interval = 3}}));
}

struct Narrow {
  nn::Linear map{3, 1, {.dtype = DType::BF16}};
};
Array narrow_error(const Narrow& net, const Batch& b) {
  return mse(cast(net.map(cast(b.x, DType::BF16)), DType::F32), b.y);
}

TEST(Checkpoint, KeepsMasterCopies) {
  const testing::ScratchFolder folder;
  const auto make = [] {
    nn::seed(2);
    return Trainer(Narrow{}, &narrow_error, AdamW{.learning_rate = 1e-3});
  };
  auto whole = make();
  Loader all(samples(), Batches);
  for (auto [i, b] : enumerate(all)) {
    (void)whole(b);
    if (i == 4) save(folder.file("run"), whole, all);
  }
  auto again = make();
  Loader data(samples(), Batches);
  restore(folder.file("run"), again, data);
  for (const Batch& b : data) (void)again(b);
  expect_same(whole.state(), again.state());
  EXPECT_EQ(whole.state().model[0].second.dtype(), DType::BF16);
}

// Random numbers of the process's generator, inside the loss.
TEST(Checkpoint, KeepsTheGenerator) {
  const testing::ScratchFolder folder;
  const auto loss = [](const Net& net, const Batch& b) {
    return mse(net(b.x + normal({8, 3}, 0, 0.1)), b.y);
  };
  manual_seed(3);
  Trainer whole(Net{}, loss);
  Loader all(samples(), Batches);
  for (auto [i, b] : enumerate(all)) {
    (void)whole(b);
    if (i == 4) save(folder.file("run"), whole, all);
  }
  manual_seed(8);
  Trainer again(Net{}, loss);
  Loader data(samples(), Batches);
  restore(folder.file("run"), again, data);
  for (const Batch& b : data) (void)again(b);
  expect_same(whole.state(), again.state());
}

TEST(Checkpoint, StateIsOfItsMoment) {
  auto train = trainer_of(AdamW{})();
  Loader data(samples(), Batches);
  (void)train(*data.next());
  const TrainingState then = train.state();
  const Tensor copy =
      Tensor::from_bytes(then.model[0].second.type(), then.model[0].second.contiguous().bytes());
  (void)train(*data.next());
  EXPECT_TRUE(then.model[0].second.identical(copy));
  EXPECT_FALSE(train.state().model[0].second.identical(copy));
  train.set_state(then);
  EXPECT_TRUE(train.state().model[0].second.identical(copy));
  EXPECT_EQ(train.steps(), 1);
}

TEST(Checkpoint, WeightsAreReadByOthers) {
  const testing::ScratchFolder folder;
  const std::string file = folder.file("run.safetensors");
  auto train = trainer_of(AdamW{})();
  Loader data(samples(), Batches);
  (void)train(*data.next());
  save(file, train, data, {.notes = {{"comment", "a \"first\" try"}}, .score = 0.25});
  const Net net = load<Net>(file);
  EXPECT_TRUE(array_equal(net.hidden.w, train.model().hidden.w));
  const io::Safetensors raw = io::read_safetensors(file);
  EXPECT_NE(raw.find_tensor("norm.mean"), nullptr);
  const Checkpoint found = read_checkpoint(file);
  EXPECT_EQ(found.info.step, 1);
  EXPECT_EQ(found.info.score, 0.25);
  EXPECT_EQ(found.info.notes.at("comment"), "a \"first\" try");
  EXPECT_EQ(found.info.data, data.position());
  EXPECT_EQ(found.state.seed, 9U);
}

TEST(Checkpoint, EveryDamageIsSeen) {
  const testing::ScratchFolder folder;
  const std::string file = folder.file("run");
  auto train = trainer_of(Sgd{})();
  Loader data(samples(), Batches);
  (void)train(*data.next());
  save(file, train, data);
  const std::vector<std::byte> good = io::read_file(file);
  for (std::size_t i = 0; i < good.size(); i += 1 + good.size() / 300) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x10};
    io::write_file(file, bad);
    EXPECT_NE(refusal([&] { (void)read_checkpoint(file); }), "no error") << i;
    EXPECT_NE(refusal([&] { (void)load<Net>(file); }), "no error") << i;
    io::write_file(file, std::span(good).first(i));
    EXPECT_NE(refusal([&] { (void)read_checkpoint(file); }), "no error") << i;
    EXPECT_NE(refusal([&] { (void)load<Net>(file); }), "no error") << i;
  }
  std::vector<std::byte> bad = good;
  bad.back() ^= std::byte{1};
  io::write_file(file, bad);
  const TrainingState before = train.state();
  EXPECT_TRUE(says(refusal([&] { restore(file, train, data); }),
                   {"file.checkpoint_sum", "damaged", file.c_str()}));
  expect_same(before, train.state());
}

TEST(Checkpoint, SaysWhatDoesNotFit) {
  const testing::ScratchFolder folder;
  const std::string file = folder.file("run");
  auto train = trainer_of(AdamW{})();
  Loader data(samples(), Batches);
  (void)train(*data.next());
  save(file, train);
  EXPECT_TRUE(says(refusal([&] { restore(file, train, data); }), {"no position in data"}));
  auto other = trainer_of(Sgd{})();
  other.compile(samples().take(8).all());
  EXPECT_TRUE(says(refusal([&] { restore(file, other); }), {"name.trainer", "the trainer has no"}));
  struct Small {
    nn::Linear hidden{3, 4};
  };
  Trainer small(Small{}, [](const Small& s, const Batch& b) { return mse(s.hidden(b.x), b.y); });
  EXPECT_TRUE(says(refusal([&] { restore(file, small); }),
                   {"'hidden.w' is f32[3, 4], but f32[3, 8] is given"}));
  save(file, train, data);
  Loader others(samples(), {.batch = 7});
  EXPECT_TRUE(
      says(refusal([&] { restore(file, train, others); }), {"batch_size=8", "batch_size=7"}));
  EXPECT_TRUE(says(refusal([&] { save(folder.file("run.npz"), train); }), {"safetensors"}));
  save(folder.file("net.safetensors"), train.model());
  EXPECT_TRUE(says(refusal([&] { (void)read_checkpoint(folder.file("net.safetensors")); }),
                   {"no checkpoint"}));
}

Checkpoint numbered(std::int64_t step, std::optional<double> score = {}) {
  Checkpoint c;
  c.info.step = step;
  c.info.score = score;
  c.state.step = step;
  c.state.model = {{"w", Tensor::of<float>({1}, {static_cast<float>(step)})}};
  return c;
}
std::vector<std::int64_t> steps_in(const CheckpointFolder& folder) {
  std::vector<std::int64_t> out;
  for (const CheckpointFolder::Entry& e : folder.entries()) out.push_back(e.step);
  return out;
}

TEST(CheckpointFolder, KeepsTheNewestAndTheBest) {
  const testing::ScratchFolder scratch;
  const CheckpointFolder folder(scratch.file("a/b"), {.keep = 2, .keep_best = 1});
  EXPECT_FALSE(folder.newest());
  EXPECT_FALSE(folder.best());
  for (std::int64_t step = 1; step <= 6; ++step) {
    folder.write(numbered(step, step == 2 ? 0.1 : 1.0 / static_cast<double>(step)));
  }
  EXPECT_EQ(steps_in(folder), (std::vector<std::int64_t>{2, 5, 6}));
  EXPECT_EQ(folder.best()->step, 2);
  EXPECT_EQ(folder.newest()->checkpoint.info.step, 6);
  const CheckpointFolder up(scratch.file("up"),
                            {.keep = 1, .keep_best = 1, .lower_is_better = false});
  up.write(numbered(1, 5));
  up.write(numbered(2, std::nan("")));
  up.write(numbered(3));
  EXPECT_EQ(steps_in(up), (std::vector<std::int64_t>{1, 3}));
  EXPECT_TRUE(says(refusal([&] { CheckpointFolder(scratch.file("x"), {.keep = 0}); }), {"keep 0"}));
  io::write_file(scratch.file("plain"), std::string_view("x"));
  EXPECT_TRUE(
      says(refusal([&] { CheckpointFolder(scratch.file("plain")); }), {"file.checkpoints"}));
}

TEST(CheckpointFolder, PassesOverWhatIsDamaged) {
  const testing::ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  for (std::int64_t step = 1; step <= 3; ++step) folder.write(numbered(step));
  const auto damage = [&](std::int64_t step) {
    const std::string file = folder.entries()[static_cast<std::size_t>(step - 1)].path;
    std::vector<std::byte> bytes = io::read_file(file);
    bytes.back() ^= std::byte{1};
    io::write_file(file, bytes);
  };
  damage(3);
  const auto found = folder.newest();
  EXPECT_EQ(found->checkpoint.info.step, 2);
  ASSERT_EQ(found->warnings.size(), 1U);
  EXPECT_TRUE(says(found->warnings[0], {"step-00000003", "passed over", "damaged"}));
  damage(2);
  damage(1);
  EXPECT_TRUE(
      says(refusal([&] { (void)folder.newest(); }), {"none of the checkpoints", "step-00000001"}));
  // What killed processes have left goes; what another one may be writing stays, and what is not
  // ours.
  const std::string left = scratch.file(".ricci-0123456789abcdef0123456789abcdef.tmp");
  const std::string in_use = scratch.file(".ricci-0123456789abcdef0123456789abcde0.tmp");
  for (const std::string& file : {left, in_use, scratch.file("notes.txt")}) {
    io::write_file(file, std::string_view("x"));
  }
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  folder.write(numbered(9));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(in_use));
  EXPECT_TRUE(fs::exists(scratch.file("notes.txt")));
}

// It may be the best one, and be read again once there is memory or a descriptor for it.
TEST(CheckpointFolder, WhatCannotBeReadIsNotRemoved) {
  const testing::ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path(), {.keep = 1, .keep_best = 1});
  for (std::int64_t step = 1; step <= 2; ++step) folder.write(numbered(step));
  const std::string first = folder.write(numbered(3));
  EXPECT_EQ(folder.entries().size(), 1U);
  const std::string away = scratch.file("away");
  fs::rename(first, away);
  io::write_file(first, std::string_view("unreadable"));
  folder.write(numbered(4));
  EXPECT_TRUE(fs::exists(first));
  fs::remove(first);
  fs::rename(away, first);
  folder.write(numbered(5));
  EXPECT_FALSE(fs::exists(first));
}

TEST(CheckpointFolder, TheBestComesFirst) {
  const testing::ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path(), {.keep = 9, .keep_best = 9});
  const std::optional<double> scores[] = {0.3, 0.1, std::nullopt, 0.2, std::nan(""), std::nullopt};
  for (std::int64_t step = 1; step <= 6; ++step) {
    folder.write(numbered(step, scores[static_cast<std::size_t>(step - 1)]));
  }
  std::vector<std::int64_t> order;
  for (const CheckpointFolder::Entry& e : folder.best_first()) order.push_back(e.step);
  EXPECT_EQ(order, (std::vector<std::int64_t>{2, 4, 1, 6, 5, 3}));
}

TEST(CheckpointFolder, ATrainerGoesOnFromIt) {
  const testing::ScratchFolder scratch;
  const CheckpointFolder folder(scratch.path());
  auto first = trainer_of(AdamW{})();
  Loader data(samples(), Batches);
  EXPECT_FALSE(folder.restore(first, data));
  for (auto [i, b] : enumerate(data)) {
    (void)first(b);
    if (i == 5) folder.save(first, data, {.score = 1.0});
  }
  auto second = trainer_of(AdamW{})();
  Loader again(samples(), Batches);
  const auto resumed = folder.restore(second, again);
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->info.step, 6);
  EXPECT_EQ(second.steps(), 6);
  for (const Batch& b : again) (void)second(b);
  expect_same(first.state(), second.state());
}

}  // namespace
}  // namespace ricci::checkpoint_test
