#include <algorithm>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "ricci/io/safetensors.h"
#include "ricci/support/limits.h"
#include "ricci/support/text.h"

#include "io/fault.h"
#include "io/json_cursor.h"
#include "io/safetensors_layout.h"
#include "io/tensor_directory.h"

namespace ricci::io {
namespace {

// The fields of one tensor.
struct Entry {
  std::optional<StoredType> type;
  std::optional<StaticDims> dims;
  std::vector<std::int64_t> offsets;  // where it begins and ends, behind the directory
};

class SafetensorsReader {
 public:
  SafetensorsReader(ByteSpan bytes, const SafetensorsOptions& options)
      : bytes_(bytes), options_(options) {}

  Safetensors read() {
    const ByteSpan header = take_header();
    data_ = SafetensorsFront + header.size();
    JsonCursor json(as_text(header), SafetensorsFront);
    json.object([&](const std::string& key) {
      check_length(key, json.offset());
      key == SafetensorsMetadata ? read_metadata(json) : read_tensor(json, key);
    });
    json.end();
    std::ranges::sort(out_.tensors, {}, [](const StoredTensor& t) {
      // Empty ones before what begins there.
      return std::tuple(t.offset, t.bytes.size(), std::string_view(t.name));
    });
    check_directory(out_.tensors);
    check_gaps();
    return std::move(out_);
  }

 private:
  ByteSpan take_header() {
    ByteCursor in(bytes_, "the safetensors file");
    const std::uint64_t length = in.u64();
    if (length > static_cast<std::uint64_t>(options_.max_header_bytes)) {
      file_fault("safetensors_header",
                 fmt::format("the directory is said to have {} bytes, more than {}", length,
                             options_.max_header_bytes),
                 0, "is this a safetensors file?");
    }
    const ByteSpan header = in.take(length);
    if (header.empty() || header.front() != std::byte{'{'}) {
      file_fault("safetensors_header", "the directory does not begin with '{'", SafetensorsFront,
                 "is this a safetensors file?");
    }
    return header;
  }

  void check_length(const std::string& name, std::size_t at) const {
    if (std::cmp_less_equal(name.size(), options_.max_name_bytes)) return;
    file_fault(
        "safetensors_name",
        fmt::format("a name has {} bytes, more than {}", name.size(), options_.max_name_bytes), at);
  }

  void read_metadata(JsonCursor& json) {
    json.object([&](const std::string& key) {
      check_length(key, json.offset());
      if (std::cmp_greater_equal(out_.metadata.size(), options_.max_keys)) {
        file_fault("safetensors_count", fmt::format("more than {} keys", options_.max_keys),
                   json.offset());
      }
      out_.metadata.emplace_back(key, json.string());
    });
  }

  void read_tensor(JsonCursor& json, const std::string& name) {
    const std::size_t at = json.offset();
    if (std::cmp_greater_equal(out_.tensors.size(), options_.max_tensors)) {
      file_fault("safetensors_count", fmt::format("more than {} tensors", options_.max_tensors),
                 at);
    }
    Entry e;
    json.object([&](const std::string& field) {
      if (field == "dtype") {
        e.type = read_type(json);
      } else if (field == "shape") {
        e.dims = read_dims(json);
      } else if (field == "data_offsets") {
        json.array([&] {
          if (e.offsets.size() == 2) json.fault("data_offsets are two numbers");
          e.offsets.push_back(json.integer());
        });
      } else {
        json.fault(fmt::format("a tensor has no {}", quote(shortened(field))));
      }
    });
    if (!e.type || !e.dims || e.offsets.size() != 2) {
      file_fault(
          "safetensors_tensor",
          fmt::format("tensor {} lacks dtype, shape or data_offsets", quote(shortened(name))), at);
    }
    add(name, e, at);
  }

  StoredType read_type(JsonCursor& json) {
    const std::size_t at = json.offset();
    const std::string name = json.string();
    const auto type = safetensors_type(name);
    if (type) return *type;
    file_fault("safetensors_type", fmt::format("there is no dtype {}", quote(shortened(name))), at);
  }

  StaticDims read_dims(JsonCursor& json) {
    StaticDims dims;
    json.array([&] {
      if (dims.size() == MostRank) {
        json.fault(fmt::format("a tensor has more than {} axes", MostRank));
      }
      dims.push_back(json.integer());
    });
    return dims;
  }

  void add(const std::string& name, const Entry& e, std::size_t at) {
    const std::int64_t begin = e.offsets[0];
    const std::int64_t end = e.offsets[1];
    const std::size_t room = bytes_.size() - data_;
    if (begin > end || std::cmp_greater(end, room)) {
      file_fault("safetensors_offset",
                 fmt::format("tensor {} is said to lie in [{}, {}) of {} bytes",
                             quote(shortened(name)), begin, end, room),
                 at, "was the file cut short?");
    }
    const auto wanted = safetensors_size(*e.type, *e.dims);
    if (!wanted || *wanted != end - begin) {
      file_fault("safetensors_size",
                 fmt::format("tensor {} has {} bytes, which do not match its sizes",
                             quote(shortened(name)), end - begin),
                 at);
    }
    const std::size_t offset = data_ + static_cast<std::size_t>(begin);
    out_.tensors.push_back({name, *e.type, *e.dims,
                            bytes_.subspan(offset, static_cast<std::size_t>(end - begin)), offset});
  }

  // Bytes that belong to nobody could carry anything.
  void check_gaps() const {
    std::size_t at = data_;
    for (const StoredTensor& t : out_.tensors) {
      if (t.offset != at) {
        file_fault("safetensors_gap",
                   fmt::format("{} begins at byte {}, where the tensor before it does not end",
                               quote(shortened(t.name)), t.offset),
                   at);
      }
      at += t.bytes.size();
    }
    if (at != bytes_.size()) {
      file_fault("safetensors_gap",
                 fmt::format("no tensor has the last {} bytes", bytes_.size() - at), at);
    }
  }

  ByteSpan bytes_;
  const SafetensorsOptions& options_;
  std::size_t data_ = 0;
  Safetensors out_;
};

}  // namespace

Safetensors parse_safetensors(std::span<const std::byte> bytes, const SafetensorsOptions& options) {
  return SafetensorsReader(bytes, options).read();
}

Safetensors read_safetensors(const std::string& path, const SafetensorsOptions& options) {
  const MappedFile file(path, options.max_file_bytes);
  try {
    Safetensors out = parse_safetensors(file.bytes(), options);
    out.owner = file.owner();
    return out;
  } catch (const UserError& e) {
    throw in_file(e, path);
  }
}

}  // namespace ricci::io
