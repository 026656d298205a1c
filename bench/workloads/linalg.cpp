#include "workloads/linalg.h"

#include "ricci/build/build.h"

namespace ricci::bench {
namespace {

std::int64_t side_of(Scale scale) { return scale != Scale::Small ? 256 : 5; }

}  // namespace

// Vectors are compared in a form that does not depend on their signs.
Workload eigh_values_and_vectors(Scale scale) {
  const std::int64_t n = side_of(scale);
  Draft draft("eigh");
  const Value a = draft.input("a", f32({n, n}), FeedRule::normal(1));
  const auto [w, v] = eigh(a);
  draft.graph.set_outputs({w, v * v});
  return finished("eigh_256", std::move(draft), {"w", "v2"});
}

Workload svd_values_and_vectors(Scale scale) {
  const std::int64_t n = side_of(scale);
  Draft draft("svd");
  const Value a = draft.input("a", f32({n, n}), FeedRule::normal(1));
  const auto [u, s, vh] = svd(a);
  draft.graph.set_outputs({s, u * u, vh * vh});
  return finished("svd_256", std::move(draft), {"s", "u2", "vh2"});
}

}  // namespace ricci::bench
