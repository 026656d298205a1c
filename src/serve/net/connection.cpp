#include "serve/net/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/socket.h>

namespace ricci::serve {

bool Connection::receive(std::size_t most) {
  std::array<char, 16384> piece;
  while (in.size() < most) {
    const std::size_t room = std::min(piece.size(), most - in.size());
    const ssize_t n = ::recv(socket.get(), piece.data(), room, 0);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    in.append(piece.data(), static_cast<std::size_t>(n));
    if (static_cast<std::size_t>(n) < room) return true;
  }
  return true;
}

void Connection::shut_down() {
  (void)::shutdown(socket.get(), SHUT_WR);
  shut = true;
  last_sent = Clock::now();
}

bool Connection::send() {
  while (sent < out.size()) {
    const ssize_t n = ::send(socket.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    sent += static_cast<std::size_t>(n);
    last_sent = Clock::now();
  }
  out.clear();
  sent = 0;
  if (out.capacity() > 65536) out.shrink_to_fit();
  return true;
}

}  // namespace ricci::serve
