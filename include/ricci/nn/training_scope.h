// What is different while a model is trained: dropout drops, batch norm uses the batch and moves
// its running statistics. Training is a scope, not an argument: inside of one, layers are in
// training mode; outside, in inference mode.
//
//   nn::TrainingScope training(key);              // fresh masks for every key
//   Array y = net(x);
//   net = training.updated(net);                  // its buffers as this pass has left them
//
// `Trainer` (ricci/nn/trainer.h) opens one for every step.
#pragma once

#include <cstddef>
#include <source_location>
#include <utility>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/array/callable.h"
#include "ricci/array/random.h"
#include "ricci/array/tree.h"

namespace ricci::nn {

/// A leaf that no optimiser trains: running statistics, counters. Functions of functions see an
/// array like others; a `Trainer` lets it follow what a pass gives it.
struct Buffer {
  Array value = {};

  void visit(TreeVisitor& v) { v.visit_buffer(value); }
  /// Its value after what this pass has done to it so far.
  [[nodiscard]] Array current() const;
  /// In a training scope: what it shall be after the pass. UserError(refused) where one trace
  /// stands for many passes, and outside of a scope.
  void update(const Array& next, Here where = Here::current()) const;
};

/// Training mode, on this thread, as long as it lives. Scopes nest: the innermost counts.
class TrainingScope {
 public:
  explicit TrainingScope(Key key);
  TrainingScope(const TrainingScope&) = delete;
  TrainingScope& operator=(const TrainingScope&) = delete;
  ~TrainingScope();

  /// Another key at every call. UserError(refused) in the body of a loop and under `vmap`, where
  /// all steps or examples would get the same one.
  [[nodiscard]] Key next_key(Here where = Here::current());
  [[nodiscard]] std::size_t keys_drawn() const noexcept { return drawn_; }

  /// What a buffer is after this pass.
  [[nodiscard]] Array updated(const Array& buffer) const;
  /// A model with all its buffers as this pass has left them.
  template <class T>
    requires(!std::same_as<T, Array>)
  [[nodiscard]] T updated(T model) const {
    Renewal(*this).visit(model);
    return model;
  }

 private:
  friend struct Buffer;
  class Renewal final : public TreeVisitor {
   public:
    explicit Renewal(const TrainingScope& scope) : scope_(scope) {}
    void array(Array&) override {}
    void buffer(Array& leaf) override { leaf = scope_.updated(leaf); }
    void word(std::uint64_t) override {}
    void text(std::string_view) override {}

   private:
    const TrainingScope& scope_;
  };

  void require_one_pass(const char* what, Here where) const;

  Key key_;
  std::size_t drawn_ = 0;
  std::vector<std::pair<Array, Array>> updates_;  // a buffer as it was, and what became of it
  detail::Tracing* opened_in_;
  TrainingScope* outer_;
};

/// Inference mode inside of a training scope: for a teacher, or statistics that are frozen.
class InferenceScope {
 public:
  InferenceScope();
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;
  ~InferenceScope();

 private:
  TrainingScope* outer_;
};

/// The scope this thread is in; nullptr in inference mode.
[[nodiscard]] TrainingScope* training_scope() noexcept;
[[nodiscard]] inline bool is_training() noexcept { return training_scope() != nullptr; }

}  // namespace ricci::nn
