#include "workloads/linalg.h"

#include "ricci/build/build.h"

namespace ricci::bench {
namespace {

std::int64_t side_of(Scale scale) { return scale == Scale::Full ? 256 : 5; }

Workload workload_of(std::string name, Draft draft, std::vector<std::string> outputs) {
  return {.name = std::move(name),
          .graph = std::move(draft.graph),
          .outputs = std::move(outputs),
          .donated = {},
          .feeds = std::move(draft.feeds),
          .settings = {}};
}

}  // namespace

// Vectors are compared in a form that does not depend on their signs.
Workload eigh_values_and_vectors(Scale scale) {
  const std::int64_t n = side_of(scale);
  Draft draft("eigh");
  const Value a = draft.input("a", f32({n, n}), FeedRule::normal(1));
  const auto [w, v] = eigh(a);
  draft.graph.set_outputs({w, v * v});
  return workload_of("eigh_256", std::move(draft), {"w", "v2"});
}

Workload svd_values_and_vectors(Scale scale) {
  const std::int64_t n = side_of(scale);
  Draft draft("svd");
  const Value a = draft.input("a", f32({n, n}), FeedRule::normal(1));
  const auto [u, s, vh] = svd(a);
  draft.graph.set_outputs({s, u * u, vh * vh});
  return workload_of("svd_256", std::move(draft), {"s", "u2", "vh2"});
}

}  // namespace ricci::bench
