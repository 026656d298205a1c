// ricci inspect: what is in a file of weights, and one tensor of it as an array.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/io/npy.h"
#include "ricci/io/safetensors.h"
#include "ricci/io/weights.h"
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

std::string tensor_table(const std::vector<io::StoredTensor>& tensors) {
  if (tensors.empty()) return {};
  std::vector<Row> rows = {{"tensor", "type", "shape", "bytes", "at"}};
  for (const io::StoredTensor& t : tensors) {
    rows.push_back({plain(t.name), std::string(t.type.name),
                    to_string(Dims(t.dims.begin(), t.dims.end())), std::to_string(t.bytes.size()),
                    t.bytes.empty() ? "-" : std::to_string(t.offset)});
  }
  return '\n' + table(rows);
}

std::string key_table(std::vector<Row> rows, Row heading) {
  if (rows.empty()) return {};
  rows.insert(rows.begin(), std::move(heading));
  return '\n' + table(rows);
}

std::string counts_of(std::size_t keys, const std::vector<io::StoredTensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const io::StoredTensor& t : tensors) bytes += t.bytes.size();
  return fmt::format("{}, {} of {} bytes\n", count_of(keys, "key"),
                     count_of(tensors.size(), "tensor"), bytes);
}

std::string listing(const io::Gguf& gguf) {
  std::vector<Row> keys;
  for (const auto& [key, value] : gguf.metadata) {
    keys.push_back({plain(key), io::kind_of(value), io::to_text(value, MostOfValue)});
  }
  return fmt::format("GGUF version {}, alignment {}, {}", gguf.version, gguf.alignment,
                     counts_of(keys.size(), gguf.tensors)) +
         key_table(keys, {"key", "kind", "value"}) + tensor_table(gguf.tensors);
}

std::string listing(const io::Safetensors& file) {
  std::vector<Row> keys;
  for (const auto& [key, value] : file.metadata) {
    keys.push_back({plain(key), quote(shortened(value, MostOfValue))});
  }
  return "safetensors, " + counts_of(keys.size(), file.tensors) +
         key_table(keys, {"key", "value"}) + tensor_table(file.tensors);
}

// Names and types alone: no array is unpacked.
std::string listing_of_npz(std::span<const std::byte> bytes) {
  std::vector<Row> rows;
  (void)io::parse_npz(bytes, {.wanted = [&](const std::string& name, const Type& type) {
                        rows.push_back({plain(name), type.to_string()});
                        return false;
                      }});
  return fmt::format("NPZ, {}\n", count_of(rows.size(), "array")) +
         key_table(rows, {"array", "type"});
}

[[noreturn]] void no_tensor(const std::string& name, const std::vector<std::string>& names) {
  const auto close = nearest(name, names);
  throw UserError(ErrorCode::Name, fmt::format("there is no tensor {}", quote(shortened(name))),
                  close ? fmt::format("did you mean {}?", quote(*close))
                        : "'ricci inspect FILE' lists the tensors of a file");
}

template <class File>
Tensor chosen(const File& file, const std::string& name) {
  if (const io::StoredTensor* found = file.find_tensor(name)) return io::load(*found, file.owner);
  std::vector<std::string> names;
  for (const io::StoredTensor& t : file.tensors) names.push_back(t.name);
  no_tensor(name, names);
}

Tensor chosen_of_npz(std::span<const std::byte> bytes, const std::string& name) {
  std::vector<std::string> names;
  const io::NamedTensors found =
      io::parse_npz(bytes, {.wanted = [&](const std::string& n, const Type&) {
                      names.push_back(n);
                      return n == name;
                    }});
  if (!found.empty()) return found.front().second;
  no_tensor(name, names);
}

// What a file of any format has: a list of all, or one tensor.
class Inspected {
  // Before those that use it, which take its type from it.
  template <class F, class G>
  auto with_format(F&& stored, G&& npz) const {
    try {
      switch (io::weight_format_of(file_.bytes())) {
        case io::WeightFormat::Gguf: return stored(io::read_gguf(file_, path_));
        case io::WeightFormat::Safetensors: {
          io::Safetensors parsed = io::parse_safetensors(file_.bytes());
          parsed.owner = file_.owner();
          return stored(parsed);
        }
        case io::WeightFormat::Npz: break;
      }
      return npz();
    } catch (const UserError& e) {
      std::vector<Diagnostic> all = e.diagnostics();
      for (Diagnostic& d : all) {
        if (d.where.file.empty() && d.code == ErrorCode::File) d.where.file = path_;
      }
      throw UserError(std::move(all));
    }
  }

 public:
  Inspected(const std::string& path, std::int64_t max_bytes)
      : file_(path, max_bytes, io::FileBytes::Mapped,
              [](auto front) { (void)io::weight_format_of(front); }),
        path_(path) {}

  [[nodiscard]] std::string list() const {
    return with_format([&](const auto& parsed) { return listing(parsed); },
                       [&] { return listing_of_npz(file_.bytes()); });
  }
  [[nodiscard]] Tensor take(const std::string& name) const {
    return with_format([&](const auto& parsed) { return chosen(parsed, name); },
                       [&] { return chosen_of_npz(file_.bytes(), name); });
  }

 private:
  io::MappedFile file_;
  std::string path_;
};

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  struct Options {
    std::string file;
    std::string tensor;
    std::string out;
    std::int64_t max_bytes = io::MaxMappedBytes;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "inspect", "lists what is in a file of weights, or takes a tensor out of it");
  command->add_option("FILE", options->file, "a GGUF, safetensors or NPZ file")->required();
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
      const Inspected file(path, options->max_bytes);
      if (tensor->count() == 0) return write_text("-", file.list());
      const Tensor t = file.take(options->tensor);
      if (!options->out.empty()) return io::write_npy(options->out, t);
      write_text("-", fmt::format("{} : {}\n", t.type().to_string(), summary(t)));
    };
  });
}

}  // namespace ricci::tool
