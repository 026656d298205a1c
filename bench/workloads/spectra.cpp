#include "workloads/spectra.h"

#include "ricci/build/spectrum.h"

namespace ricci::bench {
namespace {

Workload line(std::string name, std::int64_t n) {
  Draft draft(name);
  const Value x = draft.input("x", Type{DType::C64, {n}}, FeedRule::normal(1));
  draft.graph.set_outputs({fft(x)});
  return finished(std::move(name), std::move(draft), {"y"});
}

}  // namespace

Workload fft_65536(Scale scale) { return line("fft_65536", scale != Scale::Small ? 65536 : 64); }
Workload fft_100000(Scale scale) {
  return line("fft_100000", scale != Scale::Small ? 100000 : 100);
}

Workload fft_512x512(Scale scale) {
  const std::int64_t n = scale != Scale::Small ? 512 : 12;
  Draft draft("fft_512x512");
  const Value x = draft.input("x", Type{DType::C64, {n, n}}, FeedRule::normal(1));
  draft.graph.set_outputs({fftn(x, {0, 1})});
  return finished("fft_512x512", std::move(draft), {"y"});
}

Workload stft_8x160000(Scale scale) {
  const bool full = scale != Scale::Small;
  Draft draft("stft");
  const Value x = draft.input("x", f32({full ? 8 : 2, full ? 160000 : 1100}), FeedRule::normal(1));
  const Value window = window_of(draft.graph, Window::Hann, 512, DType::F32);
  draft.graph.set_outputs({stft(x, {.frame_len = 512, .hop = 128, .window = window})});
  return finished("stft", std::move(draft), {"y"});
}

}  // namespace ricci::bench
