// Printed CUDA kernels as C++ that compiles with cuda_shim.h in front of it.
#pragma once

#include <string>
#include <vector>

namespace ricci::testing {

inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Statements of many numbers: how many columns there are is in the instruction's name.
inline void replace_warpgroup_products(std::string& text) {
  const std::string name = "wgmma.mma_async.sync.aligned.m64n";
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
    const std::size_t begin = text.rfind("asm volatile(", at);
    const std::size_t end = text.find(");\n", at) + 2;
    const std::string statement = text.substr(begin, end - begin);
    const std::size_t digits = at + name.size();
    const bool factors = statement.find("\"r\"(f[0])") != std::string::npos;
    text.replace(begin, end - begin,
                 "host_warpgroup_product(d, " +
                     text.substr(digits, text.find('k', digits) - digits) +
                     (factors ? ", nullptr, f, b, true" : ", a, nullptr, b, adds") +
                     ", +[](unsigned short x) { return to_float(T{x}); });");
  }
}

/// The few lines that are not C++ are written anew.
inline std::string as_host_code(std::string text) {
  replace_all(text, R"(asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));)",
              "y = host_f16(x.bits);");
  replace_all(text, R"(asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));)",
              "y.bits = host_to_f16(x);");
  replace_all(text, R"(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.0f));)",
              "pair = unsigned(host_to_bf16(x)) << 16;");
  for (const char* type : {"bf16", "f16"}) {
    replace_all(text,
                std::string("asm(\"cvt.rn.") + type +
                    R"(x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x[j + 1]), "f"(x[j]));)",
                std::string("pair = unsigned(host_to_") + type + "(x[j])) | unsigned(host_to_" +
                    type + "(x[j + 1])) << 16;");
  }
  replace_all(text, R"(asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));)", "y = 1 / x;");
  replace_all(text, R"(asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));)", "y = exp2f(x);");
  replace_all(text, R"(asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));)",
              "y = larger<float>(a, b);");
  replace_all(text, R"(asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));)",
              "y = smaller<float>(a, b);");
  replace_warpgroup_products(text);
  replace_all(text, R"(asm volatile("" : "+f"(x[e]) :: "memory");)", ";");
  for (const char* what : {"wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;",
                           "wgmma.wait_group.sync.aligned 0;", "fence.proxy.async.shared::cta;"}) {
    replace_all(text, std::string("asm volatile(\"") + what + "\" ::: \"memory\");", "");
  }
  replace_all(text, "const unsigned at = (unsigned)__cvta_generic_to_shared(from);",
              "const unsigned at = 0;");
  replace_all(text, "extern __shared__ __align__(1024) unsigned char shared_memory[];", "");
  for (const char* what : {"row", "to"}) {
    replace_all(
        text, std::string("const unsigned at = (unsigned)__cvta_generic_to_shared(") + what + ");",
        "");
  }
  replace_all(
      text,
      R"(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(real ? 16 : 0) : "memory");)",
      "host_copy_async(to, from, 16, real);");
  replace_all(
      text,
      R"(asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(at), "l"(from), "r"(real ? 8 : 0) : "memory");)",
      "host_copy_async(to, from, 8, real);");
  replace_all(text, R"(asm volatile("cp.async.wait_all;" ::: "memory");)",
              "host_end_copies(); host_await_copies(0);");
  replace_all(text, R"(asm("cvt.rn." SMALL "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));)",
              "pair = unsigned(SMALLER(x).bits) | unsigned(SMALLER(y).bits) << 16;");
  replace_all(
      text,
      R"(asm volatile("{ .reg .pred none; setp.eq.u32 none, %2, 0; cp.async.ca.shared.global [%0], [%1], " ELEMENT ", none; }" :: "r"(at), "l"(from), "r"((unsigned)real) : "memory");)",
      "host_copy_async(to, from, sizeof *to, real);");
  replace_all(
      text,
      R"(asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");)",
      "host_copy_async(to, from, 16, true);");
  replace_all(
      text,
      R"(asm("{ .reg .pred real; setp.ne.u32 real, %2, 0; mov.b16 %0, 0; @real ld.global.nc.u16 %0, [%1]; }" : "=h"(x.bits) : "l"(from), "r"((unsigned)real));)",
      "x.bits = 0; if (real) x = *from;");
  replace_all(text, R"(asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));)",
              "y = host_to_tf32(x);");
  replace_all(
      text,
      R"(asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));)",
      "host_multiply_add_tf32(c, a, b0, b1);");
  for (const char* held : {"+r", "+l"}) {
    replace_all(text, std::string("asm volatile(\"\" : \"") + held + "\"(x));", "");
  }
  replace_all(text, R"(asm volatile("cp.async.commit_group;" ::: "memory");)",
              "host_end_copies();");
  replace_all(text, R"(asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");)",
              "host_await_copies(PENDING);");
  replace_all(
      text,
      R"(asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." SMALL "." SMALL ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));)",
      "host_multiply_add(c, a, b0, b1, +[](unsigned short x) { return to_float(T{x}); });");
  for (const bool transposed : {false, true}) {
    replace_all(
        text,
        std::string(R"(asm volatile("ldmatrix.sync.aligned.m8n8.x4.)") +
            (transposed ? "trans." : "") +
            R"(shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");)",
        transposed ? "host_load_matrices(to, row, true);" : "host_load_matrices(to, row, false);");
  }
  replace_all(text, "extern __shared__ __align__(16) unsigned char shared_memory[];", "");
  replace_all(text, "extern \"C\" ", "");
  return text;
}

/// The names of a source's kernels.
inline std::vector<std::string> kernel_names(const std::string& source) {
  const std::string begins = "__global__ void";
  std::vector<std::string> names;
  for (std::size_t at = source.find(begins); at != std::string::npos;
       at = source.find(begins, at)) {
    at = source.find_first_not_of(" \n", at + begins.size());
    if (source.compare(at, 18, "__launch_bounds__(") == 0) at = source.find(')', at) + 1;
    at = source.find_first_not_of(" \n", at);
    names.push_back(source.substr(at, source.find('(', at) - at));
  }
  return names;
}

}  // namespace ricci::testing
