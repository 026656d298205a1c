#include "feeds.h"

#include <cmath>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ricci/io/npy.h"
#include "ricci/op/leaf.h"
#include "ricci/support/checked.h"
#include "ricci/support/hash.h"

#include "numbers.h"
#include "support/machine_memory.h"

namespace ricci::tool {
namespace {

constexpr std::int64_t AnySize = 4;  // of a symbolic dimension nothing else decides

Tensor as_declared(const Graph& graph, const std::string& name, Tensor value) {
  const Type& declared = graph.node(graph.find_or_throw(name)).types[0];
  if (declared.dtype != DType::BF16 || value.dtype() != DType::F32) return value;
  return Tensor::from_numbers<double>(value.type().with(DType::BF16), value.numbers<double>());
}

// Values that are made up may be larger than memory; files are not.
void require_room(const Graph& graph, const RunValues& values) {
  constexpr std::int64_t PerElement =
      16 + 16;  // a number of the widest dtype, and while it is made
  std::int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (!node.op.is<op::Input>() && !node.op.is<op::Param>()) continue;
    std::int64_t elements = PerElement;
    for (const Dim& d : node.types[0].dims) {
      elements = saturating_mul(elements, d.bind(values.symbols).value());
    }
    bytes = saturating_add(bytes, elements);
  }
  if (bytes <= machine_memory()) return;
  throw UserError({.code = ErrorCode::OutOfMemory,
                   .detail = "random",
                   .message = fmt::format("the inputs and params of '{}' may take {} bytes, but "
                                          "there are {}",
                                          graph.name(), bytes, machine_memory()),
                   .where = {},
                   .notes = {},
                   .help = "give smaller sizes"});
}

void fill_randomly(const Graph& graph, std::uint64_t seed, RunValues& values) {
  values.symbols = bindings_from_feeds(graph, values.feeds, std::move(values.symbols));
  for (const std::string& symbol : graph.symbols()) values.symbols.try_emplace(symbol, AnySize);
  require_room(graph, values);
  for (const Node& node : graph.nodes()) {
    const auto* in = node.op.as<op::Input>();
    const auto* param = node.op.as<op::Param>();
    if (in == nullptr && param == nullptr) continue;
    const std::string& name = in != nullptr ? in->name : param->name;
    if (values.feeds.contains(name)) continue;
    values.feeds.emplace(name, random_tensor(node.types[0].bind(values.symbols), seed, name));
  }
}

// Could the graph take a value of that type? Sizes that feeds disagree about are for later.
bool fits(const Graph& graph, const std::string& name, const Type& type,
          const SymbolBindings& symbols) {
  Type declared = graph.node(graph.find_or_throw(name)).types[0];
  const bool widened = declared.dtype == DType::BF16 && type.dtype == DType::F32;
  if (type.rank() != declared.rank() || (type.dtype != declared.dtype && !widened)) return false;
  declared = declared.bind(symbols);
  for (std::size_t i = 0; i < type.rank(); ++i) {
    if (declared.dims[i].is_static() && !(declared.dims[i] == type.dims[i])) return false;
  }
  return true;
}

// Arrays are unpacked only where the graph can take them. One that does not fit costs nothing: a
// single number of its type stands for it, and is refused with the message for wrong feeds.
void read_archive(const Graph& graph, const std::string& archive, const FeedOptions& options,
                  std::set<std::string>& archived, RunValues& values) {
  Feeds& feeds = values.feeds;
  const auto wanted = [&](const std::string& name, const Type& type) {
    (void)graph.find_or_throw(name);
    if (!archived.insert(name).second) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is in two archives", name));
    }
    if (feeds.contains(name)) return false;  // --input comes first
    if (fits(graph, name, type, values.symbols)) return true;
    feeds.emplace(name, Tensor::splat(type, std::int64_t{0}));
    return false;
  };
  for (auto& [name, value] :
       io::read_npz(archive, {.max_total_bytes = options.max_bytes, .wanted = wanted})) {
    feeds.emplace(name, as_declared(graph, name, std::move(value)));
  }
}

std::string check_assignment(const std::string& text) {
  return split_assignment(text) ? "" : "'" + text + "' is not of the form NAME=VALUE";
}

}  // namespace

void declare_sizes(CLI::App& command, std::vector<std::string>& sizes, const char* meaning) {
  command.add_option("--size", sizes, meaning)
      ->type_name("NAME=NUMBER")
      ->check(check_assignment)
      ->allow_extra_args(false);
}

SymbolBindings given_sizes(const Graph& graph, const std::vector<std::string>& sizes) {
  SymbolBindings bindings;
  const std::set<std::string> symbols = graph.symbols();
  for (const std::string& text : sizes) {
    const auto [symbol, digits] = split_assignment(text).value();
    std::int64_t size = 0;
    if (!read_whole(digits, size)) {
      throw UserError(ErrorCode::Attr, fmt::format("'{}' is not a size for '{}'", digits, symbol),
                      "a size is a whole number of at most 64 bits");
    }
    if (!symbols.contains(symbol)) {
      throw UserError(ErrorCode::Name, fmt::format("no dimension is named '{}'", symbol));
    }
    const auto [known, fresh] = bindings.emplace(symbol, size);
    if (!fresh && known->second != size) {
      throw UserError(ErrorCode::Name, fmt::format("the size '{}' is given twice", symbol));
    }
  }
  return bindings;
}

void FeedOptions::declare(CLI::App& command) {
  command.add_option("--input", arrays, "value of an input or param (repeatable)")
      ->type_name("NAME=FILE.npy")
      ->check(check_assignment)
      ->allow_extra_args(false);
  command.add_option("--inputs", archives, "values by name (repeatable); --input comes first")
      ->type_name("FILE.npz")
      ->allow_extra_args(false);
  declare_rest(command);
}

void FeedOptions::declare_rest(CLI::App& command) {
  command
      .add_option("--max-input-bytes", max_bytes,
                  "bytes that arrays from a file may take (default: 64 GiB; of an archive 64 times "
                  "its own size, and 256 MiB in any case)")
      ->type_name("BYTES")
      ->check(check_positive<std::int64_t>);
  command.add_option("--random", random_seed, "fill every other input and param from this seed")
      ->type_name("SEED")
      ->check(check_whole<std::uint64_t>);
  declare_sizes(command, sizes,
                "size of a symbolic dimension (repeatable; with --random the default is 4)");
}

bool FeedOptions::any() const {
  return !arrays.empty() || !archives.empty() || !sizes.empty() || random_seed.has_value();
}

std::optional<std::pair<std::string, std::string>> split_assignment(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) return std::nullopt;
  return std::pair{text.substr(0, at), text.substr(at + 1)};
}

RunValues make_values(const Graph& graph, const FeedOptions& options) {
  RunValues values{.feeds = {}, .symbols = given_sizes(graph, options.sizes)};
  Feeds& feeds = values.feeds;
  for (const std::string& text : options.arrays) {
    const auto [name, file] = split_assignment(text).value();
    if (!feeds
             .emplace(name,
                      as_declared(graph, name,
                                  io::read_npy(file, options.max_bytes.value_or(MaxFileBytes))))
             .second) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is given twice", name));
    }
  }
  std::set<std::string> archived;
  for (const std::string& archive : options.archives) {
    read_archive(graph, archive, options, archived, values);
  }
  if (options.random_seed) fill_randomly(graph, *options.random_seed, values);
  return values;
}

Tensor random_tensor(const Type& type, std::uint64_t seed, const std::string& name) {
  const Tensor storage = Tensor::zeros(type);  // checks the type and that there is room
  const auto count = static_cast<std::size_t>(storage.numel());
  const std::uint64_t key = Hasher().add(seed).add(std::string_view(name)).value();
  const auto bits = [&](std::size_t i) { return Hasher().add(key).add(std::uint64_t{i}).value(); };
  if (is_int(type.dtype) || type.dtype == DType::Bool) {
    constexpr std::uint64_t Values = 2;  // small enough to be labels and indices of most programs
    std::vector<std::int64_t> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
      numbers[i] = static_cast<std::int64_t>((bits(i) >> 32) % Values);
    }
    return Tensor::from_numbers<std::int64_t>(type, numbers);
  }
  const auto uniform = [&](std::size_t i) {
    return std::ldexp(static_cast<double>(bits(i) >> 11), -52) - 1.0;
  };
  if (is_complex(type.dtype)) {
    std::vector<std::complex<double>> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = {uniform(2 * i), uniform(2 * i + 1)};
    return Tensor::from_numbers<std::complex<double>>(type, numbers);
  }
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = uniform(i);
  return Tensor::from_numbers<double>(type, numbers);
}

}  // namespace ricci::tool
