// Any bytes are requests or refused, the same in pieces as at once; a body is a completion or a
// call with tensors, or refused, and a tensor survives writing and reading.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "ricci/support/error.h"

#include "fuzz/largest_allocation.h"
#include "io/json_cursor.h"
#include "serve/net/http_request.h"
#include "serve/service/completion_request.h"
#include "serve/service/tensor_json.h"

namespace {

using namespace ricci;
using serve::HttpReader;

// What came of bytes up to the first fault, or their end.
struct Told {
  HttpReader::State state = HttpReader::State::NeedsMore;
  serve::HttpRequest request;
  bool expects = false;
  std::string fault;

  bool operator==(const Told& o) const {
    return state == o.state && request.method == o.request.method &&
           request.path == o.request.path && request.fields == o.request.fields &&
           request.body == o.request.body && request.keep_alive == o.request.keep_alive &&
           request.old_version == o.request.old_version && expects == o.expects && fault == o.fault;
  }
};

// Small, so that bytes reach them.
constexpr serve::HttpLimits Limits = {.head_bytes = 512, .fields = 8, .body_bytes = 1024};

std::vector<Told> read_in_pieces(std::string_view stream, std::size_t piece) {
  std::vector<Told> out;
  std::string held;
  HttpReader reader(Limits);
  for (;;) {
    const HttpReader::State state = reader.read(held);
    if (state == HttpReader::State::NeedsMore) {
      if (!stream.empty()) {
        held += stream.substr(0, piece);
        stream.remove_prefix(std::min(piece, stream.size()));
        continue;
      }
    }
    const bool expects = reader.take_expectation();
    const bool done = state == HttpReader::State::Done;
    // Of a request that did not come to its end nothing is told.
    out.push_back({state, done ? std::move(reader.request()) : serve::HttpRequest(),
                   done && expects,
                   std::to_string(reader.fault().status) + reader.fault().message});
    if (!done) return out;
    if (out.back().request.body.size() > Limits.body_bytes ||
        out.back().request.fields.size() > Limits.fields) {
      std::abort();
    }
    reader = HttpReader(Limits);
  }
}

// {"x": [[…]], …}: the first letter of a name says the type.
void read_tensors(const std::string& body) {
  static const std::array<Type, 8> types = {Type{DType::F32, {Dim::symbol("n"), 2}},
                                            Type{DType::I64, {Dim::symbol("n")}},
                                            Type{DType::Bool, {}},
                                            Type{DType::F16, {Dim::symbol("n"), Dim::symbol("m")}},
                                            Type{DType::I8, {3}},
                                            Type{DType::F64, {Dim::symbol("n"), 1, 2}},
                                            Type{DType::U8, {2, Dim::symbol("n")}},
                                            Type{DType::BF16, {}}};
  io::JsonCursor json(body);
  json.object([&](const std::string& name) {
    const Type& type = types[name.empty() ? 0 : static_cast<unsigned char>(name[0]) % types.size()];
    const Tensor tensor = serve::read_tensor(json, body, type);
    std::string written;
    serve::write_tensor(written, tensor);
    io::JsonCursor again(written);
    // Within an axis that is empty no row says how long it would be.
    if (tensor.numel() == 0) return;
    if (!serve::read_tensor(again, written, type).identical(tensor)) std::abort();
  });
  json.end();
}

template <class Read>
void refused_or_read(Read&& read) {
  try {
    read();
  } catch (const UserError& e) {
    if (std::string_view(e.what()).size() > 10'000) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ricci::testing::LargestAllocation largest(static_cast<std::int64_t>(512 * size + 65536));
  const std::string_view stream(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::vector<Told> told = read_in_pieces(stream, stream.size() + 1);
  if (!(read_in_pieces(stream, 1 + data[0] % 64U) == told)) std::abort();
  const serve::TextCodec codec{
      .encode = [](std::string_view text) { return std::vector<std::int32_t>(text.size(), 1); },
      .bytes = [](std::int32_t) { return std::string("a"); }};
  std::vector<std::string> bodies = {std::string(stream)};  // without a head too
  for (const Told& t : told) bodies.push_back(t.request.body);
  for (const std::string& body : bodies) {
    refused_or_read([&] { read_tensors(body); });
    refused_or_read([&] { (void)serve::read_completion(body, codec, {}); });
  }
  return 0;
}
