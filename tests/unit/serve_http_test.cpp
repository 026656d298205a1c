// Requests of HTTP out of bytes in pieces of any size; texts that are told piece by piece; tensors
// as JSON; and a server on a port of its own with slow, leaving and many clients.
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "ricci/support/error.h"

#include "serve/net/host_name.h"
#include "serve/net/http_request.h"
#include "serve/net/http_server.h"
#include "serve/net/sockets.h"
#include "serve/service/tensor_json.h"
#include "serve/service/text_output.h"

namespace ricci::serve::serve_http_test {
namespace {

constexpr HttpLimits Small{.head_bytes = 300, .fields = 6, .body_bytes = 40};

// The status of its fault, 0 when it wants more, or 200.
int status_of(const std::string& text, std::size_t piece, HttpRequest* out = nullptr) {
  HttpReader reader(Small);
  std::string bytes;
  HttpReader::State state = HttpReader::State::NeedsMore;
  for (std::size_t at = 0; at < text.size() && state == HttpReader::State::NeedsMore; at += piece) {
    bytes += text.substr(at, piece);
    state = reader.read(bytes);
  }
  if (out != nullptr) *out = reader.request();
  if (state == HttpReader::State::Fault) return reader.fault().status;
  return state == HttpReader::State::Done ? 200 : 0;
}

TEST(ServeHttp, ReadsRequestsInPiecesOfAnySize) {
  const std::string plain =
      "\r\nPOST /v1/x?y=z HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-Y:\t b \r\n\r\nhello";
  const std::string chunks = "POST /c HTTP/1.1\r\nhost:a\r\nTransfer-Encoding: Chunked\r\n\r\n"
                             "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
  for (std::size_t piece = 1; piece <= plain.size(); ++piece) {
    HttpRequest r;
    ASSERT_EQ(status_of(plain, piece, &r), 200) << piece;
    EXPECT_EQ(r.method, "POST");
    EXPECT_EQ(r.path, "/v1/x");
    EXPECT_EQ(r.body, "hello");
    EXPECT_EQ(*r.find("x-y"), "b");
    EXPECT_TRUE(r.keep_alive);
    ASSERT_EQ(status_of(chunks, piece, &r), 200) << piece;
    EXPECT_EQ(r.body, "abcde");
  }
}

TEST(ServeHttp, LeavesTheNextRequestAlone) {
  HttpReader reader(Small);
  std::string bytes = "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\n";
  EXPECT_EQ(reader.read(bytes), HttpReader::State::Done);
  EXPECT_EQ(reader.request().path, "/a");
  EXPECT_EQ(bytes, "GET /b HTTP/1.1\r\n");
}

TEST(ServeHttp, RefusesWhatCouldBeReadInTwoWays) {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  const std::vector<std::pair<int, std::string>> cases = {
      {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
      {505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"},
      {400, post + "Content-Length: +5\r\n\r\n"},
      {400, post + "Content-Length: 5, 5\r\n\r\n"},
      {400, post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"},
      {400, post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {501, post + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
      {400, post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n"},
      {400, post + "Transfer-Encoding: chunked\r\n\r\n0x3\r\n"},
      {400, post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n"},
      {413, post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"},
      {413, post + "Transfer-Encoding: chunked\r\n\r\n20\r\n" + std::string(32, 'x') + "\r\n9\r\n"},
      {413, post + "Content-Length: 41\r\n\r\n"},
      {400, post + "Content-Length: 99999999999999999999999\r\n\r\n"},
      {417, post + "Content-Length: 4\r\nExpect: more\r\n\r\n"},
      {431, "GET /" + std::string(400, 'a')},
      {431, "GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(400, 'a')},
      {431, "GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\nF: 1\r\n\r\n"},
  };
  for (const auto& [status, text] : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size()}) {
      EXPECT_EQ(status_of(text, piece), status) << text << " by " << piece;
    }
  }
}

// Of exactly the size that is allowed, and a byte more; whatever part of the mark at its end has
// come.
TEST(ServeHttp, LimitsDoNotDependOnPieces) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nA: ";
  const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t more : {0U, 1U}) {
    const std::string long_head =
        head + std::string(Small.head_bytes + more - head.size(), 'a') + "\r\n\r\n";
    const std::string long_line =
        chunked + "1;" + std::string(254 + more, 'a') + "\r\nx\r\n0\r\n\r\n";
    for (std::size_t piece = 1; piece <= long_line.size(); ++piece) {
      ASSERT_EQ(status_of(long_head, piece), more == 0 ? 200 : 431) << piece;
      ASSERT_EQ(status_of(long_line, piece), more == 0 ? 200 : 400) << piece;
    }
  }
}

TEST(ServeHttp, KnowsWhetherAConnectionStays) {
  HttpRequest r;
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", 9, &r), 200);
  EXPECT_FALSE(r.keep_alive);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n", 9, &r), 200);
  EXPECT_FALSE(r.keep_alive);
  EXPECT_EQ(status_of("GET http://a:1/b?c HTTP/1.1\r\nHost: a\r\n\r\n", 9, &r), 200);
  EXPECT_EQ(r.path, "/b");
}

TEST(ServeText, TellsWholeCharactersAndNoStop) {
  TextOutput plain({});
  EXPECT_EQ(plain.add("a\xC3"), "a");
  EXPECT_EQ(plain.add("\xA9\xF0\x9F"), "\xC3\xA9");
  EXPECT_EQ(plain.finish(), "\xF0\x9F");
  TextOutput stops({"END", "\n\n", ""});
  EXPECT_EQ(stops.add("one E"), "one ");
  EXPECT_EQ(stops.add("N"), "");
  EXPECT_EQ(stops.add("d\n"), "ENd");
  EXPECT_EQ(stops.add("xEND of\n\n"), "\nx");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.add("more"), "");
  EXPECT_EQ(stops.finish(), "");
}

std::string refusal(const std::string& text, const Type& type) {
  try {
    io::JsonCursor json(text);
    (void)read_tensor(json, text, type);
    json.end();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(ServeTensors, AreNestedArrays) {
  const auto again = [](const std::string& text, const Type& type) {
    io::JsonCursor json(text);
    std::string out;
    write_tensor(out, read_tensor(json, text, type));
    return out;
  };
  EXPECT_EQ(again("[[1, 2.5],[ -3e2,0.1]]", f32({2, 2})), "[[1, 2.5], [-300, 0.1]]");
  EXPECT_EQ(again(" 7 ", i64()), "7");
  EXPECT_EQ(again("[true, false]", Type{DType::Bool, {2}}), "[true, false]");
  EXPECT_EQ(again("[[], []]", f32({2, 0})), "[[], []]");
  EXPECT_EQ(again("[1, 2, 3]", f32({Dim::symbol("n")})), "[1, 2, 3]");
  EXPECT_EQ(again("9007199254740993", i64()), "9007199254740993");
  std::string out;
  write_tensor(out, Tensor::of<float>({2}, {1.0F / 0.0F, 0.0F}));
  EXPECT_EQ(out, "[null, 0]");
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(refusal("[[1, 2], [3]]", f32({2, 2})), "byte 12"));
  EXPECT_TRUE(has(refusal("[1, 2]", f32({2, 2})), "no array"));
  EXPECT_TRUE(has(refusal("[[1]]", f32({1})), "a number is expected"));
  EXPECT_TRUE(has(refusal("[1, 2, 3]", f32({2})), "has 3 elements here"));
  EXPECT_TRUE(has(refusal("[1.5]", i32({1})), "a number is expected"));
  EXPECT_TRUE(has(refusal("[\"1\"]", f32({1})), "a number is expected"));
  EXPECT_TRUE(has(refusal("[null]", f32({1})), "a number is expected"));
  // Numbers do not wrap, and do not become infinite.
  EXPECT_TRUE(has(refusal("[128]", Type{DType::I8, {1}}), "that i8 holds"));
  EXPECT_TRUE(has(refusal("[-1]", Type{DType::U8, {1}}), "that u8 holds"));
  EXPECT_TRUE(has(refusal("[1e39]", f32({1})), "that f32 holds"));
  EXPECT_TRUE(has(refusal("[65520]", Type{DType::F16, {1}}), "that f16 holds"));
  EXPECT_TRUE(has(refusal("[1", f32({1})), "too early"));
}

// A server whose thread ends with the test, and clients of it.
class ServeServer : public ::testing::Test {
 protected:
  void start(HttpServerOptions options) {
    options.names.emplace_back("X");
    server_ = std::make_unique<HttpServer>(
        options, HttpHandlers{.request =
                                  [this](ConnectionId c, const HttpRequest& r) {
                                    if (r.path == "/wait") return;
                                    if (r.path == "/memory") throw std::bad_alloc();
                                    if (r.path == "/fault") throw InternalError("of ours");
                                    server_->reply(c, 200, "text/plain", r.path + r.body);
                                  },
                              .gone = [this](ConnectionId) { ++gone_; },
                              .tick = {},
                              .draining = {}});
    port_ = server_->port();
    thread_ = std::thread([this] { server_->run(stop_.token()); });
  }
  void TearDown() override {
    stop_.request_stop();
    if (thread_.joinable()) thread_.join();
  }
  Descriptor client() const {
    Descriptor out(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const void* raw = &to;
    EXPECT_EQ(::connect(out.get(), static_cast<const sockaddr*>(raw), sizeof to), 0);
    return out;
  }
  static void send(const Descriptor& to, std::string_view text) {
    (void)!::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // All until the server closes.
  static std::string all_of(const Descriptor& from) {
    std::string out;
    char piece[4096];
    for (ssize_t n = 1; n > 0;) {
      n = ::recv(from.get(), piece, sizeof piece, 0);
      if (n > 0) out.append(piece, static_cast<std::size_t>(n));
    }
    return out;
  }

  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  StopSource stop_;
  std::thread thread_;
  std::atomic<int> gone_ = 0;
};

TEST_F(ServeServer, AnswersInOrderWhatComesAtOnce) {
  start({});
  const Descriptor c = client();
  send(c, "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
          "POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
  const std::string all = all_of(c);
  const auto a = all.find("\r\n\r\n/a");
  const auto b = all.find("\r\n\r\n/b");
  EXPECT_LT(a, b);
  EXPECT_LT(b, all.find("\r\n\r\n/chi"));
}

// What goes wrong with a request is the end of that request.
TEST_F(ServeServer, FaultsOfHandlersAreAnswers) {
  start({});
  const Descriptor c = client();
  send(c, "GET /memory HTTP/1.1\r\nHost: x\r\n\r\nGET /fault HTTP/1.1\r\nHost: x\r\n\r\n"
          "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = all_of(c);
  const auto memory = all.find("503 Service Unavailable");
  const auto fault = all.find("500 Internal Server Error");
  EXPECT_LT(memory, fault);
  EXPECT_LT(fault, all.find("\r\n\r\n/a"));
  EXPECT_NE(all.find("of ours"), std::string::npos);
  EXPECT_NE(all.find("\r\n\r\n/a"), std::string::npos) << all;
}

TEST_F(ServeServer, AnswersToHeadHaveNoBodies) {
  start({});
  const Descriptor c = client();
  send(c, "HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\nGET /d HTTP/1.1\r\nHost: x\r\nConnection: "
          "close\r\n\r\n");
  const std::string all = all_of(c);
  EXPECT_EQ(all.find("/abc"), std::string::npos) << all;
  EXPECT_NE(all.find("Content-Length: 4\r\n\r\nHTTP/1.1 200 OK"), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("\r\n\r\n/d")) << all;
}

// A page of a stranger whose name leads here is told that this is no server of its.
TEST_F(ServeServer, OtherNamesAreRefusedOnTheLoopback) {
  start({});
  const auto status = [&](const std::string& host) {
    const Descriptor c = client();
    send(c, "GET /a HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    return all_of(c).substr(9, 3);
  };
  for (const char* own : {"localhost", "LocalHost:8080", "a.localhost", "127.0.0.1:1",
                          "192.168.1.7", "[::1]:80", "[fe80::1]", "x:80", "X", "x.", ""}) {
    EXPECT_EQ(status(own), "200") << own;
  }
  for (const char* other : {"evil.example", "evil.example:8080", "localhost.evil.example",
                            "127.0.0.1.evil.example", "[::1", "[x]", "xx", "notlocalhost"}) {
    EXPECT_EQ(status(other), "421") << other;
  }
  EXPECT_TRUE(is_loopback("127.8.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("::"));
}

TEST_F(ServeServer, ClosesOnThoseWhoAreTooSlow) {
  start({.request_seconds = 0.4, .idle_seconds = 0.4});
  const Descriptor slow = client();
  const Descriptor idle = client();
  send(slow, "GET /a HT");
  EXPECT_NE(all_of(slow).find("408 Request Timeout"), std::string::npos);
  EXPECT_EQ(all_of(idle), "");
}

TEST_F(ServeServer, SaysWhatIsTooMuchAndReadsItToItsEnd) {
  start({.limits = {.body_bytes = 100}});
  const Descriptor c = client();
  send(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
  const std::string piece(50000, 'x');
  for (int i = 0; i < 20; ++i) send(c, piece);
  EXPECT_NE(all_of(c).find("413 Content Too Large"), std::string::npos);
}

TEST_F(ServeServer, TurnsAwayWhenThereAreTooMany) {
  start({.connections = 2});
  const Descriptor a = client();
  const Descriptor b = client();
  send(a, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  char one = 0;
  (void)!::recv(a.get(), &one, 1, 0);
  const Descriptor c = client();
  EXPECT_NE(all_of(c).find("Retry-After: 1"), std::string::npos);
}

TEST_F(ServeServer, NoticesWhoLeaves) {
  start({});
  {
    const Descriptor c = client();
    send(c, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    const Descriptor other = client();
    send(other, "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_NE(all_of(other).find("200 OK"), std::string::npos);
  }
  while (gone_ == 0) std::this_thread::yield();
  EXPECT_EQ(gone_, 1);
}

}  // namespace
}  // namespace ricci::serve::serve_http_test
