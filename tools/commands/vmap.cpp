// ricci vmap: one program for a batch of examples.
#include "ricci/transform/vmap.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "commands/transforming.h"

namespace ricci::tool {
namespace {

struct VmapCommandOptions : TransformOptions {
  std::vector<std::string> batch;
  std::string size;
  VmapOptions vmap;
  bool split_random = false;
};

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// `x` or `x:1`; names may hold colons, so that only a number behind the last one is an axis.
BatchedInput batched_input(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {text};
  const auto axis = integer(std::string_view(text).substr(colon + 1));
  return axis ? BatchedInput(text.substr(0, colon), *axis) : BatchedInput(text);
}

// A number, or the name of a symbolic size.
Dim batch_size(const std::string& text) {
  const auto number = integer(text);
  return number ? Dim(*number) : Dim::symbol(text);
}

std::string check_size(const std::string& text) {
  const auto number = integer(text);
  if (number ? *number >= 0 : is_identifier(text)) return "";
  return fmt::format("'{}' is neither a number of examples nor a name for it", text);
}

Transformed batched(const Graph& graph, const VmapCommandOptions& options) {
  std::vector<BatchedInput> inputs;
  for (const std::string& text : options.batch) inputs.push_back(batched_input(text));
  VmapOptions how = options.vmap;
  if (options.split_random) how.random = BatchedRandom::Split;
  return vmap(graph, inputs, batch_size(options.size), how);
}

}  // namespace

void add_vmap(CLI::App& app, Action& action) {
  auto options = std::make_shared<VmapCommandOptions>();
  CLI::App* command = app.add_subcommand("vmap", "the same program over a batch of examples");
  options->declare(*command);
  command
      ->add_option("--batch", options->batch,
                   "inputs and params that get a batch axis, in front or where they say")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("X,W:AXIS");
  command->add_option("--size", options->size, "number of examples, or a name for it")
      ->required()
      ->check(check_size)
      ->type_name("N");
  command
      ->add_option("--out-axes", options->vmap.out_axes,
                   "where outputs have the batch: one for all, or one each (default 0)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("AXIS,…");
  command->add_flag("--split-random", options->split_random,
                    "random ops draw for every example, instead of once for all");
  command->callback([options, &action] {
    action = [options] {
      write_transformed(*options, [&](const Graph& g) { return batched(g, *options); });
    };
  });
}

}  // namespace ricci::tool
