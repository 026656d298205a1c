// An NVRTC of our own for tests without a GPU: its machine code is the source itself, which
// emulated_driver.h compiles for the host.
//
// This file is not compiled with the tests: a test makes a library of it.
#include <cstring>
#include <string>

namespace {

struct Source {
  std::string text;
};

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 9;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return 0;
}
int nvrtcGetSupportedArchs(int* all) {
  all[0] = 80;
  all[1] = 90;
  return 0;
}
int nvrtcCreateProgram(Source** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Source{source};
  return 0;
}
int nvrtcDestroyProgram(Source** program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(Source* program, int count, const char* const* options) {
  for (int k = 0; k < count; ++k) {
    if (std::string(options[k]) != "--gpu-architecture=sm_90a") continue;
    program->text = "#define __CUDA_ARCH_FEAT_SM90_ALL 1\n" + program->text;
  }
  return 0;
}
int nvrtcGetProgramLogSize(Source*, size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(Source*, char* log) {
  *log = 0;
  return 0;
}
int nvrtcGetCUBINSize(Source* program, size_t* size) {
  *size = program->text.size() + 1;
  return 0;
}
int nvrtcGetCUBIN(Source* program, char* code) {
  memcpy(code, program->text.c_str(), program->text.size() + 1);
  return 0;
}
int nvrtcGetPTXSize(Source* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(Source* program, char* code) { return nvrtcGetCUBIN(program, code); }

}  // extern "C"
