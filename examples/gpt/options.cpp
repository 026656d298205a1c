#include "options.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string_view>

namespace gpt {
namespace {

constexpr const char* Usage =
    "usage: example_gpt [options]\n"
    "  --seconds S   train for S seconds (default 60)\n"
    "  --steps N     train for N steps instead: with a seed, the same run every time\n"
    "  --seed N      for first values, batches and samples (default 1)\n"
    "  --threads N   use N threads (default: one per core)\n"
    "  --text FILE   learn from FILE (default examples/gpt/corpus.txt)\n"
    "  --prompt P    what the samples start with (default \"The \")\n"
    "  --trace FILE  write where the time of a few steps goes, for ui.perfetto.dev\n";

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n%s", why.c_str(), Usage);
  std::exit(2);
}

void set(Options& options, std::string_view name, const std::string& value) {
  if (name == "--seconds") {
    options.seconds = std::stod(value);
  } else if (name == "--steps") {
    options.steps = std::stoll(value);
  } else if (name == "--seed") {
    options.seed = std::stoull(value);
  } else if (name == "--threads") {
    options.threads = std::stoi(value);
  } else if (name == "--text") {
    options.text = value;
  } else if (name == "--prompt") {
    options.prompt = value;
  } else if (name == "--trace") {
    options.trace = value;
  } else {
    refuse("unknown option " + std::string(name));
  }
}

}  // namespace

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      std::fputs(Usage, stdout);
      std::exit(0);
    }
    if (i + 1 == argc) refuse(name + " needs a value");
    try {
      set(options, name, argv[i + 1]);
    } catch (const std::logic_error&) {  // std::stod and its like
      refuse(name + " does not take '" + argv[i + 1] + "'");
    }
  }
  if (options.seconds <= 0 || options.steps.value_or(1) < 1 || options.threads < 0) {
    refuse("--seconds and --steps must be positive, --threads not negative");
  }
  if (options.prompt.empty()) refuse("--prompt must not be empty");
  return options;
}

}  // namespace gpt
