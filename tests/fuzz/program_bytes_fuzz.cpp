// Any bytes, with a check sum that is right, are a program or refused; a program survives, and runs
// without touching memory that is not its own.
#include <cstdint>
#include <cstdlib>

#include "ricci/support/error.h"

#include "fuzz/stored_program.h"
#include "schedule/program_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  const auto body = std::as_bytes(std::span(data, size));
  Program program;
  const std::vector<std::byte> bytes = schedule::sealed(schedule::ProgramSeal, body);
  try {
    program = schedule::program_from_bytes(bytes);
  } catch (const UserError&) {
    return 0;
  }
  const std::vector<std::byte> again = schedule::to_bytes(program);
  if (schedule::to_bytes(schedule::program_from_bytes(again)) != again) std::abort();
  (void)ricci::testing::run_stored_program(bytes);
  return 0;
}
