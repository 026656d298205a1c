// A CUDA driver of our own, for tests without a GPU: memory is the host's, streams are threads, and
// kernels are compiled for the host with cuda_shim.h. It refuses what a GPU would: shared memory
// that was not asked for, memory beyond what it has, memory that is given back but not yet trimmed.
// Nodes of a graph are done in another order each time, as far as they need not wait for each
// other. Tests make its functions fail through `emulated_answer`.
//
// This file is not compiled with the tests: a test makes a library of it. RICCI_EMULATED_SHIM is
// the shim's path, RICCI_EMULATED_FOLDER (of the environment) where kernels are put.
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "cuda_as_host.h"

namespace {

constexpr int InvalidValue = 1, OutOfMemory = 2, InvalidImage = 200, NotReady = 600;
constexpr int NotFound = 500, NotCapturing = 901, OtherGraph = 910;
constexpr size_t Capacity = size_t(1) << 28;
constexpr size_t DriversOwn = size_t(1) << 22;  // of it
constexpr size_t SharedWithoutAsking = 48 * 1024, SharedAtMost = 227 * 1024;

// Never destroyed: devices are closed while the process ends.
std::mutex& global = *new std::mutex;  // for all below
struct Answer {
  int status = 0;
  int times = 0;
};
std::map<std::string, Answer>& answers = *new std::map<std::string, Answer>;
std::map<std::string, long>& calls = *new std::map<std::string, long>;
std::map<void*, size_t>& sizes = *new std::map<void*, size_t>;  // of what is allocated
size_t used = 0, cached = 0;                                    // the pool's, beside what is used

int answer(const char* name) {
  const std::lock_guard<std::mutex> lock(global);
  ++calls[name];
  Answer& a = answers[name];
  if (a.times <= 0) return 0;
  --a.times;
  return a.status;
}

using Work = std::function<void()>;

struct Node {
  Work work;
  std::vector<size_t> after;  // those it waits for
};
struct Recorded {
  std::vector<Node> nodes;
  std::vector<size_t> last;                    // what the next one waits for
  std::vector<const void*> told;               // of `last`, to who asked
  std::vector<std::unique_ptr<size_t>> names;  // of nodes: pointers to their numbers

  void add(Work work) {
    names.push_back(std::make_unique<size_t>(nodes.size()));
    nodes.push_back({std::move(work), last});
    last = {nodes.size() - 1};
  }
};
struct Instance {
  std::vector<Node> nodes;
};

// Does what it is given in order, in a thread of its own.
struct Worker {
  Worker() : thread([this] { run(); }) {}
  ~Worker() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      ends = true;
    }
    changed.notify_all();
    thread.join();
  }
  void add(Work work) {
    if (capturing != nullptr) {
      capturing->add(std::move(work));
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(work));
    changed.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return queue.empty() && !busy; });
  }
  bool is_idle() {
    const std::lock_guard<std::mutex> lock(mutex);
    return queue.empty() && !busy;
  }
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ends || !queue.empty(); });
      if (queue.empty()) return;
      const Work work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      work();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> queue;
  bool busy = false;
  bool ends = false;
  Recorded* capturing = nullptr;
  size_t given_back = 0;  // bytes on their way to the pool
  std::thread thread;
};

struct Kernel {
  int (*launch)(void**, long, int) = nullptr;
  const size_t* argument_sizes = nullptr;
  size_t shared = 0;
  size_t dynamic = 0;  // what was asked for
};
using Module = std::map<std::string, Kernel>;

std::mutex& kernels_run = *new std::mutex;  // the fibers of a module are one set

// What each kernel of a source shares is counted for itself.
std::string host_code(const std::string& source) {
  std::string out;
  std::string names;
  size_t from = 0;
  for (const std::string& kernel : ricci::testing::kernel_names(source)) {
    const std::string section = "ricci_shared_" + kernel;
    for (const char* end : {"start", "stop"}) {
      out += std::string("extern \"C\" char __") + end + "_" + section +
             "[] __attribute__((weak, visibility(\"hidden\")));\n";
    }
    out += "#undef __shared__\n#define __shared__ static __attribute__((section(\"" + section +
           "\")))\n";
    const size_t begins = source.find("namespace n", from);
    const bool is_one = begins == std::string::npos;
    const size_t next = is_one ? source.size() : source.find("\nnamespace n", begins + 1);
    out += ricci::testing::as_host_code(source.substr(from, next - from)) + "\n";
    if (!is_one) {
      const size_t at = begins + strlen("namespace ");
      names += std::string("using ") + "namespace " + source.substr(at, source.find(' ', at) - at) +
               ";\n";
    }
    if (next == std::string::npos) break;
    from = next + (is_one ? 0 : 1);
  }
  return out + names;
}

std::string library_of(const std::string& source) {
  const char* folder = getenv("RICCI_EMULATED_FOLDER");
  const size_t hash = std::hash<std::string>()(source);
  const std::string stem = std::string(folder) + "/k" + std::to_string(hash);
  const std::string library = stem + ".so";
  if (access(library.c_str(), R_OK) == 0) return library;
  const std::string own = stem + "_" + std::to_string(size_t(pthread_self()));
  {
    std::ofstream out(own + ".cpp");
    out << "#include \"" RICCI_EMULATED_SHIM "\"\nnamespace {\n" << host_code(source) << "\n}\n";
    for (const std::string& kernel : ricci::testing::kernel_names(source)) {
      out << "extern \"C\" int launch_" << kernel << "(void** a, long blocks, int threads) {\n"
          << "  return fibers::launch([](void** p) { fibers::call_addresses(&" << kernel
          << ", p); }, a, blocks, threads);\n}\n"
          << "extern \"C\" const size_t* sizes_" << kernel << "() {\n"
          << "  return fibers::argument_sizes(&" << kernel << ");\n}\n"
          << "extern \"C\" size_t shared_" << kernel << "() {\n"
          << "  return size_t(__stop_ricci_shared_" << kernel << " - __start_ricci_shared_"
          << kernel << ");\n}\n";
    }
  }
  const char* compiler = getenv("CXX");
  const std::string command =
      std::string(compiler != nullptr && *compiler != 0 ? compiler : "c++") +
      " -std=c++17 -O0 -w -ffp-contract=off -shared -fPIC " + own + ".cpp -o " + own +
      ".so && mv " + own + ".so " + library;
  if (system(command.c_str()) != 0) fprintf(stderr, "emulated GPU: %s.cpp\n", own.c_str());
  return library;
}

Worker* stream_of(void* stream) { return static_cast<Worker*>(stream); }

int take(void** at, size_t bytes) {
  const std::lock_guard<std::mutex> lock(global);
  if (used + cached + bytes > Capacity - DriversOwn) return OutOfMemory;
  *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(*at, 0xA5, bytes);
  sizes[*at] = bytes;
  used += bytes;
  return 0;
}

// How many bytes it was; they still count as used.
size_t release(void* at) {
  const std::lock_guard<std::mutex> lock(global);
  const size_t bytes = sizes[at];
  sizes.erase(at);
  free(at);
  return bytes;
}

}  // namespace

#define ANSWER(name) \
  if (const int status = answer(name)) return status;

extern "C" {

// What the next calls of a function give, and how often it was called.
void emulated_answer(const char* name, int status, int times) {
  const std::lock_guard<std::mutex> lock(global);
  answers[name] = {status, times};
}
long emulated_calls(const char* name) {
  const std::lock_guard<std::mutex> lock(global);
  return calls[name];
}

// For other emulated libraries: does something on a stream when its turn comes.
void emulated_add(void* stream, const Work* work) { stream_of(stream)->add(*work); }

// Bytes that are handed out.
int64_t emulated_used() {
  const std::lock_guard<std::mutex> lock(global);
  int64_t total = 0;
  for (const auto& [at, bytes] : sizes) total += int64_t(bytes);
  return total;
}

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_EMULATED";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "the emulated GPU refuses";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}
int cuDeviceGetName(char* name, int length, int) {
  snprintf(name, size_t(length), "emulated GPU");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  static const bool is_older = std::getenv("RICCI_EMULATED_OLDER") != nullptr;
  *value = attribute == 75    ? (is_older ? 8 : 9)
           : attribute == 97  ? int(SharedAtMost)
           : attribute == 115 ? 1
                              : 0;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = Capacity;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &answers;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }

int cuModuleLoadData(Module** module, const char* image) {
  ANSWER("cuModuleLoadData");
  void* library = dlopen(library_of(image).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "emulated GPU: %s\n", dlerror());
    return InvalidImage;
  }
  auto made = std::make_unique<Module>();
  for (const std::string& name : ricci::testing::kernel_names(image)) {
    const auto find = [&](const char* what) { return dlsym(library, (what + name).c_str()); };
    Kernel& kernel = (*made)[name];
    kernel.launch = (int (*)(void**, long, int))find("launch_");
    kernel.argument_sizes = ((const size_t* (*)())find("sizes_"))();
    kernel.shared = ((size_t (*)())find("shared_"))();
    if (kernel.shared > SharedWithoutAsking) return InvalidImage;  // the assembler refuses it
  }
  *module = made.release();
  return 0;
}
int cuModuleUnload(Module* module) {
  delete module;
  return 0;
}
int cuModuleGetFunction(Kernel** function, Module* module, const char* name) {
  const auto found = module->find(name);
  if (found == module->end()) return NotFound;
  *function = &found->second;
  return 0;
}
int cuFuncSetAttribute(Kernel* function, int, int value) {
  ANSWER("cuFuncSetAttribute");
  if (function->shared + size_t(value) > SharedAtMost) return InvalidValue;
  function->dynamic = size_t(value);
  return 0;
}
int cuLaunchKernel(Kernel* f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                   unsigned, unsigned shared, void* stream, void** given, void**) {
  ANSWER("cuLaunchKernel");
  if (f->shared + shared > SharedWithoutAsking && shared > f->dynamic) return InvalidValue;
  std::vector<std::vector<char>> values;
  for (const size_t* size = f->argument_sizes; *size != 0; ++size) {
    const char* at = static_cast<const char*>(given[values.size()]);
    values.emplace_back(at, at + *size);
  }
  stream_of(stream)->add([f, blocks, threads, values] {
    std::vector<void*> addresses;
    for (const std::vector<char>& v : values) addresses.push_back(const_cast<char*>(v.data()));
    const std::lock_guard<std::mutex> lock(kernels_run);
    if (f->launch(addresses.data(), long(blocks), int(threads)) != 0) {
      fprintf(stderr, "emulated GPU: the threads of a kernel wait for ever\n");
      abort();
    }
  });
  return 0;
}

int cuMemAlloc_v2(void** at, size_t bytes) { return take(at, bytes); }
int cuMemFree_v2(void* at) {
  const size_t bytes = release(at);
  const std::lock_guard<std::mutex> lock(global);
  used -= bytes;
  return 0;
}
int cuMemAllocAsync(void** at, size_t bytes, void*) {
  ANSWER("cuMemAllocAsync");
  return take(at, bytes);
}
int cuMemFreeAsync(void* at, void* stream) {
  const size_t bytes = release(at);
  const std::lock_guard<std::mutex> lock(global);
  stream_of(stream)->given_back += bytes;
  return 0;
}
int cuDeviceGetDefaultMemPool(void** pool, int) {
  *pool = &sizes;
  return 0;
}
int cuMemPoolSetAttribute(void*, int, void*) { return 0; }
int cuMemPoolTrimTo(void*, size_t) {
  ANSWER("cuMemPoolTrimTo");
  const std::lock_guard<std::mutex> lock(global);
  cached = 0;
  return 0;
}
int cuMemAllocHost_v2(void** at, size_t bytes) {
  ANSWER("cuMemAllocHost_v2");
  *at = malloc(bytes);
  return 0;
}
int cuMemFreeHost(void* at) {
  free(at);
  return 0;
}

int cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  ANSWER("cuMemcpyDtoDAsync_v2");
  stream_of(stream)->add([=] { memmove(to, from, bytes); });
  return 0;
}
int cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
int cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
int cuMemsetD8Async(void* at, unsigned char value, size_t count, void* stream) {
  stream_of(stream)->add([=] { memset(at, value, count); });
  return 0;
}
int cuMemsetD32Async(void* at, unsigned value, size_t count, void* stream) {
  stream_of(stream)->add([=] {
    for (size_t i = 0; i < count; ++i) static_cast<unsigned*>(at)[i] = value;
  });
  return 0;
}

int cuStreamCreate(void** stream, unsigned) {
  ANSWER("cuStreamCreate");
  *stream = new Worker;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  delete stream_of(stream);
  return 0;
}
// What was given back on the stream is the pool's now.
int cuStreamSynchronize(void* stream) {
  stream_of(stream)->wait();
  const std::lock_guard<std::mutex> lock(global);
  used -= stream_of(stream)->given_back;
  cached += stream_of(stream)->given_back;
  stream_of(stream)->given_back = 0;
  return 0;
}
int cuStreamQuery(void* stream) {
  ANSWER("cuStreamQuery");
  return stream_of(stream)->is_idle() ? 0 : NotReady;
}
int cuStreamBeginCapture_v2(void* stream, int) {
  ANSWER("cuStreamBeginCapture_v2");
  stream_of(stream)->capturing = new Recorded;
  return 0;
}
int cuStreamEndCapture(void* stream, Recorded** graph) {
  *graph = stream_of(stream)->capturing;
  stream_of(stream)->capturing = nullptr;
  ANSWER("cuStreamEndCapture");
  return 0;
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, uint64_t* id, Recorded** graph,
                              const void* const** nodes, size_t* count) {
  ANSWER("cuStreamGetCaptureInfo_v2");
  Recorded* captured = stream_of(stream)->capturing;
  *status = captured != nullptr ? 1 : 0;
  if (captured == nullptr) return 0;
  captured->told.clear();
  for (const size_t n : captured->last) captured->told.push_back(captured->names[n].get());
  *id = 1;
  *graph = captured;
  *nodes = captured->told.data();
  *count = captured->told.size();
  return 0;
}
int cuStreamUpdateCaptureDependencies(void* stream, void* const* nodes, size_t count,
                                      unsigned flags) {
  ANSWER("cuStreamUpdateCaptureDependencies");
  Recorded* captured = stream_of(stream)->capturing;
  if (captured == nullptr) return NotCapturing;
  if (flags != 1) return InvalidValue;
  captured->last.clear();
  for (size_t n = 0; n < count; ++n) {
    captured->last.push_back(*static_cast<const size_t*>(nodes[n]));
  }
  return 0;
}
int cuGraphDestroy(Recorded* graph) {
  delete graph;
  return 0;
}
int cuGraphInstantiateWithFlags(Instance** exec, const Recorded* graph, unsigned long long) {
  ANSWER("cuGraphInstantiateWithFlags");
  *exec = new Instance{graph->nodes};
  return 0;
}
int cuGraphExecUpdate_v2(Instance* exec, const Recorded* graph, void*) {
  ANSWER("cuGraphExecUpdate_v2");
  if (exec->nodes.size() != graph->nodes.size()) return OtherGraph;
  for (size_t n = 0; n < graph->nodes.size(); ++n) {
    if (exec->nodes[n].after != graph->nodes[n].after) return OtherGraph;
  }
  exec->nodes = graph->nodes;
  return 0;
}

// The graph that was launched last: its nodes, and how many of them wait for each other in a row.
static long last_nodes = 0, last_longest = 0;
void emulated_graph(long* nodes, long* longest) {
  *nodes = last_nodes;
  *longest = last_longest;
}
int cuGraphLaunch(const Instance* exec, void* stream) {
  ANSWER("cuGraphLaunch");
  static unsigned random = 1;
  std::vector<size_t> waits;
  std::vector<std::vector<size_t>> behind(exec->nodes.size());
  std::vector<size_t> ready;
  std::vector<long> depth(exec->nodes.size(), 1);
  last_nodes = long(exec->nodes.size());
  last_longest = 0;
  for (size_t n = 0; n < exec->nodes.size(); ++n) {
    waits.push_back(exec->nodes[n].after.size());
    for (const size_t earlier : exec->nodes[n].after) {
      behind[earlier].push_back(n);
      depth[n] = std::max(depth[n], depth[earlier] + 1);
    }
    last_longest = std::max(last_longest, depth[n]);
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    random = random * 1664525u + 1013904223u;
    std::swap(ready[(random >> 8) % ready.size()], ready.back());
    const size_t next = ready.back();
    ready.pop_back();
    stream_of(stream)->add(exec->nodes[next].work);
    for (const size_t later : behind[next]) {
      if (--waits[later] == 0) ready.push_back(later);
    }
  }
  return 0;
}
int cuGraphExecDestroy(Instance* exec) {
  delete exec;
  return 0;
}

}  // extern "C"
