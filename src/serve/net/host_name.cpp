#include "serve/net/host_name.h"

#include <algorithm>

#include <arpa/inet.h>

#include "serve/net/http_request.h"

namespace ricci::serve {
namespace {

// `name:80` and `[::1]:80` without the port.
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
  return host.substr(0, host.find(':'));
}

bool is_address(const std::string& text) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return true;
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  return bracketed && inet_pton(AF_INET6, text.substr(1, text.size() - 2).c_str(), &v6) == 1;
}

}  // namespace

bool is_own_host(std::string_view host, std::span<const std::string> names) {
  std::string name = small_letters(without_port(host));
  if (name.ends_with('.')) name.pop_back();
  if (name.empty() || name == "localhost" || name.ends_with(".localhost") || is_address(name))
    return true;
  return std::ranges::any_of(names, [&](const std::string& n) { return small_letters(n) == name; });
}

bool is_loopback(std::string_view address) {
  const std::string text(address);
  in_addr v4{};
  in6_addr v6{};
  if (text == "localhost") return true;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace ricci::serve
