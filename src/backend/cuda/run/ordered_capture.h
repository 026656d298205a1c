// A stream while it is captured: what it is asked for becomes a node of the graph that waits for
// what it must, not for all that was asked for before it.
#pragma once

#include <span>
#include <vector>

#include "backend/cuda/load/driver.h"
#include "backend/cuda/run/order.h"

namespace ricci::cuda {

class OrderedCapture {
 public:
  /// The stream is being captured.
  OrderedCapture(const Driver& driver, Stream stream) : driver_(driver), stream_(stream) {}

  /// `ask` asks the stream for something that uses these.
  template <class F>
  void add(std::span<const Use> uses, const F& ask) {
    wait_for(order_.add(uses));
    ask();
    note();
  }

 private:
  void wait_for(std::span<const std::size_t> earlier);
  void note();

  const Driver& driver_;
  Stream stream_;
  Order order_;
  std::vector<std::vector<GraphNode>> last_;  // of each that was asked for: its last nodes
};

}  // namespace ricci::cuda
