#include "serve/service/joined_program.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ricci/support/error.h"
#include "ricci/transform/vmap.h"

#include "ir/draws_numbers.h"

namespace ricci::serve {
namespace {

CompiledGraph compiled(const Session& session, const Graph& graph, const KeptValues& kept) {
  CompiledGraph out = Session(session).compile(graph);
  for (const auto& [name, value] : kept) out.set_param(name, value);
  return out;
}

// How many calls there are, under a name that no size of the program has.
std::string name_of_count(const CompiledGraph& program) {
  std::set<std::string> taken;
  for (const Port& port : program.inputs()) {
    for (const Dim& d : port.type.dims) d.collect_symbols(taken);
  }
  std::string name = "calls";
  while (taken.contains(name)) name += '_';
  return name;
}

// [calls, …]
Tensor stacked(const std::string& name, std::span<const Feeds* const> calls) {
  const Tensor& first = calls.front()->at(name);
  Type type = first.type();
  type.dims.insert(type.dims.begin(), static_cast<std::int64_t>(calls.size()));
  Tensor out = Tensor::zeros(type);
  std::byte* to = out.mutable_data();
  for (const Feeds* call : calls) {
    const Tensor one = call->at(name).contiguous();
    const std::span<const std::byte> bytes = one.bytes();
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  }
  return out;
}

}  // namespace

JoinedProgram::JoinedProgram(const Graph& graph, Session session, KeptValues kept)
    : graph_(graph),
      session_(std::move(session)),
      kept_(std::move(kept)),
      single_(compiled(session_, graph_, kept_)),
      joins_(std::ranges::none_of(graph_.nodes(), draws_numbers)) {}

bool JoinedProgram::is_kept(std::string_view name) const {
  return std::ranges::any_of(kept_, [&](const auto& k) { return k.first == name; });
}

bool JoinedProgram::can_join(const Feeds& a, const Feeds& b) const {
  return joins_ && !a.empty() && a.size() == b.size() &&
         std::ranges::equal(a, b, [&](const auto& x, const auto& y) {
           return x.first == y.first && x.second.type() == y.second.type() && !is_kept(x.first);
         });
}

const CompiledGraph& JoinedProgram::several() {
  if (several_) return *several_;
  std::vector<BatchedInput> batched;
  for (const Port& port : single_.inputs()) {
    if (!is_kept(port.name)) batched.emplace_back(port.name);
  }
  const Dim count = Dim::symbol(name_of_count(single_));
  std::optional<Graph> graph;
  try {
    graph = vmap(graph_, batched, count).graph;
  } catch (const UserError& e) {
    joins_ = e.code() == ErrorCode::Stopped;  // the program has an op that has no rule for it
    throw;
  }
  several_ = compiled(session_, *graph, kept_);
  return *several_;
}

std::vector<Outputs> JoinedProgram::run(std::span<const Feeds* const> calls,
                                        const RunOptions& options) {
  std::vector<Outputs> out;
  if (calls.size() == 1) {
    out.push_back(single_.run(*calls.front(), options));
    return out;
  }
  const CompiledGraph& program = several();
  Feeds together;
  for (const auto& [name, value] : *calls.front()) together.emplace(name, stacked(name, calls));
  const Outputs results = program.run(together, options);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Outputs own;
    for (const Tensor& all : results) {
      const StaticDims rest(all.dims().begin() + 1, all.dims().end());
      own.push_back(all.narrowed(0, static_cast<std::int64_t>(i), 1).reshaped(rest));
    }
    out.push_back(std::move(own));
  }
  return out;
}

}  // namespace ricci::serve
