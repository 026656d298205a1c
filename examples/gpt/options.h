// The command line of the example.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpt {

struct Options {
  double seconds = 60;                ///< of training
  std::optional<std::int64_t> steps;  ///< train for so many steps instead
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: one per core
  std::string text = "examples/gpt/corpus.txt";
  std::string prompt = "The ";
  std::string trace;  ///< where to write a trace of a few steps; empty: nowhere
};

/// Exits where the command line is wrong or asks for help.
[[nodiscard]] Options read_options(int argc, char** argv);

}  // namespace gpt
