// The buffers a step names.
#pragma once

#include <concepts>
#include <type_traits>

#include "ricci/compiler/schedule/program.h"

namespace ricci::schedule {

/// Calls `f` with the kernels attached to a call, in the order in which they run.
template <class F>
void for_attached(const CallStep& call, F&& f) {
  if (call.before) f(*call.before);
  if (call.after) f(*call.after);
}

/// Calls `f` with every buffer of a step, and with -1 for what is none; some more than once. Those
/// of a step that is not const may be changed.
template <class S, class F>
  requires std::same_as<std::remove_const_t<S>, Step>
void for_buffers(S& step, F&& f) {
  const auto views = [&](auto& all) {
    for (auto& v : all) f(v.buffer);
  };
  const auto launched = [&](auto& launch) {
    for (auto& b : launch.buffers) f(b);
  };
  if (auto* k = std::get_if<KernelStep>(&step.what)) {
    for (auto& launch : k->launches) launched(launch);
  } else if (auto* c = std::get_if<CallStep>(&step.what)) {
    views(c->operands);
    views(c->results);
    if (c->before) launched(*c->before);
    if (c->after) launched(*c->after);
  } else if (auto* loop = std::get_if<LoopStep>(&step.what)) {
    views(loop->operands);
    views(loop->results);
  } else {
    auto& control = std::get<ControlStep>(step.what);
    views(control.operands);
    views(control.results);
    f(control.workspace);
    for (auto& pair : control.carries) {
      for (auto& b : pair) f(b);
    }
  }
}

/// Calls `f(buffer, written)` with every buffer of a launch; what is not written is read.
template <class F>
void for_arguments(const Program& program, const Launch& launch, F&& f) {
  const loop::Kernel& kernel = program.kernels[launch.kernel];
  for (std::size_t a = 0; a < launch.buffers.size(); ++a) {
    if (launch.buffers[a] < 0) continue;
    f(launch.buffers[a], kernel.arguments[a].role == loop::ArgumentRole::Out);
  }
}

/// Calls `f(buffer, written)` with every buffer a step uses; some more than once.
template <class F>
void for_uses(const Program& program, const Step& step, F&& f) {
  const auto views = [&](const std::vector<BufferView>& all, bool written) {
    for (const BufferView& v : all) {
      if (v.buffer >= 0) f(v.buffer, written);
    }
  };
  const auto launched = [&](const Launch& launch) { for_arguments(program, launch, f); };
  if (const auto* k = std::get_if<KernelStep>(&step.what)) {
    for (const Launch& launch : k->launches) launched(launch);
  } else if (const auto* c = std::get_if<CallStep>(&step.what)) {
    views(c->operands, false);
    views(c->results, true);
    for_attached(*c, launched);
  } else if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
    views(loop->operands, false);
    views(loop->results, true);
  } else {
    const auto& control = std::get<ControlStep>(step.what);
    views(control.operands, false);
    views(control.results, true);
    f(control.workspace, true);
    for (const auto& pair : control.carries) {
      for (const BufferId b : pair) f(b, true);
    }
  }
}

}  // namespace ricci::schedule
