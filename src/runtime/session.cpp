#include "ricci/runtime/session.h"

#include <list>
#include <mutex>

#include "ricci/op/ops.h"

#include "runtime/compiled_graph_impl.h"
#include "runtime/memory_errors.h"
#include "support/environment.h"
#include "support/float_environment.h"
#include "support/fork.h"

namespace ricci {
namespace {

// Kernels of registered ops may be replaced at any time.
bool has_registered_op(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op.is<op::Custom>()) return true;
    for (const Body& body : node.bodies) {
      if (has_registered_op(*body.graph)) return true;
    }
  }
  return false;
}

bool same_place(const Provenance* a, const Provenance* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  return a->label == b->label && a->where.file == b->where.file && a->where.line == b->where.line &&
         a->where.column == b->where.column && a->where.text == b->where.text;
}

// Of graphs that are equal: do errors and profiles name the same places?
bool same_places(const Graph& a, const Graph& b) {
  for (NodeId id = 0; id < a.size(); ++id) {
    const Node& x = a.node(id);
    const Node& y = b.node(id);
    if (!same_place(x.provenance.get(), y.provenance.get())) return false;
    for (std::size_t k = 0; k < x.bodies.size(); ++k) {
      if (x.bodies[k].graph == y.bodies[k].graph) continue;
      if (!same_places(*x.bodies[k].graph, *y.bodies[k].graph)) return false;
    }
  }
  return true;
}

}  // namespace

struct Session::Impl {
  struct Entry {
    std::uint64_t hash = 0;
    std::shared_ptr<runtime::Programs> programs;
  };

  Impl(Device d, SessionOptions o) : device(std::move(d)), options(std::move(o)) {
    if (options.code_cache) {
      code_cache = *options.code_cache;
    } else if (environment_variable("RICCI_CACHE_DIR") != nullptr) {
      code_cache = default_code_cache();
    }
  }

  // The last one used first.
  std::shared_ptr<runtime::Programs> find(std::uint64_t hash, const Graph& graph,
                                          const CompileOptions& wanted) {
    for (auto e = entries.begin(); e != entries.end(); ++e) {
      const runtime::Programs& p = *e->programs;
      if (e->hash != hash || !(p.options() == wanted) || !(p.graph() == graph)) continue;
      if (!same_places(p.graph(), graph) || *p.output_names() != graph.output_names()) continue;
      entries.splice(entries.begin(), entries, e);
      return e->programs;
    }
    return nullptr;
  }

  Device device;
  SessionOptions options;
  std::string code_cache;
  ForkMutex mutex;
  std::list<Entry> entries;
  std::size_t hits = 0;
  std::size_t misses = 0;
};

Session::Session(Device device, SessionOptions options)
    : impl_(std::make_shared<Impl>(std::move(device), std::move(options))) {}

const Device& Session::device() const noexcept { return impl_->device; }

CompiledGraph Session::compile(const Graph& graph, const CompileOptions& options) try {
  const DefaultFloatEnvironment floats;
  CompileOptions wanted = options;
  if (wanted.code_cache.empty()) wanted.code_cache = impl_->code_cache;
  const auto made_of = [&](std::shared_ptr<runtime::Programs> programs) {
    return CompiledGraph(std::make_shared<CompiledGraph::Impl>(std::move(programs), impl_->device));
  };
  if (has_registered_op(graph))
    return made_of(std::make_shared<runtime::Programs>(graph, impl_->device, wanted));
  const std::uint64_t hash = graph.hash();
  {
    const std::lock_guard lock(impl_->mutex);
    if (auto programs = impl_->find(hash, graph, wanted)) {
      ++impl_->hits;
      return made_of(std::move(programs));
    }
    ++impl_->misses;
  }
  auto made = std::make_shared<runtime::Programs>(graph, impl_->device, wanted);
  const std::lock_guard lock(impl_->mutex);
  if (auto theirs = impl_->find(hash, graph, wanted)) return made_of(std::move(theirs));
  impl_->entries.push_front({hash, made});
  while (impl_->entries.size() > impl_->options.max_programs) impl_->entries.pop_back();
  return made_of(std::move(made));
} catch (const std::exception&) {
  runtime::rethrow_as_ours("compile", graph.name());
}

Session::CacheStatistics Session::cache() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->hits, impl_->misses, impl_->entries.size()};
}

void Session::clear_cache() {
  const std::lock_guard lock(impl_->mutex);
  impl_->entries.clear();
}

}  // namespace ricci
