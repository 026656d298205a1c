#include "support/lir_run.h"

#include <stdexcept>

#include <fmt/format.h>

#include "backend/lir/backend.h"
#include "support/compare.h"
#include "support/run_executable.h"

namespace ricci::testing {
namespace {

std::size_t& count_of_lir_runs() {
  static std::size_t count = 0;
  return count;
}

std::vector<Tensor> run(const Graph& graph, const std::shared_ptr<const ricci::Program>& program,
                        const Feeds& feeds, const lir::Backend& backend) {
  ++count_of_lir_runs();
  return run_executable(*backend.compile(program), graph, feeds, backend.memory());
}

}  // namespace

std::vector<Tensor> run_on_lir(const Graph& graph, ricci::Program program, const Feeds& feeds,
                               bool apart) {
  static const lir::Backend as_planned(lir::Placement::AsPlanned);
  static const lir::Backend each_apart(lir::Placement::Apart);
  const auto shared = std::make_shared<const ricci::Program>(std::move(program));
  std::vector<Tensor> planned = run(graph, shared, feeds, as_planned);
  if (!apart) return planned;
  const std::vector<Tensor> again = run(graph, shared, feeds, each_apart);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (const auto r = same(planned[i], again[i]); !r) {
      throw std::runtime_error(
          fmt::format("output {} depends on where temporaries are: {}", i, r.message()));
    }
  }
  return planned;
}

std::size_t runs_on_lir() { return count_of_lir_runs(); }

}  // namespace ricci::testing
