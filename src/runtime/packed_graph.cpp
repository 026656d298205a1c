// A compiled graph's other self, which reads packed params: made when all they are made of is kept,
// and used by runs that give none of it.
#include <algorithm>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>

#include "ricci/support/error.h"

#include "runtime/compiled_graph_impl.h"

namespace ricci {

std::shared_ptr<CompiledGraph::Impl> CompiledGraph::Impl::packed() {
  if (programs->packing() == nullptr) return nullptr;
  {
    const std::shared_lock looking(packed_mutex_);
    if (packed_version_ == params.version()) return is_packed_ ? packed_ : nullptr;
  }
  const std::unique_lock packing(packed_mutex_);
  const std::shared_lock lock(params.mutex());
  if (packed_version_ == params.version()) return is_packed_ ? packed_ : nullptr;
  packed_version_ = params.version();
  is_packed_ = false;
  const auto is_kept = [&](std::size_t k) { return params.has(k); };
  if (!std::ranges::all_of(programs->packed_inputs(), is_kept)) return nullptr;
  try {
    pack();
  } catch (const UserError& e) {
    // There is no room for it, but for the program as it is.
    if (e.diagnostic().code != ErrorCode::OutOfMemory) throw;
    return nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  is_packed_ = true;
  return packed_;
}

// Takes over what has changed. Both mutexes are held.
void CompiledGraph::Impl::pack() {
  if (!packed_) packed_ = std::make_shared<Impl>(programs->packed(), device);
  std::vector<std::uint64_t> now;
  for (std::size_t k = 0; k < programs->inputs().size(); ++k) now.push_back(params.version(k));
  packed_versions_.resize(now.size(), 0);
  std::vector<std::pair<std::size_t, Tensor>> joined;
  const std::vector<runtime::PackedParam>& all = programs->packing()->params;
  makers_.resize(all.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    const runtime::PackedParam& p = all[m];
    Feeds sources;
    bool changed = false;
    for (const std::string& source : p.sources) {
      const std::size_t k = programs->input_named(source);
      changed = changed || now[k] != packed_versions_[k];
      sources.emplace(source, params.get(k));
    }
    if (!changed) continue;
    if (!makers_[m]) makers_[m] = compile(p.maker, device, {.pack_params = false});
    joined.emplace_back(packed_->programs->input_named(p.name), makers_[m]->run(sources)[0]);
  }
  // At once: a run sees all of them old or all of them new.
  const std::unique_lock lock(packed_->params.mutex());
  for (const auto& [k, value] : joined) packed_->params.set(k, value, false);
  for (std::size_t k = 0; k < now.size(); ++k) {
    if (now[k] != packed_versions_[k]) packed_->params.share(k, params, k);
  }
  packed_versions_ = now;
}

std::shared_ptr<CompiledGraph::Impl> CompiledGraph::Impl::packed_for(const Feeds& feeds) {
  if (programs->packing() == nullptr) return nullptr;
  const std::span<const Port> ports = programs->inputs();
  const bool others = std::ranges::all_of(feeds, [&](const auto& feed) {
    const auto port = std::ranges::find(ports, feed.first, &Port::name);
    if (port == ports.end()) return false;  // which is an error of this graph
    const auto k = static_cast<std::size_t>(port - ports.begin());
    return !std::ranges::binary_search(programs->packed_inputs(), k);
  });
  return others ? packed() : nullptr;
}

std::shared_ptr<CompiledGraph::Impl> CompiledGraph::Impl::packed_for(
    std::span<const void* const> inputs) {
  if (programs->packing() == nullptr || inputs.size() != programs->inputs().size()) return nullptr;
  const bool others = std::ranges::all_of(programs->packed_inputs(),
                                          [&](std::size_t k) { return inputs[k] == nullptr; });
  return others ? packed() : nullptr;
}

}  // namespace ricci
