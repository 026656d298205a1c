// The program around printed kernels that are run on the host: it reads runs from a file, calls the
// kernels, and writes what their arrays hold then. Put behind the kernels, with `kernel_number`.
#include <vector>

namespace {

typedef int (*Kernel)(void**, long, int);
Kernel kernel_number(long long n);

struct Reader {
  FILE* file;
  long long number() {
    long long n = 0;
    if (fread(&n, sizeof n, 1, file) != 1) exit(3);
    return n;
  }
};

const size_t Margin = 64;

void run_one(Reader& in, FILE* out) {
  const long long kernel = in.number(), blocks = in.number(), threads = in.number();
  const long long scratch_bytes = in.number(), count = in.number();
  std::vector<std::vector<unsigned char>> rooms;
  std::vector<size_t> sizes;
  std::vector<void*> arguments;
  for (long long a = 0; a < count; ++a) {
    sizes.push_back(size_t(in.number()));
    rooms.emplace_back(sizes.back() + 2 * Margin + 16, 0x5A);
    unsigned char* at = rooms.back().data() + Margin;
    at += 15 - (size_t(at) + 15) % 16;
    if (fread(at, 1, sizes.back(), in.file) != sizes.back()) exit(3);
    arguments.push_back(at);
  }
  std::vector<unsigned char> scratch(size_t(scratch_bytes) + 16, 0xA5);
  unsigned char* room = scratch.data();
  arguments.push_back(room + (15 - (size_t(room) + 15) % 16));
  struct {
    unsigned kind;
    long long value, limit;
    unsigned origin;
    const unsigned* stop;
  } fault = {0, 0, 0, 0, nullptr};
  arguments.push_back(&fault);
  arguments.push_back((void*)size_t(7));
  long long status =
      kernel_number(kernel)(arguments.data(), long(blocks), int(threads));  // 1: stuck
  for (long long a = 0; a < count; ++a) {
    const unsigned char* first = (unsigned char*)arguments[size_t(a)];
    for (const unsigned char& b : rooms[size_t(a)]) {
      const bool outside = &b < first || &b >= first + sizes[size_t(a)];
      if (outside && b != 0x5A) status = 2;
    }
  }
  fwrite(&status, sizeof status, 1, out);
  fwrite(&fault, sizeof fault, 1, out);
  for (long long a = 0; a < count; ++a) fwrite(arguments[size_t(a)], 1, sizes[size_t(a)], out);
  fflush(out);
}

}  // namespace

int main(int, char** argv) {
  Reader in = {fopen(argv[1], "rb")};
  FILE* out = fopen(argv[2], "wb");
  if (in.file == nullptr || out == nullptr) return 3;
  for (long long left = in.number(); left > 0; --left) run_one(in, out);
  return fclose(out);
}
