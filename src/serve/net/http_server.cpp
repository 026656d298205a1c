#include "serve/net/http_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <mutex>
#include <new>
#include <unordered_map>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ricci/support/error.h"

#include "io/json_value.h"
#include "serve/net/connection.h"
#include "serve/net/host_name.h"

namespace ricci::serve {
namespace {

constexpr int TickMilliseconds = 200;
constexpr ConnectionId Listening = 0, Woken = 1, FirstConnection = 2;
constexpr std::size_t ReadAhead = 65536;
constexpr double LingerSeconds = 2;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

std::string error_body(std::string_view message) {
  return fmt::format("{{\"error\": {{\"message\": {}}}}}\n", io::json_string(message));
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpServerOptions given, HttpHandlers called)
      : options(std::move(given)),
        handlers(std::move(called)),
        listener(listening_socket(options.host, options.port)),
        poll(::epoll_create1(EPOLL_CLOEXEC)),
        wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (poll.get() < 0 || wake.get() < 0) system_fault("no event loop can be made");
    watch(listener.get(), EPOLLIN, Listening, EPOLL_CTL_ADD);
    watch(wake.get(), EPOLLIN, Woken, EPOLL_CTL_ADD);
  }

  void watch(int fd, std::uint32_t events, ConnectionId id, int how) const {
    epoll_event e{};
    e.events = events;
    e.data.u64 = id;
    if (::epoll_ctl(poll.get(), how, fd, &e) != 0) system_fault("the event loop does not watch");
  }

  void accept_all() {
    for (;;) {
      Descriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (client.get() < 0) {
        // Without descriptors for more, none is taken until the next tick.
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) pause(true);
        return;
      }
      ++counts.accepted;
      const ConnectionId id = next_id++;
      Connection& c = connections.try_emplace(id, std::move(client), options.limits).first->second;
      counts.open = connections.size();
      counts.open_most = std::max(counts.open_most, counts.open);
      c.watched = EPOLLIN | EPOLLRDHUP;
      watch(c.socket.get(), c.watched, id, EPOLL_CTL_ADD);
      if (connections.size() > options.connections) {
        ++counts.turned_away;
        answer(c, 503, "application/json", error_body("there are too many connections"),
               {{"Retry-After", "1"}}, false);
        advance(id);
      }
    }
  }

  void pause(bool on) {
    if (paused == on || listener.get() < 0) return;
    paused = on;
    watch(listener.get(), on ? 0U : static_cast<std::uint32_t>(EPOLLIN), Listening, EPOLL_CTL_MOD);
  }

  void close(ConnectionId id) {
    const auto it = connections.find(id);
    if (it == connections.end()) return;
    const bool told =
        it->second.at == Connection::At::Working || it->second.at == Connection::At::Streaming;
    held_bytes -= it->second.counted;
    connections.erase(it);
    counts.open = connections.size();
    if (!told) return;
    ++counts.gone;
    if (handlers.gone) handlers.gone(id);
  }

  void answer(Connection& c, int status, std::string_view type, std::string_view body,
              const Fields& fields, bool keep_alive) {
    c.keep_alive = keep_alive && !draining;
    std::string head = fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                   reason_of(status), type, body.size());
    for (const auto& [name, value] : fields) head += fmt::format("{}: {}\r\n", name, value);
    head += c.keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
    c.write(head);
    if (!c.head_only) c.write(body);
    finish_answer(c);
  }

  // The next request of the connection, or its end.
  void finish_answer(Connection& c) {
    c.last_sent = c.since = Clock::now();
    c.reader = HttpReader(options.limits);
    c.head_only = false;
    c.at = c.keep_alive ? Connection::At::Reading : Connection::At::Closing;
  }

  // Reads, answers and sends as far as that goes.
  void advance(ConnectionId id) {
    for (;;) {
      const auto it = connections.find(id);
      if (it == connections.end()) return;
      Connection& c = it->second;
      if (!c.send()) return close(id);
      if (c.waiting() > options.output_bytes) return close(id);
      if (c.at != Connection::At::Reading || c.waiting() > 0) break;
      const bool was_idle = !c.reader.began();
      const HttpReader::State state = c.reader.read(c.in);
      if (was_idle && c.reader.began()) c.since = Clock::now();
      if (state == HttpReader::State::NeedsMore) {
        if (!c.reader.take_expectation()) break;
        c.write("HTTP/1.1 100 Continue\r\n\r\n");
        continue;
      }
      take_request(id, c, state);
    }
    settle(id);
  }

  void take_request(ConnectionId id, Connection& c, HttpReader::State state) {
    if (state == HttpReader::State::Fault) {
      ++counts.faults;
      const HttpFault fault = c.reader.fault();
      answer(c, fault.status, "application/json", error_body(fault.message), {}, false);
      return;
    }
    ++counts.requests;
    c.at = Connection::At::Working;
    c.keep_alive = c.reader.request().keep_alive && !draining;
    c.chunked = !c.reader.request().old_version;
    HttpRequest request = std::move(c.reader.request());
    c.head_only = request.method == "HEAD";
    const std::string* host = request.find("host");
    if (host != nullptr && is_loopback(options.host) && !is_own_host(*host, options.names)) {
      ++counts.faults;
      answer(c, 421, "application/json",
             error_body("this server has another name than the request says"), {}, false);
      return;
    }
    try {
      handlers.request(id, std::move(request));
    } catch (const std::bad_alloc&) {
      refuse(id, 503, "there is no memory for the request");
    } catch (const std::exception& e) {
      refuse(id, 500, e.what());
    }
  }

  // What a handler could not answer, unless it has.
  void refuse(ConnectionId id, int status, std::string_view message) {
    const auto it = connections.find(id);
    if (it == connections.end() || it->second.at != Connection::At::Working) return;
    answer(it->second, status, "application/json", error_body(message), {}, it->second.keep_alive);
    if (handlers.gone) handlers.gone(id);  // whatever it keeps of it
  }

  // What epoll is to tell of a connection from now on, and whether it stays.
  void settle(ConnectionId id) {
    const auto it = connections.find(id);
    if (it == connections.end()) return;
    Connection& c = it->second;
    held_bytes += c.bytes() - c.counted;
    c.counted = c.bytes();
    if (c.at == Connection::At::Reading && c.reader.began() && held_bytes > options.all_bytes) {
      ++counts.turned_away;
      answer(c, 503, "application/json", error_body("the server has no room for the request"),
             {{"Retry-After", "1"}}, false);
      if (!c.send()) return close(id);
    }
    if (c.waiting() == 0 && c.at == Connection::At::Closing && !c.shut) c.shut_down();
    if (c.waiting() == 0 && draining && c.at == Connection::At::Reading) return close(id);
    std::uint32_t wanted = EPOLLRDHUP;
    const bool reads = c.at == Connection::At::Reading && c.waiting() == 0;
    if (reads || c.at == Connection::At::Closing) wanted |= EPOLLIN;
    if (c.waiting() > 0) wanted |= EPOLLOUT;
    if (wanted == c.watched) return;
    c.watched = wanted;
    watch(c.socket.get(), wanted, id, EPOLL_CTL_MOD);
  }

  void handle(ConnectionId id, std::uint32_t events) {
    const auto it = connections.find(id);
    if (it == connections.end()) return;
    Connection& c = it->second;
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) return close(id);
    if (c.at == Connection::At::Closing) {
      // What it still sends is dropped, so that it can read why.
      const bool there = c.receive(ReadAhead);
      c.in.clear();
      if (!there) return close(id);
    } else if (c.at == Connection::At::Reading) {
      const bool there = c.receive(ReadAhead);
      advance(id);
      if (there) return;
      const auto again = connections.find(id);
      if (again != connections.end() && again->second.at == Connection::At::Reading) close(id);
      return;
    } else if ((events & EPOLLRDHUP) != 0) {
      return close(id);
    }
    advance(id);
  }

  void look_at_clocks() {
    std::vector<std::pair<ConnectionId, bool>> late;  // and whether it is told
    for (auto& [id, c] : connections) {
      const bool began = c.reader.began() || !c.in.empty();
      if (c.waiting() > 0 || c.at == Connection::At::Closing) {
        const double most = c.shut ? LingerSeconds : options.write_seconds;
        if (seconds_since(c.last_sent) > most) late.emplace_back(id, false);
      } else if (c.at == Connection::At::Reading) {
        const double most = began ? options.request_seconds : options.idle_seconds;
        if (seconds_since(c.since) > most) late.emplace_back(id, began);
      }
    }
    for (const auto& [id, told] : late) {
      if (!connections.at(id).shut) ++counts.timeouts;
      if (!told) {
        close(id);
        continue;
      }
      answer(connections.at(id), 408, "application/json",
             error_body("the request did not come to its end in time"), {}, false);
      advance(id);
    }
  }

  void drain() {
    accept_all();  // those who have come already
    std::vector<ConnectionId> all;
    for (const auto& [id, c] : connections) all.push_back(id);
    for (const ConnectionId id : all) handle(id, EPOLLIN);
    draining = true;
    listener.close();
    if (handlers.draining) handlers.draining();
    for (const ConnectionId id : all) settle(id);
  }

  void run_posted() {
    std::uint64_t n = 0;
    (void)!::read(wake.get(), &n, sizeof n);
    std::vector<std::function<void()>> now;
    {
      const std::lock_guard lock(posted_mutex);
      now.swap(posted);
    }
    for (const auto& what : now) what();
  }

  HttpServerOptions options;
  HttpHandlers handlers;
  Descriptor listener, poll, wake;
  std::unordered_map<ConnectionId, Connection> connections;
  ConnectionId next_id = FirstConnection;
  std::size_t held_bytes = 0;  // of all connections
  HttpCounts counts;
  bool draining = false, paused = false;
  std::mutex posted_mutex;
  std::vector<std::function<void()>> posted;
};

HttpServer::HttpServer(HttpServerOptions options, HttpHandlers handlers)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handlers))) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const noexcept { return port_of(impl_->listener); }
const HttpCounts& HttpServer::counts() const noexcept { return impl_->counts; }

void HttpServer::run(const StopToken& stop) {
  Clock::time_point last_tick = Clock::now();
  while (!impl_->draining || !impl_->connections.empty()) {
    std::array<epoll_event, 256> events;
    const int n = ::epoll_wait(impl_->poll.get(), events.data(), static_cast<int>(events.size()),
                               TickMilliseconds);
    if (n < 0 && errno != EINTR) system_fault("the event loop fails");
    for (int i = 0; i < n; ++i) {
      const epoll_event& e = events[static_cast<std::size_t>(i)];
      if (e.data.u64 == Listening) {
        if (!impl_->draining) impl_->accept_all();
      } else if (e.data.u64 == Woken) {
        impl_->run_posted();
      } else {
        impl_->handle(e.data.u64, e.events);
      }
    }
    if (stop.stop_requested() && !impl_->draining) impl_->drain();
    if (seconds_since(last_tick) * 1000 < TickMilliseconds) continue;
    last_tick = Clock::now();
    impl_->pause(false);
    impl_->look_at_clocks();
    if (impl_->handlers.tick) impl_->handlers.tick();
  }
  impl_->run_posted();
}

void HttpServer::post(std::function<void()> what) {
  {
    const std::lock_guard lock(impl_->posted_mutex);
    impl_->posted.push_back(std::move(what));
  }
  const std::uint64_t one = 1;
  (void)!::write(impl_->wake.get(), &one, sizeof one);
}

void HttpServer::reply(ConnectionId id, int status, std::string_view type, std::string_view body,
                       const Fields& fields) {
  const auto it = impl_->connections.find(id);
  if (it == impl_->connections.end() || it->second.at != Connection::At::Working) return;
  impl_->answer(it->second, status, type, body, fields, it->second.keep_alive);
  post([this, id] { impl_->advance(id); });
}

void HttpServer::begin_stream(ConnectionId id, std::string_view type) {
  const auto it = impl_->connections.find(id);
  if (it == impl_->connections.end() || it->second.at != Connection::At::Working) return;
  Connection& c = it->second;
  c.keep_alive = c.keep_alive && c.chunked && !impl_->draining;
  c.at = Connection::At::Streaming;
  c.last_sent = Clock::now();
  c.write(fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-store\r\n{}{}\r\n",
                      type, c.chunked ? "Transfer-Encoding: chunked\r\n" : "",
                      c.keep_alive ? "" : "Connection: close\r\n"));
  impl_->advance(id);
}

void HttpServer::stream(ConnectionId id, std::string_view piece) {
  const auto it = impl_->connections.find(id);
  if (it == impl_->connections.end() || it->second.at != Connection::At::Streaming) return;
  if (piece.empty()) return;  // an empty chunk would be the end
  if (it->second.waiting() == 0) it->second.last_sent = Clock::now();
  if (it->second.chunked) {
    it->second.write(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
  } else {
    it->second.write(piece);
  }
  impl_->advance(id);
}

void HttpServer::end_stream(ConnectionId id) {
  const auto it = impl_->connections.find(id);
  if (it == impl_->connections.end() || it->second.at != Connection::At::Streaming) return;
  if (it->second.chunked) it->second.write("0\r\n\r\n");
  impl_->finish_answer(it->second);
  impl_->advance(id);
}

}  // namespace ricci::serve
