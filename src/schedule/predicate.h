// Branches of which both ways are computed. On a device that computes beside the host, the host can
// only choose a way when it has waited for the predicate; where the ways are short, computing both
// and taking the elements of one is over sooner.
#pragma once

#include "ricci/compiler/schedule/target.h"

#include "rewrite/changes.h"

namespace ricci::schedule {

/// Writes branches as a choice by elements where the target waits at branches, both bodies are
/// short, and neither has a call, a loop, or anything that may fault: what is not taken must not.
/// Values stay what they are. Before: a prepared graph.
[[nodiscard]] Change predicate_branches(const Graph& graph, const Target& target);

}  // namespace ricci::schedule
