// What programs under the leak sanitizer are told of libraries that are not ours.
//
// NVIDIA's driver keeps some hundred bytes that cuInit takes until the process ends. Nothing is
// said of what was passed over: tests read what programs print.

extern "C" {

[[gnu::used, gnu::visibility("default")]] const char* __lsan_default_suppressions();  // NOLINT
[[gnu::used, gnu::visibility("default")]] const char* __lsan_default_options();       // NOLINT

const char* __lsan_default_suppressions() { return "leak:libcuda.so\n"; }  // NOLINT
const char* __lsan_default_options() { return "print_suppressions=0"; }    // NOLINT
}
