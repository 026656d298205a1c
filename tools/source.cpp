#include "source.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "ricci/io/file.h"
#include "ricci/ir/text.h"
#include "ricci/support/text.h"

#include "numbers.h"
#include "support/descriptor.h"
#include "support/read_open.h"

namespace ricci::tool {
namespace {

// Past the buffer of the C library, so that what cannot be written is not tried again at the end.
void write_standard_output(std::string_view text) {
  Descriptor output(STDOUT_FILENO);
  const bool written = write_all(output, std::as_bytes(std::span(text)));
  const int reason = errno;
  (void)output.release();
  if (written) return;
  throw UserError(Diagnostic{
      .code = ErrorCode::File,
      .detail = "write",
      .message = fmt::format("cannot write to standard output: {}", std::strerror(reason)),
      .where = {},
      .notes = {},
      .help = {}});
}

// As it is: what is a socket could not be opened by its name.
std::vector<std::byte> read_standard_input(std::int64_t max_bytes) {
  Descriptor input(STDIN_FILENO);
  try {
    std::vector<std::byte> bytes = read_open(input, "<stdin>", max_bytes);
    (void)input.release();
    return bytes;
  } catch (...) {
    (void)input.release();
    throw;
  }
}

void set_limit(Limits& limits, std::string_view text) {
  const std::size_t at = std::min(text.find('='), text.size());
  std::int64_t value = 0;
  if (at == text.size() || !read_whole(text.substr(at + 1), value)) {
    throw UserError(ErrorCode::Name,
                    fmt::format("'{}' is not of the form NAME=NUMBER", shortened(text)));
  }
  limits.set(text.substr(0, at), value);
}

std::string check_limit(const std::string& text) {
  try {
    Limits limits;
    set_limit(limits, text);
    return "";
  } catch (const UserError& e) {
    const Diagnostic& d = e.diagnostic();
    return d.help.empty() ? d.message : fmt::format("{}\n  help: {}", d.message, d.help);
  }
}

// What people give in the place of a program; empty when it may be one.
std::string_view weights_of(std::string_view text) {
  if (text.starts_with("GGUF")) return "GGUF";
  if (text.starts_with("PK\x03\x04")) return "NPZ";
  if (text.starts_with("\x93NUMPY")) return "NPY";
  // A length of 64 bits, and JSON.
  if (text.size() > 8 && text[7] == '\0' && text[8] == '{') return "safetensors";
  return {};
}

void require_text(std::string_view text, const std::string& shown) {
  const std::string_view format = weights_of(text);
  if (format.empty()) return;
  throw UserError(ErrorCode::File,
                  fmt::format("'{}' is a file of weights ({}), and no program", shown, format),
                  fmt::format("a program is text: graph @name {{ … }}. 'ricci inspect {}' lists "
                              "what is in it; 'ricci serve' takes models from folders with a "
                              "config.json and model.safetensors",
                              shown));
}

std::string limit_help() {
  std::vector<std::string> names;
  for (const LimitInfo& limit : all_limits()) names.emplace_back(limit.name);
  return fmt::format("lets the text be larger or less (repeatable): {}", join(names, ", "));
}

}  // namespace

void Source::declare_one(CLI::App& command) {
  declare(command, "which graph of the file (default: the first)");
}

void Source::declare_all(CLI::App& command) {
  declare(command, "only this graph of the file (default: all)");
}

void Source::declare(CLI::App& command, const char* graph_help) {
  command.add_option("file", file, "text file with graphs; - is standard input")
      ->required()
      ->type_name("FILE");
  command.add_option("--graph", graph, graph_help)->type_name("NAME");
  command
      .add_option_function<std::vector<std::string>>(
          "--limit",
          [this](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) set_limit(limits, text);
          },
          limit_help())
      ->type_name("NAME=NUMBER")
      ->check(check_limit)
      ->allow_extra_args(false);
}

std::vector<Graph> Source::load_all(std::size_t most_faults) const {
  const bool standard_input = file == "-";
  const std::vector<std::byte> bytes = standard_input ? read_standard_input(limits.source_bytes)
                                                      : io::read_file(file, limits.source_bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string shown = standard_input ? "<stdin>" : file;
  require_text(text, shown);
  std::vector<Graph> graphs =
      parse(text, {.file = shown, .limits = limits, .most_faults = most_faults});
  if (graphs.empty()) {
    throw UserError(ErrorCode::Parse, fmt::format("{} holds no graph", shown),
                    "a graph is written: graph @name { … }");
  }
  return graphs;
}

Graph Source::load() const { return std::move(load_chosen().front()); }

std::vector<Graph> Source::load_chosen(std::size_t most_faults) const {
  std::vector<Graph> graphs = load_all(most_faults);
  if (graph.empty()) return graphs;
  std::vector<std::string> names;
  for (Graph& g : graphs) {
    if (g.name() == graph) return {std::move(g)};
    names.push_back(g.name());
  }
  throw UserError(ErrorCode::Name, fmt::format("{} has no graph named {}", file, quote(graph)),
                  fmt::format("its graphs are {}", shortened(join(names, ", "), 1000)));
}

void write_texts(std::span<const TextFile> files) {
  std::vector<std::unique_ptr<io::AtomicFile>> open;
  for (const TextFile& f : files) {
    if (f.path == "-") continue;
    open.push_back(std::make_unique<io::AtomicFile>(f.path));
    open.back()->write(std::as_bytes(std::span(f.text)));
  }
  for (const TextFile& f : files) {
    if (f.path == "-") write_standard_output(f.text);
  }
  for (const auto& file : open) file->commit();
}

void write_text(const std::string& path, std::string_view text) {
  write_texts(std::array{TextFile{path, std::string(text)}});
}

}  // namespace ricci::tool
