// Where a row's values wait for later stages: in as little memory as possible, so that it stays in
// the nearest cache.
#include <algorithm>
#include <optional>

#include "ricci/compiler/loop/kernel.h"

namespace ricci::loop {
namespace {

// The stages in which a row of an argument holds what is still wanted.
struct Span {
  std::size_t first = 0;
  std::size_t last = 0;
};

// A row of memory: a buffer's, or that of an output before its own values are stored.
struct Room {
  std::int32_t argument = -1;
  const Access* place = nullptr;
  std::size_t free_from = 0;
  std::size_t free_until = 0;
};

class Sharing {
 public:
  explicit Sharing(Kernel& kernel) : k_(kernel), moved_to_(kernel.arguments.size(), nullptr) {}

  std::vector<std::size_t> run() {
    collect();
    std::vector<Room> rooms = outputs_;
    for (const Buffer& b : buffers_) {
      const auto room = std::ranges::find_if(rooms, [&](const Room& r) {
        return dtype_of(r.argument) == dtype_of(b.place.argument) && r.free_from <= b.span.first &&
               b.span.last <= r.free_until;
      });
      if (room == rooms.end()) {
        rooms.push_back({b.place.argument, &b.place, b.span.last, k_.stages.size()});
      } else {
        moved_to_[static_cast<std::size_t>(b.place.argument)] = room->place;
        room->free_from = b.span.last;
      }
    }
    redirect();
    return drop_moved();
  }

 private:
  struct Buffer {
    Access place;
    Span span;
  };

  DType dtype_of(std::int32_t argument) const {
    return k_.arguments[static_cast<std::size_t>(argument)].dtype;
  }
  bool is(const Access& a, ArgumentRole role) const {
    return k_.arguments[static_cast<std::size_t>(a.argument)].role == role;
  }

  // Row buffers in the order they are filled, and outputs whose row is stored once and not read
  // before.
  void collect() {
    std::vector<int> stores(k_.arguments.size(), 0);
    for (std::size_t s = 0; s < k_.stages.size(); ++s) {
      for (const Reg r : k_.stages[s].code) {
        const Instr& i = k_.code[static_cast<std::size_t>(r)];
        if (i.code == Code::Load) read(i.access, s);
      }
      for (const Store& st : k_.stages[s].stores) {
        ++stores[static_cast<std::size_t>(st.access.argument)];
        if (is(st.access, ArgumentRole::Local)) {
          buffers_.push_back({st.access, {s, s}});
        } else if (k_.stages[s].per_element && st.access.strides.back() == 1) {
          outputs_.push_back({st.access.argument, &st.access, 0, s});
        }
      }
    }
    std::erase_if(outputs_, [&](const Room& r) {
      const auto a = static_cast<std::size_t>(r.argument);
      return stores[a] != 1 || read_first_[a] < r.free_until;
    });
  }

  void read(const Access& a, std::size_t stage) {
    auto& first = read_first_[static_cast<std::size_t>(a.argument)];
    first = std::min(first, stage);
    for (Buffer& b : buffers_) {
      if (b.place.argument == a.argument) b.span.last = stage;
    }
  }

  void redirect() {
    // Places are copied before any is changed: those of outputs lie among what is changed.
    std::vector<std::optional<Access>> to(moved_to_.size());
    for (std::size_t a = 0; a < to.size(); ++a) {
      if (moved_to_[a] != nullptr) to[a] = *moved_to_[a];
    }
    for_each_access(k_, [&](Access& a) {
      if (a.argument < 0) return;
      const auto& place = to[static_cast<std::size_t>(a.argument)];
      if (place) a = *place;
    });
  }

  std::vector<std::size_t> drop_moved() {
    std::vector<std::size_t> left;
    std::vector<std::int32_t> number(k_.arguments.size(), -1);
    std::vector<Argument> arguments;
    for (std::size_t a = 0; a < k_.arguments.size(); ++a) {
      if (moved_to_[a] != nullptr) continue;
      number[a] = static_cast<std::int32_t>(left.size());
      left.push_back(a);
      arguments.push_back(k_.arguments[a]);
    }
    k_.arguments = std::move(arguments);
    for_each_access(k_, [&](Access& a) {
      if (a.argument >= 0) a.argument = number[static_cast<std::size_t>(a.argument)];
    });
    return left;
  }

  Kernel& k_;
  std::vector<const Access*> moved_to_;  ///< by argument; null where it stays
  std::vector<Buffer> buffers_;
  std::vector<Room> outputs_;
  std::vector<std::size_t> read_first_ =
      std::vector<std::size_t>(k_.arguments.size(), k_.stages.size());
};

}  // namespace

std::vector<std::size_t> share_row_buffers(Kernel& kernel) { return Sharing(kernel).run(); }

}  // namespace ricci::loop
