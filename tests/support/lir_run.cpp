#include "support/lir_run.h"

#include <stdexcept>

#include <fmt/format.h>

#include "backend/lir/backend.h"
#include "support/compare.h"
#include "support/run_executable.h"

namespace ricci::testing {
namespace {

std::size_t& run_count() {
  static std::size_t count = 0;
  return count;
}

std::vector<Tensor> run(const Graph& graph, const std::shared_ptr<const ricci::Program>& program,
                        const Feeds& feeds, lir::Placement placement) {
  const lir::Backend backend(placement);
  ++run_count();
  return run_executable(*backend.compile(program), graph, feeds, backend.memory());
}

}  // namespace

std::vector<Tensor> run_on_lir(const Graph& graph, ricci::Program program, const Feeds& feeds) {
  const auto shared = std::make_shared<const ricci::Program>(std::move(program));
  std::vector<Tensor> planned = run(graph, shared, feeds, lir::Placement::AsPlanned);
  const std::vector<Tensor> apart = run(graph, shared, feeds, lir::Placement::Apart);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (const auto r = same(planned[i], apart[i]); !r) {
      throw std::runtime_error(
          fmt::format("output {} depends on where temporaries are: {}", i, r.message()));
    }
  }
  return planned;
}

std::size_t runs_on_lir() { return run_count(); }

}  // namespace ricci::testing
