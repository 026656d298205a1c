#include "runtime/c_header.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <fmt/args.h>
#include <fmt/format.h>

namespace ricci::runtime {
namespace {

// Words of C and C++, and macros of the headers that are included.
constexpr auto Reserved = std::to_array<std::string_view>({"alignas",     "alignof",
                                                           "and",         "and_eq",
                                                           "asm",         "auto",
                                                           "bitand",      "bitor",
                                                           "bool",        "break",
                                                           "case",        "catch",
                                                           "char",        "char16_t",
                                                           "char32_t",    "char8_t",
                                                           "class",       "co_await",
                                                           "co_return",   "co_yield",
                                                           "compl",       "concept",
                                                           "const",       "const_cast",
                                                           "consteval",   "constexpr",
                                                           "constinit",   "continue",
                                                           "decltype",    "default",
                                                           "delete",      "do",
                                                           "double",      "dynamic_cast",
                                                           "else",        "enum",
                                                           "explicit",    "export",
                                                           "extern",      "false",
                                                           "float",       "for",
                                                           "friend",      "goto",
                                                           "if",          "inline",
                                                           "int",         "linux",
                                                           "long",        "mutable",
                                                           "namespace",   "new",
                                                           "noexcept",    "not",
                                                           "not_eq",      "nullptr",
                                                           "operator",    "or",
                                                           "or_eq",       "private",
                                                           "protected",   "public",
                                                           "register",    "reinterpret_cast",
                                                           "requires",    "restrict",
                                                           "return",      "short",
                                                           "signed",      "sizeof",
                                                           "static",      "static_assert",
                                                           "static_cast", "struct",
                                                           "switch",      "template",
                                                           "this",        "thread_local",
                                                           "throw",       "true",
                                                           "try",         "typedef",
                                                           "typeid",      "typename",
                                                           "typeof",      "typeof_unqual",
                                                           "union",       "unix",
                                                           "unsigned",    "using",
                                                           "virtual",     "void",
                                                           "volatile",    "wchar_t",
                                                           "while",       "xor",
                                                           "xor_eq"});

struct CType {
  std::string_view name;
  std::int64_t per_element = 1;
  std::string_view note = {};
};

CType c_type(DType dtype) {
  switch (dtype) {
    case DType::F64: return {"double"};
    case DType::F32: return {"float"};
    case DType::F16: return {"uint16_t", 1, "; the bits of an IEEE half"};
    case DType::BF16: return {"uint16_t", 1, "; the upper half of a float's bits"};
    case DType::I64: return {"int64_t"};
    case DType::I32: return {"int32_t"};
    case DType::I16: return {"int16_t"};
    case DType::I8: return {"int8_t"};
    case DType::U8: return {"uint8_t"};
    case DType::U32: return {"uint32_t"};
    case DType::Bool: return {"bool"};
    case DType::C64: return {"float", 2, "; real and imaginary parts in turn"};
    case DType::C128: break;
  }
  return {"double", 2, "; real and imaginary parts in turn"};
}

// Text that cannot end the comment it stands in.
std::string in_comment(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  for (std::size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/")) {
    text[at] = '.';
  }
  return text;
}

std::string struct_fields(const std::vector<DocumentedArray>& arrays) {
  std::string out;
  for (const DocumentedArray& a : arrays) {
    const CType type = c_type(a.type.dtype);
    out += fmt::format("  {}{}* {}; /* {}: {}{} */\n", a.array.output < 0 ? "const " : "",
                       type.name, a.array.name, in_comment(a.what), a.type.to_string(), type.note);
  }
  return arrays.empty() ? "  const void* none; /* there are no arrays */\n" : out;
}

std::string counts(const std::string& name, const std::vector<DocumentedArray>& arrays) {
  std::string out;
  for (const DocumentedArray& a : arrays) {
    const std::int64_t count = *a.type.numel() * c_type(a.type.dtype).per_element;
    out += fmt::format("#define {}_{}_elements INT64_C({})\n", name, a.array.name, count);
  }
  return out;
}

// One line for each array that is written; for arrays that hold nothing too, which must be
// somewhere.
std::string allocations(const std::string& name, const std::vector<DocumentedArray>& arrays) {
  std::string out;
  for (const DocumentedArray& a : arrays) {
    if (a.array.output < 0) continue;
    const std::string field = fmt::format("arrays->{}", a.array.name);
    const std::string_view type = c_type(a.type.dtype).name;
    out += fmt::format(
        "  if ({0} == NULL) {0} = ({1}*)calloc((size_t)({2}_{3}_elements + 1), sizeof({1}));\n"
        "  if ({0} == NULL) return {2}_no_memory;\n",
        field, type, name, a.array.name);
  }
  return out.empty() ? "  (void)arrays;\n" : out;
}

// A literal of C. Bytes that are not plain text are octal, three digits each, so that what follows
// never becomes part of them.
std::string c_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '?') {  // ? for what was a trigraph
      out += '\\';
      out += c;
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return out + '"';
}

// The shapes, and a line for each array.
std::string array_table(const std::string& name, const std::vector<DocumentedArray>& arrays) {
  std::string shapes;
  std::string lines;
  for (const DocumentedArray& a : arrays) {
    std::string sizes;
    for (const std::int64_t size : a.type.static_dims())
      sizes += fmt::format("INT64_C({}), ", size);
    shapes += fmt::format("  static const int64_t {}_shape[] = {{{}0}};\n", a.array.name, sizes);
    const char* kind = a.array.input < 0             ? "output"
                       : a.what.starts_with("param") ? "param"
                                                     : "input";
    lines += fmt::format("    {{{}, \"{}\", \"{}\", {}_shape, {}, {}, {}_{}_elements, sizeof({}), "
                         "offsetof({}_arrays, {})}},\n",
                         c_string(a.name), kind, ricci::name(a.type.dtype), a.array.name,
                         a.type.rank(), a.array.output < 0 ? 0 : 1, name, a.array.name,
                         c_type(a.type.dtype).name, name, a.array.name);
  }
  return fmt::format("{}  static const {}_array_info table[] = {{\n{}    {{NULL, NULL, NULL, NULL, "
                     "0, 0, 0, 0, 0}}}};\n",
                     shapes, name, lines);
}

std::string releases(const std::vector<DocumentedArray>& arrays) {
  std::string out;
  for (const DocumentedArray& a : arrays) {
    if (a.array.output < 0) continue;
    out += fmt::format("  free(arrays->{0});\n  arrays->{0} = NULL;\n", a.array.name);
  }
  return out.empty() ? "  (void)arrays;\n" : out;
}

// {name}: what identifiers begin with. Braces of C are doubled.
constexpr std::string_view Text =
    R"(/* {name}: a program compiled ahead of time by Ricci {version} for target '{target}'.
 *
 * Compile and link it with its object and the runtime:
 *     cc main.c {name}.o $(pkg-config --libs ricci-runtime) -o main
 * or, where it was linked into a shared library, with that alone.
 */
#ifndef RICCI_PROGRAM_{name}_H
#define RICCI_PROGRAM_{name}_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* What the functions return. {name}_error() says it in words. */
enum {name}_status {{
  {name}_ok = 0,
  {name}_bad_argument = 1, /* an array is missing, misaligned, or overlaps one that is written */
  {name}_bad_machine = 2,  /* the processor lacks instructions of target '{target}' */
  {name}_no_memory = 3,
  {name}_bad_values = 4,   /* values a kernel cannot work with: an index out of range, ... */
  {name}_bad_package = 5,  /* linked with another version of the runtime, or damaged */
  {name}_internal = 6,     /* a fault of Ricci's */
  {name}_busy = 7,         /* another thread is running the program */
  {name}_stopped = 8       /* by {name}_stop */
}};

/* The program, ready to run, with its memory and its threads. */
typedef struct {name}_program {name}_program;

/* The arrays of a run: row-major, aligned for their type, owned by the caller. Those that are not
 * const are written; they must not overlap any other. */
typedef struct {name}_arrays {{
{fields}}} {name}_arrays;

/* How many values of its C type each array holds. */
{counts}
/* What an array is, for programs that do not know them by name. */
typedef struct {name}_array_info {{
  const char* name;      /* as the program calls it */
  const char* kind;      /* "input", "param" or "output" */
  const char* dtype;     /* "f32", ... */
  const int64_t* shape;  /* its sizes */
  int rank;              /* how many there are */
  int is_written;
  int64_t elements;      /* values of its C type */
  size_t element_bytes;  /* of one of them */
  size_t offset;         /* where its pointer is in {name}_arrays */
}} {name}_array_info;

#define {name}_array_count {array_count}

/* One entry for each array, in the order of {name}_arrays, and one of zeros behind them. */
static inline const {name}_array_info* {name}_array_table(void) {{
{table}  return table;
}}

/* Gives every array that is null and is written (params, the state of an optimiser, outputs) memory
 * of its own, filled with zeros. Inputs are the caller's. Returns {name}_ok or {name}_no_memory. */
static inline int {name}_arrays_alloc({name}_arrays* arrays) {{
{allocs}  return {name}_ok;
}}

/* Frees the arrays that are written and makes them null. Those that did not come from
 * {name}_arrays_alloc must be null before. */
static inline void {name}_arrays_free({name}_arrays* arrays) {{
{frees}}}

/* Makes the program ready. `threads` counts the calling thread; 0 means one per core. */
int {name}_create({name}_program** program, int threads);

/* Runs it once. Results do not depend on the number of threads. `seed` is for programs that draw
 * random numbers: the same seed draws the same. One run at a time for each program; any number of
 * programs may run at once. After a failure the program may be run again; arrays that are written
 * may hold some of the new values. */
int {name}_run({name}_program* program, const {name}_arrays* arrays, uint64_t seed);

/* Ends the run that is under way, or else the next one: it returns {name}_stopped soon. Any thread
 * and any signal handler may call it. */
void {name}_stop({name}_program* program);

/* Why the last call of this thread failed; valid until its next call. */
const char* {name}_error(void);

/* Frees the program. Null is let be. */
void {name}_destroy({name}_program* program);

#ifdef __cplusplus
}}
#endif

#endif
)";

}  // namespace

std::span<const std::string_view> reserved_words() noexcept { return Reserved; }

std::string c_identifier(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? c : '_';
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
  if (std::ranges::find(Reserved, out) != Reserved.end()) out += '_';
  // Compilers may use any name like _Complex or __linux__ for themselves.
  const bool theirs =
      out.size() > 1 && out[0] == '_' && (out[1] == '_' || (out[1] >= 'A' && out[1] <= 'Z'));
  if (theirs) out.insert(out.begin(), 'x');
  return out;
}

std::string c_header(const device::PackagedInterface& interface,
                     const std::vector<DocumentedArray>& arrays) {
  return fmt::format(
      fmt::runtime(Text), fmt::arg("name", interface.name), fmt::arg("version", RICCI_VERSION),
      fmt::arg("target", interface.target), fmt::arg("fields", struct_fields(arrays)),
      fmt::arg("counts", counts(interface.name, arrays)), fmt::arg("array_count", arrays.size()),
      fmt::arg("table", array_table(interface.name, arrays)),
      fmt::arg("allocs", allocations(interface.name, arrays)), fmt::arg("frees", releases(arrays)));
}

}  // namespace ricci::runtime
