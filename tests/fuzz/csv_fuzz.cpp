// Any bytes are a table or refused; what is a table has as many fields in every column as rows, and
// is read the same when its columns are said to be what they were found to be.
#include <cstdint>
#include <cstdlib>

#include "ricci/io/csv.h"
#include "ricci/support/error.h"

#include "fuzz/largest_allocation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ricci;
  const ricci::testing::LargestAllocation largest(static_cast<std::int64_t>(256 * size + 65536));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  io::Csv table;
  try {
    table = io::parse_csv(text);
  } catch (const UserError&) {
    return 0;
  }
  io::CsvOptions same;
  for (const io::Csv::Column& c : table.columns()) {
    const auto* numbers = std::get_if<Tensor>(&c.values);
    const auto count = numbers != nullptr ? numbers->numel()
                                          : static_cast<std::int64_t>(table.texts(c.name).size());
    if (count != table.rows()) std::abort();
    same.types.emplace(c.name, c.type);
  }
  const io::Csv again = io::parse_csv(text, same);
  for (const io::Csv::Column& c : table.columns()) {
    const auto* numbers = std::get_if<Tensor>(&c.values);
    if (numbers != nullptr ? !again[c.name].identical(*numbers)
                           : again.texts(c.name) != table.texts(c.name)) {
      std::abort();
    }
  }
  return 0;
}
