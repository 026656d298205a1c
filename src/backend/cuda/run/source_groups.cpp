#include "backend/cuda/run/source_groups.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::cuda {
namespace {

// The kernel is what a source ends with.
std::string renamed(const KernelText& kernel, const std::string& name) {
  std::string text = kernel.text;
  const std::size_t begins = text.rfind("__global__");
  const std::size_t at =
      begins == std::string::npos ? begins : text.find(kernel.name + "(", begins);
  check_internal(at != std::string::npos, "a source has no kernel of its name");
  return text.replace(at, kernel.name.size(), name);
}

}  // namespace

SourceGroup join_sources(std::span<const KernelText* const> texts,
                         std::vector<std::size_t> members) {
  SourceGroup group;
  group.members = std::move(members);
  for (const std::size_t m : group.members) {
    const std::string name = fmt::format("{}_{}", texts[m]->name, group.names.size());
    group.text +=
        fmt::format("namespace n{} {{\n{}\n}}\n", group.names.size(), renamed(*texts[m], name));
    group.names.push_back(name);
  }
  return group;
}

// The longest first, each to where least is to do yet.
std::vector<SourceGroup> group_sources(std::span<const KernelText* const> texts,
                                       std::size_t most_groups) {
  constexpr std::size_t Together = 6;  // about as long to compile as a source is to begin
  const std::size_t wanted = (texts.size() + Together - 1) / Together;
  const std::size_t count = std::min(wanted, std::max<std::size_t>(most_groups, 1));
  std::vector<std::vector<std::size_t>> members(count);
  std::vector<std::size_t> sizes(count, 0);
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t t) { return texts[t]->text.size(); });
  for (const std::size_t t : order) {
    const auto least = std::ranges::min_element(sizes);
    members[static_cast<std::size_t>(least - sizes.begin())].push_back(t);
    *least += texts[t]->text.size();
  }
  std::vector<SourceGroup> groups;
  for (std::vector<std::size_t>& m : members) groups.push_back(join_sources(texts, std::move(m)));
  return groups;
}

}  // namespace ricci::cuda
