// Keeps OpenMP inside oneDNN from starting threads: the pool owns every thread.
#pragma once

// OpenMP's own header is not on every compiler's path; these two are part of its C interface.
extern "C" void omp_set_num_threads(int threads);
extern "C" int omp_get_max_threads(void);

namespace ricci::cpu {

/// While it lives, libraries run on the calling thread alone. The setting belongs to the thread, so
/// every thread that calls a library holds one, the pool's and the program's own; the latter find
/// their setting as it was.
class OneLibraryThread {
 public:
  OneLibraryThread() noexcept : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  OneLibraryThread(const OneLibraryThread&) = delete;
  OneLibraryThread& operator=(const OneLibraryThread&) = delete;
  ~OneLibraryThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

}  // namespace ricci::cpu
