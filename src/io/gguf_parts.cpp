// A model in several files: each is a GGUF file of its own with some of the tensors, says which
// part it is of how many, and is named after that: model-00002-of-00003.gguf.
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/support/text.h"

#include "io/fault.h"

namespace ricci::io {
namespace {

constexpr std::string_view PartKey = "split.no";
constexpr std::string_view CountKey = "split.count";
constexpr std::string_view TensorsKey = "split.tensors.count";

[[noreturn]] void part_fault(std::string message, std::string help) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "gguf_part",
                             .message = std::move(message),
                             .where = {},
                             .notes = {},
                             .help = std::move(help)});
}

// A key that says a number; nothing when it is not there.
std::optional<std::int64_t> whole_number(const Gguf& gguf, std::string_view key) {
  const GgufValue* value = gguf.find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = std::visit(
      []<class T>(const T& v) -> std::optional<std::int64_t> {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (std::in_range<std::int64_t>(v)) return static_cast<std::int64_t>(v);
        }
        return std::nullopt;
      },
      *value);
  if (number && *number >= 0) return number;
  part_fault(fmt::format("{} is {} {}", key, kind_of(*value), to_text(*value, 40)),
             "it is a whole number and not negative");
}

std::string ending(std::int64_t part, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", part + 1, count);
}

struct Part {
  Gguf gguf;
  std::int64_t bytes = 0;
};

Part read_part(const std::string& path, std::int64_t part, std::int64_t count,
               const GgufOptions& options) {
  const MappedFile file(path, options.max_file_bytes);
  try {
    Part out{parse_gguf(file.bytes(), options), static_cast<std::int64_t>(file.bytes().size())};
    out.gguf.owner = file.owner();
    const auto own = whole_number(out.gguf, PartKey);
    const auto of = whole_number(out.gguf, CountKey);
    if (own == part && of == count) return out;
    part_fault(fmt::format("this is not part {} of {}, but {}", part + 1, count,
                           own && of ? fmt::format("part {} of {}", *own + 1, *of)
                                     : std::string("a file that is no part of another")),
               "put the parts of one model, with the names they had, into one folder");
  } catch (const UserError& e) {
    throw in_file(e, path);
  }
}

// Puts parts together, in their order.
class Joined {
 public:
  void add(Part part, const std::string& path) {
    for (const StoredTensor& t : part.gguf.tensors) {
      if (names_.insert(t.name).second) continue;
      try {
        file_fault(
            "tensor_duplicate",
            fmt::format("tensor {} is in a part before this one too", quote(shortened(t.name))),
            t.offset);
      } catch (const UserError& e) {
        throw in_file(e, path);
      }
    }
    if (owners_->empty()) {
      whole_.version = part.gguf.version;
      whole_.alignment = part.gguf.alignment;
      expected_ = whole_number(part.gguf, TensorsKey);
    }
    for (auto& [key, value] : part.gguf.metadata) {
      const bool is_known =
          key == PartKey || key == CountKey || key == TensorsKey || !keys_.insert(key).second;
      if (!is_known) whole_.metadata.emplace_back(std::move(key), std::move(value));
    }
    for (StoredTensor& t : part.gguf.tensors) whole_.tensors.push_back(std::move(t));
    owners_->push_back(std::move(part.gguf.owner));
  }

  Gguf finish() && {
    if (expected_ && std::cmp_not_equal(*expected_, whole_.tensors.size())) {
      part_fault(fmt::format("the parts have {} tensors together, but {} says {}",
                             whole_.tensors.size(), TensorsKey, *expected_),
                 "the parts are not all of one model, or some were written again");
    }
    whole_.owner = owners_;
    return std::move(whole_);
  }
  [[nodiscard]] std::size_t tensors() const { return whole_.tensors.size(); }

 private:
  Gguf whole_;
  std::shared_ptr<std::vector<std::shared_ptr<const void>>> owners_ =
      std::make_shared<std::vector<std::shared_ptr<const void>>>();
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> keys_;
  std::optional<std::int64_t> expected_;
};

Gguf joined(const std::string& path, std::int64_t own, std::int64_t count,
            const GgufOptions& options) {
  const std::string suffix = ending(own, count);
  if (own >= count || !path.ends_with(suffix)) {
    part_fault(fmt::format("this is part {} of {}, but its name does not say so", own + 1, count),
               fmt::format("the names of parts end in {}; GgufOptions::join_parts = false reads "
                           "one alone",
                           suffix));
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  Joined whole;
  GgufOptions left = options;
  for (std::int64_t part = 0; part < count; ++part) {
    const std::string at = stem + ending(part, count);
    left.max_tensors = options.max_tensors - static_cast<std::int64_t>(whole.tensors());
    Part next = read_part(at, part, count, left);
    left.max_file_bytes -= next.bytes;
    whole.add(std::move(next), at);
  }
  return std::move(whole).finish();
}

}  // namespace

Gguf read_gguf(const MappedFile& file, const std::string& path, const GgufOptions& options) {
  try {
    Gguf gguf = parse_gguf(file.bytes(), options);
    gguf.owner = file.owner();
    if (!options.join_parts) return gguf;
    const auto count = whole_number(gguf, CountKey);
    if (!count || *count <= 1) return gguf;
    return joined(path, whole_number(gguf, PartKey).value_or(0), *count, options);
  } catch (const UserError& e) {
    throw in_file(e, path);
  }
}

Gguf read_gguf(const std::string& path, const GgufOptions& options) {
  return read_gguf(MappedFile(path, options.max_file_bytes), path, options);
}

}  // namespace ricci::io
