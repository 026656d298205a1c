#include "ricci/nn/training_scope.h"

#include <algorithm>

#include <fmt/format.h>

#include "array/node.h"

namespace ricci::nn {
namespace {

thread_local TrainingScope* innermost_scope = nullptr;

bool same_array(const Array& a, const Array& b) {
  return a.node() == b.node() && a.result() == b.result();
}

}  // namespace

TrainingScope* training_scope() noexcept { return innermost_scope; }

Array Buffer::current() const {
  return innermost_scope == nullptr ? value : innermost_scope->updated(value);
}

void Buffer::update(const Array& next, Here where) const {
  TrainingScope* scope = innermost_scope;
  if (scope == nullptr) {
    detail::refuse(ErrorCode::Refused, "training", "a buffer is updated outside of training",
                   "open an nn::TrainingScope around the pass, or use a Trainer", where);
  }
  scope->require_one_pass("a buffer is updated", where);
  if (next.type() != value.type()) {
    detail::refuse(ErrorCode::Shape, "buffer",
                   fmt::format("a buffer is {}, its update {}", value.type().to_string(),
                               next.type().to_string()),
                   "an update has the type of what it replaces", where);
  }
  const auto it = std::ranges::find_if(
      scope->updates_, [&](const auto& pair) { return same_array(pair.first, value); });
  if (it != scope->updates_.end()) {
    it->second = next;
  } else {
    scope->updates_.emplace_back(value, next);
  }
}

TrainingScope::TrainingScope(Key key)
    : key_(std::move(key)), opened_in_(detail::innermost_trace()), outer_(innermost_scope) {
  innermost_scope = this;
}

TrainingScope::~TrainingScope() { innermost_scope = outer_; }

Key TrainingScope::next_key(Here where) {
  require_one_pass("a random mask is drawn", where);
  return key_.fold_in(Array(static_cast<std::int64_t>(drawn_++)), where);
}

Array TrainingScope::updated(const Array& buffer) const {
  for (const auto& [before, after] : updates_) {
    if (same_array(before, buffer)) return after;
  }
  return buffer;
}

void TrainingScope::require_one_pass(const char* what, Here where) const {
  for (detail::Tracing* t = detail::innermost_trace(); t != nullptr && t != opened_in_;
       t = t->outer()) {
    if (t->scope() != detail::TraceScope::Many) continue;
    detail::refuse(ErrorCode::Refused, "training",
                   fmt::format("{} inside '{}', where one trace stands for many passes", what,
                               t->trace().what),
                   "apply the layer outside of it, to all steps or examples at once, or open an "
                   "nn::TrainingScope inside with a key of the step",
                   where);
  }
}

InferenceScope::InferenceScope() : outer_(innermost_scope) { innermost_scope = nullptr; }
InferenceScope::~InferenceScope() { innermost_scope = outer_; }

}  // namespace ricci::nn
