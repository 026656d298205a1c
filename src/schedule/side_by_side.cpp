#include "schedule/side_by_side.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "schedule/step_buffers.h"

namespace ricci::schedule {
namespace {

// A kernel that keeps the device busy gains nothing, and what it writes would need memory together
// with what the others write; when it writes only into arrays the caller brings (an update in
// place) that costs nothing.
bool gains_company(const Program& program, const Launch& launch, const Target& target) {
  if (target.gains_company(program.kernels[launch.kernel])) return true;
  bool writes_temporaries = false;
  for_arguments(program, launch, [&](BufferId b, bool written) {
    const Buffer& buffer = program.buffers[static_cast<std::size_t>(b)];
    if (written && buffer.role == Buffer::Role::Temporary) writes_temporaries = true;
  });
  return !writes_temporaries;
}

// `54× mul+add`, or `concat | 2× reduce`.
std::string label_of(const std::vector<Launch>& launches) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const Launch& l : launches) {
    const auto known = std::ranges::find(counts, l.from.label, [](auto& c) { return c.first; });
    if (known == counts.end()) {
      counts.emplace_back(l.from.label, 1);
    } else {
      ++known->second;
    }
  }
  constexpr std::size_t Shown = 3;
  std::vector<std::string> parts;
  std::size_t left = launches.size();
  for (const auto& [label, n] : counts) {
    if (parts.size() == Shown) break;
    parts.push_back(n == 1 ? label : fmt::format("{}× {}", n, label));
    left -= n;
  }
  if (left > 0) parts.push_back(fmt::format("{} more", left));
  return join(parts, " | ");
}

}  // namespace

Step kernel_step(std::vector<Launch> launches) {
  Step step;
  static_cast<Origin&>(step) = launches.front().from;
  if (launches.size() > 1) {
    step.label = label_of(launches);
    for (std::size_t i = 1; i < launches.size(); ++i) {
      const Origin& more = launches[i].from;
      step.nodes.insert(step.nodes.end(), more.nodes.begin(), more.nodes.end());
      if (step.apart_because.empty()) step.apart_because = more.apart_because;
      if (!step.where.known()) step.where = more.where;
    }
  }
  step.what = KernelStep{std::move(launches)};
  return step;
}

namespace {

// Steps in the order in which they came, but kernels together where that can be.
class Line {
 public:
  Line(const Program& program, std::vector<BufferId> place, const Target& target)
      : program_(program),
        target_(target),
        place_(std::move(place)),
        written_(place_.size()),
        read_(place_.size()) {}

  void add_launch(Launch launch) {
    const bool joins = gains_company(program_, launch, target_);
    std::size_t at = first_;
    for_arguments(program_, launch, [&](BufferId b, bool written) {
      at = std::max(at, (written ? read_ : written_)[place(b)]);
    });
    while (at < groups_.size() && !(joins && groups_[at].open)) ++at;
    if (at == groups_.size()) groups_.push_back({joins, {}, {}});
    for_arguments(program_, launch, [&](BufferId b, bool written) {
      std::size_t& until = (written ? written_ : read_)[place(b)];
      until = std::max(until, at + 1);
    });
    groups_[at].launches.push_back(std::move(launch));
  }

  // Kernels stay on their side of calls: what is alive meanwhile would change.
  void add_other(Step step) {
    groups_.push_back({false, {}, std::move(step)});
    first_ = groups_.size();
  }

  std::vector<Step> steps() && {
    std::vector<Step> out;
    for (Group& g : groups_) {
      out.push_back(g.launches.empty() ? std::move(g.other) : kernel_step(std::move(g.launches)));
    }
    return out;
  }

 private:
  struct Group {
    bool open = false;
    std::vector<Launch> launches;
    Step other;
  };

  [[nodiscard]] std::size_t place(BufferId b) const {
    return static_cast<std::size_t>(place_[static_cast<std::size_t>(b)]);
  }

  const Program& program_;
  const Target& target_;
  std::vector<BufferId> place_;  ///< per buffer: the one whose memory it is
  std::vector<Group> groups_;
  std::size_t first_ = 0;  ///< group behind the last call
  // Per place, the first group that may read what was written there, and write what was read.
  // Writers need not wait for each other: pieces of one array are disjoint.
  std::vector<std::size_t> written_;
  std::vector<std::size_t> read_;
};

}  // namespace

void put_side_by_side(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced,
                      const Target& target) {
  std::vector<BufferId> place(program.buffers.size());
  for (std::size_t b = 0; b < place.size(); ++b) place[b] = static_cast<BufferId>(b);
  for (const auto& [output, input] : replaced) place[static_cast<std::size_t>(output)] = input;
  Line line(program, std::move(place), target);
  for (Step& step : program.steps) {
    if (auto* k = std::get_if<KernelStep>(&step.what)) {
      for (Launch& launch : k->launches) line.add_launch(std::move(launch));
    } else {
      line.add_other(std::move(step));
    }
  }
  program.steps = std::move(line).steps();
}

}  // namespace ricci::schedule
