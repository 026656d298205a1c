#include "serve/net/http_request.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace ricci::serve {
namespace {

bool is_token(std::string_view text) {
  constexpr std::string_view Marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || Marks.find(c) != std::string_view::npos;
  });
}

template <int Base>
std::optional<std::size_t> number_in(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, Base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Where a mark of so many bytes was found, or where it may still begin: whether something is too
// long must not depend on how much of the mark has come.
std::size_t earliest(std::size_t found, std::string_view bytes, std::size_t mark) {
  return found != std::string_view::npos ? found : bytes.size() - std::min(bytes.size(), mark - 1);
}

}  // namespace

std::string small_letters(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const std::string* HttpRequest::find(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return &value;
  }
  return nullptr;
}

HttpReader::State HttpReader::fail(int status, std::string message) {
  fault_ = {status, std::move(message)};
  return State::Fault;
}

bool HttpReader::read_request_line(std::string_view line) {
  const auto first = line.find(' ');
  const auto second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) {
    (void)fail(400, "the request line is no METHOD TARGET VERSION");
    return false;
  }
  request_.method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, second - first - 1);
  // As proxies are asked, which a server must understand too.
  if (target.starts_with("http://")) {
    const auto path = target.find('/', std::string_view("http://").size());
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  const std::string_view version = line.substr(second + 1);
  const bool odd = std::ranges::any_of(target, [](char c) { return c <= ' ' || c == 0x7F; });
  const bool versioned = version.size() == 8 && version.starts_with("HTTP/");
  if (!versioned || !is_token(request_.method) || target.empty() || target.front() != '/' || odd) {
    (void)fail(400, "the request line is no METHOD /TARGET VERSION");
    return false;
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    (void)fail(505, "this server speaks HTTP/1.1");
    return false;
  }
  request_.old_version = version == "HTTP/1.0";
  request_.keep_alive = !request_.old_version;
  request_.path = target.substr(0, target.find('?'));
  return true;
}

bool HttpReader::read_field(std::string_view line) {
  const auto colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  const bool odd = std::ranges::any_of(line, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  });
  if (colon == std::string_view::npos || !is_token(name) || odd) {
    (void)fail(400, "a header is no NAME: VALUE");
    return false;
  }
  if (request_.fields.size() == limits_.fields) {
    (void)fail(431, fmt::format("there are more than {} headers", limits_.fields));
    return false;
  }
  request_.fields.emplace_back(small_letters(name), trimmed(line.substr(colon + 1)));
  return true;
}

// How long the body is, and whether the connection stays.
bool HttpReader::read_framing() {
  const auto count = [&](std::string_view name) {
    return std::ranges::count_if(request_.fields, [&](const auto& f) { return f.first == name; });
  };
  const std::string* length = request_.find("content-length");
  const std::string* coding = request_.find("transfer-encoding");
  if (count("content-length") + count("transfer-encoding") > 1 ||
      (coding != nullptr && request_.old_version)) {
    (void)fail(400, "the length of the body is given twice");
    return false;
  }
  if (count("host") > 1 || (count("host") == 0 && !request_.old_version)) {
    (void)fail(400, "a request has one Host");
    return false;
  }
  if (const std::string* connection = request_.find("connection")) {
    const std::string said = small_letters(*connection);
    if (said.find("close") != std::string::npos) request_.keep_alive = false;
    if (request_.old_version && said.find("keep-alive") != std::string::npos)
      request_.keep_alive = true;
  }
  if (coding != nullptr) {
    if (small_letters(*coding) != "chunked") {
      (void)fail(501, "of transfer encodings only chunked is known");
      return false;
    }
    at_ = At::ChunkSize;
  } else if (length != nullptr) {
    const auto bytes = number_in<10>(*length);
    if (!bytes) {
      (void)fail(400, "the Content-Length is no number");
      return false;
    }
    if (*bytes > limits_.body_bytes) {
      (void)fail(413, fmt::format("a body has at most {} bytes", limits_.body_bytes));
      return false;
    }
    left_ = *bytes;
    at_ = left_ > 0 ? At::Body : At::Done;
  } else {
    at_ = At::Done;
  }
  const std::string* expectation = request_.find("expect");
  if (expectation != nullptr && small_letters(*expectation) != "100-continue") {
    (void)fail(417, "of expectations only 100-continue is known");
    return false;
  }
  expects_ = expectation != nullptr && at_ != At::Done && !request_.old_version;
  return true;
}

bool HttpReader::read_head(std::string_view head) {
  bool first = true;
  while (!head.empty()) {
    const auto end = head.find('\n');
    std::string_view line = head.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty() && !(first ? read_request_line(line) : read_field(line))) return false;
    first = false;
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
  }
  return read_framing();
}

std::optional<std::string> HttpReader::take_line(std::string& bytes, std::size_t most) {
  const auto end = bytes.find("\r\n");
  if (earliest(end, bytes, 2) > most) {
    (void)fail(400, "a line of a chunked body is too long");
    return std::nullopt;
  }
  if (end == std::string::npos) return std::nullopt;
  std::string line = bytes.substr(0, end);
  bytes.erase(0, end + 2);
  return line;
}

bool HttpReader::read_chunk_size(std::string_view line) {
  const auto size = number_in<16>(trimmed(line.substr(0, line.find(';'))));
  if (!size) {
    (void)fail(400, "the size of a chunk is no hexadecimal number");
    return false;
  }
  if (*size > limits_.body_bytes - request_.body.size()) {
    (void)fail(413, fmt::format("a body has at most {} bytes", limits_.body_bytes));
    return false;
  }
  left_ = *size;
  at_ = left_ > 0 ? At::ChunkBytes : At::Trailer;
  return true;
}

HttpReader::State HttpReader::step(std::string& bytes, bool& moved) {
  constexpr std::size_t MostLine = 256;
  moved = true;
  switch (at_) {
    case At::Head: {
      // Empty lines may come before a request.
      const auto begin = bytes.find_first_not_of("\r\n");
      bytes.erase(0, std::min(begin, bytes.size()));
      began_ = began_ || !bytes.empty();
      const std::size_t from = searched_ < 3 ? 0 : searched_ - 3;
      const auto long_end = bytes.find("\r\n\r\n", from);
      const auto short_end = bytes.find("\n\n", from);
      const auto end = std::min(long_end, short_end);
      if (earliest(end, bytes, 4) > limits_.head_bytes) {
        return fail(431, fmt::format("a head has at most {} bytes", limits_.head_bytes));
      }
      searched_ = bytes.size();
      moved = end != std::string::npos;
      if (!moved) return State::NeedsMore;
      const std::string head = bytes.substr(0, end);
      bytes.erase(0, end + (end == long_end ? 4 : 2));
      return read_head(head) ? State::NeedsMore : State::Fault;
    }
    case At::Body:
    case At::ChunkBytes: {
      const std::size_t n = std::min(left_, bytes.size());
      request_.body.append(bytes, 0, n);
      bytes.erase(0, n);
      left_ -= n;
      moved = n > 0;
      if (left_ == 0) at_ = at_ == At::Body ? At::Done : At::ChunkEnd;
      return State::NeedsMore;
    }
    case At::ChunkEnd: {
      moved = bytes.size() >= 2;
      if (!moved) return State::NeedsMore;
      if (!bytes.starts_with("\r\n")) return fail(400, "a chunk is longer than its size says");
      bytes.erase(0, 2);
      at_ = At::ChunkSize;
      return State::NeedsMore;
    }
    case At::ChunkSize:
    case At::Trailer: {
      const auto line = take_line(bytes, at_ == At::Trailer ? limits_.head_bytes : MostLine);
      moved = line.has_value();
      if (!line) return fault_.message.empty() ? State::NeedsMore : State::Fault;
      if (at_ == At::ChunkSize) return read_chunk_size(*line) ? State::NeedsMore : State::Fault;
      trailers_ += line->size() + 2;
      if (trailers_ > limits_.head_bytes) return fail(431, "the trailers are too long");
      if (line->empty()) at_ = At::Done;
      return State::NeedsMore;
    }
    case At::Done: break;
  }
  return State::Done;
}

HttpReader::State HttpReader::read(std::string& bytes) {
  for (bool moved = true; moved;) {
    const State state = step(bytes, moved);
    if (state != State::NeedsMore) return state;
  }
  return at_ == At::Done ? State::Done : State::NeedsMore;
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "200 OK";
    case 400: return "400 Bad Request";
    case 404: return "404 Not Found";
    case 405: return "405 Method Not Allowed";
    case 408: return "408 Request Timeout";
    case 413: return "413 Content Too Large";
    case 415: return "415 Unsupported Media Type";
    case 417: return "417 Expectation Failed";
    case 421: return "421 Misdirected Request";
    case 422: return "422 Unprocessable Content";
    case 431: return "431 Request Header Fields Too Large";
    case 501: return "501 Not Implemented";
    case 503: return "503 Service Unavailable";
    case 504: return "504 Gateway Timeout";
    case 505: return "505 HTTP Version Not Supported";
    default: return "500 Internal Server Error";
  }
}

}  // namespace ricci::serve
