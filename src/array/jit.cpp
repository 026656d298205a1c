#include <algorithm>
#include <array>
#include <atomic>
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
// Never destroyed: functions of static storage may be called until the very end.
WarningHandler& warning_handler() {
  static WarningHandler& h = *new WarningHandler;
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
  std::vector<Type> types;      // of all leaves, with symbols where sizes vary
  std::vector<bool> is_static;  // which of them are no inputs; empty: none
  bool symbolic = false;
  std::vector<int> donors;  // for each result the leaf whose memory it may take, or -1; or none
  std::vector<std::uint64_t> words;
  std::vector<std::size_t> word_ends;  // for each argument the number behind its last word
  std::vector<ArgumentKind> kinds;
  std::optional<Device> device;  // the one it runs on
  // Held while it is compiled, which a child of fork does itself when it was not finished.
  ForkSharedMutex compiling;
  std::unique_ptr<ArrayProgram> program;
  std::atomic<ArrayProgram*> compiled = nullptr;

  [[nodiscard]] bool is_input(std::size_t leaf) const {
    return is_static.empty() || !is_static[leaf];
  }
};

struct JitCache::Impl {
  JitOptions options;
  mutable ForkMutex mutex;
  std::unordered_map<std::uint64_t, std::vector<std::pair<Key, EntryPtr>>> entries;
  EntryPtr last;
  std::size_t compiled = 0;
};

namespace {

// No size is this large, and no dtype and rank.
constexpr std::uint64_t NotANumber = std::uint64_t{1} << 63;

std::uint64_t hash_of(const std::vector<std::uint64_t>& words) {
  Hasher h;
  for (const std::uint64_t w : words) h.add(w);
  return h.value();
}

bool is_traced(std::span<const Array* const> leaves) {
  return std::ranges::any_of(leaves, [](const Array* x) { return x->node()->trace != nullptr; });
}

// The leaves of an argument.
std::pair<std::size_t, std::size_t> leaves_of(const JitArguments& args, std::size_t argument) {
  return {argument == 0 ? 0 : args.ends[argument - 1], args.ends[argument]};
}

void require_argument(std::size_t argument, const JitArguments& args, const char* option,
                      std::source_location where) {
  if (argument < args.ends.size()) return;
  refuse(ErrorCode::Attr, "jit",
         fmt::format("'{}' of jit names argument {}, the function has {}", option, argument,
                     args.ends.size()),
         "the first argument is 0", where);
}

std::vector<bool> static_leaves(const JitArguments& args, const JitOptions& options,
                                std::source_location where) {
  if (options.static_arguments.empty()) return {};
  std::vector<bool> out(args.flat.leaves.size(), false);
  for (const std::size_t argument : options.static_arguments) {
    require_argument(argument, args, "static_arguments", where);
    const auto [from, to] = leaves_of(args, argument);
    for (std::size_t k = from; k < to; ++k) {
      const Array& x = *args.flat.leaves[k];
      if (x.node()->trace == nullptr) {
        out[k] = true;
        continue;
      }
      refuse(ErrorCode::Refused, "static",
             fmt::format("argument {} is static to jit, and is being traced by '{}'", argument,
                         x.node()->trace->what),
             "what is static has a value when the function is traced", where);
    }
  }
  return out;
}

// A leaf's type with names where its sizes may vary.
Type with_symbols(const Type& type, const SymbolicShape& shape, std::source_location where) {
  Type out = type;
  const bool fits = shape.shape.size() <= type.rank();
  for (std::size_t a = 0; fits && a < shape.shape.size(); ++a) {
    const Dim& d = shape.shape[a];
    if (!d.is_static()) {
      if (!d.as_symbol()) {
        refuse(ErrorCode::Attr, "symbolic",
               fmt::format("a size of argument {} is {}, which is no name", shape.argument,
                           d.to_string()),
               "give every size that varies a name of its own", where);
      }
      out.dims[a] = d;
    } else if (d != type.dims[a]) {
      out.dims.clear();
      break;
    }
  }
  if (fits && out.rank() == type.rank()) return out;
  refuse(ErrorCode::Shape, "symbolic",
         fmt::format("argument {} of jit starts with {}, {} is given", shape.argument,
                     Type{type.dtype, shape.shape}.to_string(), type.to_string()),
         "the shape of a symbolic argument names its first axes", where);
}

// The leaves' types, numbers as they are kept.
std::vector<Type> marked_types(const JitArguments& args, const JitOptions& options,
                               std::source_location where) {
  std::vector<Type> out;
  for (const Array* x : args.flat.leaves) out.push_back(x->node()->types[x->result()]);
  // Inside another trace sizes are what they are there.
  if (options.symbolic.empty() || is_traced(args.flat.leaves)) return out;
  for (const SymbolicShape& shape : options.symbolic) {
    require_argument(shape.argument, args, "symbolic", where);
    const auto [from, to] = leaves_of(args, shape.argument);
    for (std::size_t k = from; k < to; ++k) out[k] = with_symbols(out[k], shape, where);
  }
  return out;
}

void add_type(JitCache::Key& key, const Type& type, bool weak) {
  key.push_back(static_cast<std::uint64_t>(type.dtype) << 32 | type.rank() << 1 | (weak ? 1U : 0U));
  for (const Dim& d : type.dims) {
    if (const auto size = d.try_value()) {
      key.push_back(static_cast<std::uint64_t>(*size));
      continue;
    }
    key.push_back(NotANumber);
    Flattened text;
    text.text(d.to_string());
    key.insert(key.end(), text.words.begin(), text.words.end());
  }
}

void add_value(JitCache::Key& key, const Tensor& value) {
  Flattened bytes;
  const std::span<const std::byte> all = value.bytes();
  bytes.text({reinterpret_cast<const char*>(all.data()), all.size()});  // NOLINT: bytes are bytes
  key.insert(key.end(), bytes.words.begin(), bytes.words.end());
}

// What the names of sizes stand for in a call.
SymbolBindings sizes_of(const std::vector<Type>& types, const std::vector<std::string>& names,
                        std::span<const Array* const> leaves, std::source_location where) {
  SymbolBindings out;
  for (std::size_t k = 0; k < types.size(); ++k) {
    const Type& given = leaves[k]->node()->types[leaves[k]->result()];
    for (std::size_t a = 0; a < given.rank(); ++a) {
      const auto symbol = types[k].dims[a].as_symbol();
      if (!symbol) continue;
      const std::int64_t size = given.dims[a].value();
      const auto [it, fresh] = out.emplace(*symbol, size);
      if (fresh || it->second == size) continue;
      refuse(ErrorCode::Shape, "symbolic",
             fmt::format("'{}' of '{}' is {}, elsewhere it is {}", *symbol, names[k], size,
                         it->second),
             "one name is one size; sizes that differ have names of their own", where);
    }
  }
  return out;
}

std::string number_text(ArgumentKind kind, std::uint64_t word) {
  return kind == ArgumentKind::Float ? fmt::format("{}", std::bit_cast<double>(word))
                                     : fmt::format("{}", static_cast<std::int64_t>(word));
}

// Which argument has other static values than before.
std::string static_difference(const JitCache::Entry& before, const JitCache::Entry& now) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < now.kinds.size(); from = now.word_ends[i++]) {
    // Up to here all is as it was, so both start at the same word.
    const auto words_of = [&](const JitCache::Entry& e) {
      return std::span(e.words).subspan(from, e.word_ends[i] - from);
    };
    const auto was = words_of(before);
    const auto is = words_of(now);
    if (std::ranges::equal(was, is)) continue;
    if (now.kinds[i] == ArgumentKind::Tree) {
      return fmt::format("argument {} holds another number, string or size", i);
    }
    return fmt::format("argument {}, a number that is compiled in, was {} and is {} (an Array in "
                       "its place may vary)",
                       i, number_text(now.kinds[i], was[0]), number_text(now.kinds[i], is[0]));
  }
  return "a static value changed";
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
  if (before.words != now.words) return static_difference(before, now);
  if (!now.is_static.empty()) return "the values of a static argument changed";
  return "the arguments' C++ types changed";
}

// For each result a leaf of the same type among those that are donated.
std::vector<int> donors_of(const JitCache::Entry& entry, const JitArguments& args,
                           const JitOptions& options, std::source_location where) {
  const Graph& graph = entry.function.callee->graph;
  std::vector<bool> free(entry.types.size(), false);
  for (const std::size_t argument : options.donate) {
    require_argument(argument, args, "donate", where);
    const auto [from, to] = leaves_of(args, argument);
    for (std::size_t k = from; k < to; ++k) {
      free[k] = entry.is_input(k) && !args.flat.leaves[k]->node()->weak;
    }
  }
  std::vector<int> out;
  bool any = false;
  for (const ValueId v : graph.outputs()) {
    int& donor = out.emplace_back(-1);
    for (std::size_t k = 0; k < free.size() && donor < 0; ++k) {
      if (!free[k] || !(entry.types[k] == graph.type(v))) continue;
      free[k] = false;
      donor = static_cast<int>(k);
      any = true;
    }
  }
  return any ? out : std::vector<int>();
}

// The memory of an array that nobody holds but the call it was handed over to.
std::shared_ptr<std::byte> memory_of(const Array& x) {
  const ArrayNode& n = *x.node();
  if (n.kind != ArrayNode::Kind::Value || !n.room || x.node().use_count() != 1) return nullptr;
  const long holders = n.boxed.load(std::memory_order_acquire) ? 2 : 1;  // the node and its tensor
  if (n.room.use_count() != holders) return nullptr;
  std::atomic_thread_fence(std::memory_order_acquire);  // what others have read, they have read
  return n.room;
}

}  // namespace

JitCache::JitCache(JitOptions options, std::source_location where)
    : impl_(std::make_unique<Impl>()), where_(where) {
  impl_->options = std::move(options);
}
JitCache::~JitCache() = default;

JitCache::Key JitCache::key_of(const JitArguments& args, const void* types) const {
  const JitOptions& options = impl_->options;
  const std::vector<const Array*>& leaves = args.flat.leaves;
  Key key;
  key.reserve(args.flat.words.size() + 4 * leaves.size() + 2);
  key.push_back(std::bit_cast<std::uintptr_t>(types));
  // Entries keep their device, so no other has its place.
  if (!options.device) key.push_back(std::bit_cast<std::uintptr_t>(&current_device().backend()));
  key.push_back(leaves.size());
  key.insert(key.end(), args.flat.words.begin(), args.flat.words.end());
  if (options.symbolic.empty()) {
    for (const Array* x : leaves) {
      const ArrayNode& n = *x->node();
      add_type(key, n.types[x->result()], n.weak);
    }
  } else {
    const std::vector<Type> marked = marked_types(args, options, where_);
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      add_type(key, marked[k], leaves[k]->node()->weak);
    }
  }
  const std::vector<bool> is_static = static_leaves(args, options, where_);
  for (std::size_t k = 0; k < is_static.size(); ++k) {
    if (is_static[k])
      add_value(key, value_of(*leaves[k]->eval(where_).node(), leaves[k]->result()));
  }
  return key;
}

JitCache::EntryPtr JitCache::find(const Key& key) const {
  const std::uint64_t hash = hash_of(key);
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->entries.find(hash);
  if (it == impl_->entries.end()) return nullptr;
  for (const auto& [known, entry] : it->second) {
    if (known == key) return entry;
  }
  return nullptr;
}

std::vector<Array> JitCache::marks(Tracing& tracing, const JitArguments& args) const {
  const std::vector<bool> is_static = static_leaves(args, impl_->options, where_);
  const std::vector<Type> types = marked_types(args, impl_->options, where_);
  std::vector<Array> out;
  for (std::size_t k = 0; k < types.size(); ++k) {
    const Array& x = *args.flat.leaves[k];
    if (!is_static.empty() && is_static[k]) {
      out.push_back(x);
    } else {
      out.push_back(x.node()->weak ? tracing.placeholder(x) : tracing.placeholder(types[k]));
    }
  }
  return out;
}

JitCache::EntryPtr JitCache::add(Key key, const JitArguments& args, Tracing& tracing,
                                 std::span<const Array> results, std::vector<std::string> names,
                                 std::shared_ptr<const void> result) {
  auto entry = std::make_shared<Entry>();
  entry->is_static = static_leaves(args, impl_->options, where_);
  entry->types = marked_types(args, impl_->options, where_);
  std::vector<std::string> inputs;
  for (std::size_t k = 0; k < names.size(); ++k) {
    if (entry->is_input(k)) inputs.push_back(names[k]);
  }
  entry->device = impl_->options.device ? *impl_->options.device : current_device();
  entry->function = tracing.finish(results, inputs);
  entry->seeds = tracing.seeds().size();
  entry->symbolic = !impl_->options.symbolic.empty() && !is_traced(args.flat.leaves);
  entry->result = std::move(result);
  entry->names = std::move(names);
  entry->words = args.flat.words;
  entry->word_ends.assign(args.word_ends.begin(), args.word_ends.end());
  entry->kinds.assign(args.kinds.begin(), args.kinds.end());
  entry->donors = donors_of(*entry, args, impl_->options, where_);
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
                            "a few sizes, name the sizes that vary (JitOptions::symbolic), or pass "
                            "what varies as an array",
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

namespace {

std::unique_ptr<ArrayProgram> program_of(const JitCache::Entry& entry) {
  const Graph& graph = entry.function.callee->graph;
  const std::vector<NodeId> ports = graph.leaves();
  std::vector<Donation> donations;
  for (std::size_t o = 0; o < entry.donors.size(); ++o) {
    if (entry.donors[o] < 0) continue;
    const auto leaf = static_cast<std::size_t>(entry.donors[o]);
    std::size_t input = 0;
    for (std::size_t k = 0; k < leaf; ++k) input += entry.is_input(k) ? 1 : 0;
    donations.push_back({o, *graph.node(ports[input]).leaf_name()});
  }
  return std::make_unique<ArrayProgram>(graph, *entry.device, std::move(donations));
}

// The memory that results may take.
std::vector<std::shared_ptr<std::byte>> handed_over(const JitCache::Entry& entry,
                                                    const JitArguments& args) {
  std::vector<std::shared_ptr<std::byte>> out(entry.donors.size());
  std::size_t argument = 0;
  std::vector<bool> moved;
  for (std::size_t k = 0; k < args.flat.leaves.size(); ++k) {
    while (k >= args.ends[argument]) ++argument;
    moved.push_back(args.handed_over[argument]);
  }
  for (std::size_t o = 0; o < out.size(); ++o) {
    if (entry.donors[o] < 0) continue;
    const auto leaf = static_cast<std::size_t>(entry.donors[o]);
    if (moved[leaf]) out[o] = memory_of(*args.flat.leaves[leaf]);
  }
  return out;
}

}  // namespace

std::vector<Array> JitCache::run(Entry& entry, const JitArguments& args) const {
  const std::vector<const Array*>& leaves = args.flat.leaves;
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
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      if (entry.is_input(k)) operands.push_back(*leaves[k]);
    }
    operands.insert(operands.end(), seeds.begin(), seeds.end());
    return call(entry.function, operands, where_);
  }
  if (waits) {
    std::vector<Array> all;
    for (const Array* x : leaves) all.push_back(*x);
    materialize(all, where_);
  }
  ArrayProgram* program = entry.compiled.load(std::memory_order_acquire);
  if (program == nullptr) {
    const std::lock_guard lock(entry.compiling);
    if (entry.compiled.load(std::memory_order_relaxed) == nullptr) {
      materialize(captures, where_);
      entry.program = program_of(entry);
      entry.compiled.store(entry.program.get(), std::memory_order_release);
    }
    program = entry.compiled.load(std::memory_order_relaxed);
  }
  std::vector<const void*> inputs;
  inputs.reserve(leaves.size() + seeds.size() + captures.size());
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const Array& x = *leaves[k];
    if (entry.is_input(k)) inputs.push_back(data_of(x));
  }
  for (const Array& x : seeds) inputs.push_back(data_of(x.eval(where_)));
  for (const Array& x : captures) inputs.push_back(data_of(x));
  const SymbolBindings sizes =
      entry.symbolic ? sizes_of(entry.types, entry.names, leaves, where_) : SymbolBindings();
  if (entry.donors.empty()) return arrays_of(program->run(inputs, sizes));
  const std::vector<std::shared_ptr<std::byte>> memory = handed_over(entry, args);
  for (std::size_t o = 0; o < memory.size(); ++o) {
    // Results are about to be written there, so this is no value any more. The array was handed
    // over with std::move: it is the caller's to change.
    if (memory[o]) *const_cast<Array*>(leaves[static_cast<std::size_t>(entry.donors[o])]) = {};
  }
  return arrays_of(program->run(inputs, sizes, memory));
}

const void* JitCache::result_of(const Entry& entry) { return entry.result.get(); }

std::size_t JitCache::compiled() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->compiled;
}

}  // namespace detail
}  // namespace ricci
