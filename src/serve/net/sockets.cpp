#include "serve/net/sockets.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

namespace ricci::serve {

Descriptor::~Descriptor() { close(); }

void Descriptor::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void system_fault(const std::string& what, const std::string& help) {
  throw UserError(ErrorCode::Refused, fmt::format("{}: {}", what, std::strerror(errno)), help);
}

Descriptor listening_socket(const std::string& host, std::uint16_t port) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const std::string address = host == "localhost" ? "127.0.0.1" : host;
  const bool is_v4 = inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) {
    throw UserError(ErrorCode::Name, fmt::format("{} is no address", quote(shortened(host))),
                    "give numbers: 127.0.0.1, 0.0.0.0, ::1");
  }
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  Descriptor out(
      ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.get() < 0) system_fault("no socket can be made");
  const int on = 1;
  (void)::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto* where = is_v4 ? static_cast<const void*>(&v4) : static_cast<const void*>(&v6);
  const socklen_t size = is_v4 ? sizeof v4 : sizeof v6;
  if (::bind(out.get(), static_cast<const sockaddr*>(where), size) != 0) {
    system_fault(fmt::format("{} port {} cannot be had", host, port), "give another --port");
  }
  if (::listen(out.get(), SOMAXCONN) != 0) system_fault("the socket does not listen");
  return out;
}

std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  void* raw = &address;
  if (::getsockname(socket.get(), static_cast<sockaddr*>(raw), &size) != 0) {
    system_fault("the socket has no address");
  }
  if (address.ss_family == AF_INET) return ntohs(static_cast<sockaddr_in*>(raw)->sin_port);
  return ntohs(static_cast<sockaddr_in6*>(raw)->sin6_port);
}

}  // namespace ricci::serve
