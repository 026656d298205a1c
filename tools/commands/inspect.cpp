// ricci inspect: what is in a file of weights, and one tensor of it as an array.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/io/npy.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "numbers.h"
#include "source.h"
#include "summary.h"

namespace ricci::tool {
namespace {

constexpr std::size_t MostOfValue = 80;

using Row = std::vector<std::string>;

// How many characters a text takes, UTF-8 and all.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Columns as wide as their widest cell; the last is as long as it is.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string out;
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += row[c];
      if (c + 1 < row.size()) out.append(widths[c] - width(row[c]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

// Names are whatever the file says: what could move a terminal's cursor is escaped.
std::string plain(std::string_view name) {
  const std::string quoted = quote(shortened(name));
  const bool as_is = quoted.size() == name.size() + 2 && !name.empty();
  return as_is ? std::string(name) : quoted;
}

std::string count_of(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string listing(const io::Gguf& gguf) {
  std::uint64_t bytes = 0;
  for (const io::StoredTensor& t : gguf.tensors) bytes += t.bytes.size();
  std::string out = fmt::format("GGUF version {}, alignment {}, {}, {} of {} bytes\n", gguf.version,
                                gguf.alignment, count_of(gguf.metadata.size(), "key"),
                                count_of(gguf.tensors.size(), "tensor"), bytes);
  if (!gguf.metadata.empty()) {
    std::vector<Row> rows = {{"key", "kind", "value"}};
    for (const auto& [key, value] : gguf.metadata) {
      rows.push_back({plain(key), io::kind_of(value), io::to_text(value, MostOfValue)});
    }
    out += '\n' + table(rows);
  }
  if (!gguf.tensors.empty()) {
    std::vector<Row> rows = {{"tensor", "type", "shape", "bytes", "at"}};
    for (const io::StoredTensor& t : gguf.tensors) {
      rows.push_back({plain(t.name), std::string(t.type.name),
                      to_string(Dims(t.dims.begin(), t.dims.end())), std::to_string(t.bytes.size()),
                      t.bytes.empty() ? "-" : std::to_string(t.offset)});
    }
    out += '\n' + table(rows);
  }
  return out;
}

Tensor chosen(const io::Gguf& gguf, const std::string& name) {
  if (const io::StoredTensor* found = gguf.find_tensor(name)) return io::load(*found, gguf.owner);
  std::vector<std::string> names;
  for (const io::StoredTensor& t : gguf.tensors) names.push_back(t.name);
  const auto close = nearest(name, names);
  throw UserError(ErrorCode::Name, fmt::format("there is no tensor {}", quote(shortened(name))),
                  close ? fmt::format("did you mean {}?", quote(*close))
                        : "'ricci inspect FILE' lists the tensors of a file");
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  struct Options {
    std::string file;
    std::string tensor;
    std::string out;
    std::int64_t max_bytes = io::MaxMappedBytes;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("inspect", "lists what is in a GGUF file, or takes a tensor out of it");
  command->add_option("FILE", options->file, "a GGUF file")->required();
  auto* tensor = command->add_option("--tensor", options->tensor,
                                     "summarise this tensor, decoded, instead of listing all");
  command->add_option("-o,--out", options->out, "write the tensor to this NPY file")
      ->type_name("FILE")
      ->needs(tensor);
  command->add_option("--max-input-bytes", options->max_bytes, "the largest file that is read")
      ->type_name("BYTES")
      ->check(check_whole<std::int64_t>);
  command->callback([options, tensor, &action] {
    action = [options, tensor] {
      const std::string path = options->file == "-" ? "/dev/stdin" : options->file;
      const io::Gguf gguf = io::read_gguf(path, {.max_file_bytes = options->max_bytes});
      if (tensor->count() == 0) return write_text("-", listing(gguf));
      const Tensor t = chosen(gguf, options->tensor);
      if (!options->out.empty()) return io::write_npy(options->out, t);
      write_text("-", fmt::format("{} : {}\n", t.type().to_string(), summary(t)));
    };
  });
}

}  // namespace ricci::tool
