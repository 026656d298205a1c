#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "ricci/array/function.h"
#include "ricci/array/random.h"
#include "ricci/support/hash.h"

#include "array/node.h"
#include "array/program.h"
#include "support/fork.h"

namespace ricci {
namespace {

struct WarningHandler {
  ForkMutex mutex;
  std::function<void(std::string_view)> handler = [](std::string_view text) {
    std::fprintf(stderr, "ricci: %.*s\n", static_cast<int>(text.size()), text.data());
  };
};
WarningHandler& warning_handler() {
  static WarningHandler h;
  return h;
}

void warn(const std::string& text) {
  std::function<void(std::string_view)> handler;
  {
    const std::lock_guard lock(warning_handler().mutex);
    handler = warning_handler().handler;
  }
  if (handler) handler(text);
}

}  // namespace

void set_warning_handler(std::function<void(std::string_view)> handler) {
  const std::lock_guard lock(warning_handler().mutex);
  warning_handler().handler = std::move(handler);
}

namespace detail {

struct JitCache::Entry {
  TracedFunction function;
  std::size_t seeds = 0;
  bool captures_trace = false;
  std::shared_ptr<const void> result;
  std::vector<std::string> names;
  std::vector<Type> types;
  std::vector<std::uint64_t> words;
  std::once_flag compile_once;
  std::unique_ptr<ArrayProgram> program;
};

struct JitCache::Impl {
  JitOptions options;
  mutable ForkMutex mutex;
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::vector<std::uint64_t>, EntryPtr>>>
      entries;
  EntryPtr last;
  std::size_t compiled = 0;
};

namespace {

std::uint64_t hash_of(const std::vector<std::uint64_t>& words) {
  Hasher h;
  for (const std::uint64_t w : words) h.add(w);
  return h.value();
}

// What differs between two sets of arguments, in words.
std::string difference(const JitCache::Entry& before, const JitCache::Entry& now) {
  if (before.types.size() != now.types.size()) {
    return fmt::format("there were {} arrays and are {}", before.types.size(), now.types.size());
  }
  for (std::size_t i = 0; i < now.types.size(); ++i) {
    if (before.types[i] == now.types[i]) continue;
    return fmt::format("'{}' was {} and is {}", now.names[i], before.types[i].to_string(),
                       now.types[i].to_string());
  }
  if (before.words != now.words) return "a static value (a number, a string, a size) changed";
  return "the arguments' C++ types changed";
}

}  // namespace

JitCache::JitCache(JitOptions options, std::source_location where)
    : impl_(std::make_unique<Impl>()), where_(where) {
  impl_->options = std::move(options);
}
JitCache::~JitCache() = default;

std::vector<std::uint64_t> JitCache::key_of(const Flattened& args, const void* types) {
  std::vector<std::uint64_t> key;
  key.reserve(args.words.size() + 4 * args.leaves.size() + 2);
  key.push_back(std::bit_cast<std::uintptr_t>(types));
  key.push_back(args.leaves.size());
  key.insert(key.end(), args.words.begin(), args.words.end());
  for (const Array* x : args.leaves) {
    const ArrayNode& n = *x->node();
    const Type& type = n.types[x->result()];
    key.push_back(static_cast<std::uint64_t>(type.dtype) << 32 | type.rank() << 1 |
                  (n.weak ? 1U : 0U));
    for (const Dim& d : type.dims) key.push_back(static_cast<std::uint64_t>(d.value()));
  }
  return key;
}

JitCache::EntryPtr JitCache::find(const std::vector<std::uint64_t>& key) const {
  const std::uint64_t hash = hash_of(key);
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->entries.find(hash);
  if (it == impl_->entries.end()) return nullptr;
  for (const auto& [known, entry] : it->second) {
    if (known == key) return entry;
  }
  return nullptr;
}

JitCache::EntryPtr JitCache::add(std::vector<std::uint64_t> key, const Flattened& args,
                                 std::vector<std::string> names, TracedFunction function,
                                 std::size_t seeds, std::shared_ptr<const void> result) {
  auto entry = std::make_shared<Entry>();
  entry->function = std::move(function);
  entry->seeds = seeds;
  entry->result = std::move(result);
  entry->names = std::move(names);
  entry->words = args.words;
  for (const Array* x : args.leaves) entry->types.push_back(x->type());
  for (const Array& x : entry->function.captures) {
    entry->captures_trace = entry->captures_trace || x.node()->trace != nullptr;
  }
  if (entry->captures_trace) return entry;  // good for this call only
  std::string warning;
  {
    const std::lock_guard lock(impl_->mutex);
    const JitOptions& options = impl_->options;
    if (++impl_->compiled == options.warn_after && impl_->last) {
      warning = fmt::format("'{}', jit at {}, has been compiled {} times; the last time {}. Pad to "
                            "a few sizes, or pass what varies as an array",
                            options.name, SourcePosition::from(where_).to_string(), impl_->compiled,
                            difference(*impl_->last, *entry));
    }
    impl_->last = entry;
    const std::uint64_t hash = hash_of(key);
    impl_->entries[hash].emplace_back(std::move(key), entry);
  }
  if (!warning.empty()) warn(warning);
  return entry;
}

std::vector<Array> JitCache::run(Entry& entry, std::span<const Array* const> leaves) const {
  bool traced = entry.captures_trace;
  bool waits = false;
  for (const Array* x : leaves) {
    traced = traced || x->node()->trace != nullptr;
    waits = waits || !x->node()->is_ready();
  }
  const std::vector<Array>& captures = entry.function.captures;
  std::vector<Array> seeds;
  for (std::size_t i = 0; i < entry.seeds; ++i) seeds.push_back(next_key().words());
  for (const Array& x : seeds) traced = traced || x.node()->trace != nullptr;
  if (traced) {
    std::vector<Array> operands;
    for (const Array* x : leaves) operands.push_back(*x);
    operands.insert(operands.end(), seeds.begin(), seeds.end());
    return call(entry.function, operands, where_);
  }
  if (waits) {
    std::vector<Array> all;
    for (const Array* x : leaves) all.push_back(*x);
    materialize(all, where_);
  }
  std::call_once(entry.compile_once, [&] {
    materialize(captures, where_);
    entry.program = std::make_unique<ArrayProgram>(entry.function.callee->graph);
  });
  std::vector<const void*> inputs;
  inputs.reserve(leaves.size() + seeds.size() + captures.size());
  for (const Array* x : leaves) inputs.push_back(x->node()->values[x->result()].data());
  for (const Array& x : seeds) inputs.push_back(x.tensor().data());
  for (const Array& x : captures) inputs.push_back(x.node()->values[x.result()].data());
  std::vector<Array> out;
  std::vector<Tensor> results = entry.program->run(inputs);
  out.reserve(results.size());
  for (Tensor& t : results) out.push_back(value_array(std::move(t)));
  return out;
}

const void* JitCache::result_of(const Entry& entry) { return entry.result.get(); }
const Graph& JitCache::graph_of(const Entry& entry) { return entry.function.callee->graph; }

std::size_t JitCache::compiled() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->compiled;
}

}  // namespace detail
}  // namespace ricci
