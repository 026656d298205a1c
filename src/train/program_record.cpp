#include "ricci/train/program_record.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "ricci/compiler/schedule/program.h"
#include "ricci/support/file.h"

#include "support/json.h"
#include "train/json_reader.h"

namespace ricci {
namespace {

// All buffers a step touches.
struct BuffersOf {
  std::vector<BufferId>& out;

  void add(const std::vector<BufferView>& views) const {
    for (const BufferView& v : views) out.push_back(v.buffer);
  }
  void add(const Launch& launch) const {
    out.insert(out.end(), launch.buffers.begin(), launch.buffers.end());
  }
  void operator()(const KernelStep& s) const {
    for (const Launch& l : s.launches) add(l);
  }
  void operator()(const CallStep& s) const {
    add(s.operands);
    add(s.results);
    if (s.before) add(*s.before);
    if (s.after) add(*s.after);
  }
  void operator()(const ControlStep& s) const {
    add(s.operands);
    add(s.results);
    out.push_back(s.workspace);
    for (const auto& pair : s.carries) out.insert(out.end(), pair.begin(), pair.end());
  }
  void operator()(const LoopStep& s) const {
    add(s.operands);
    add(s.results);
  }
};

std::vector<ProgramRecord::Place> places_in(const Program& program) {
  std::map<BufferId, ProgramRecord::Place> found;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    std::vector<BufferId> touched;
    std::visit(BuffersOf{touched}, program.steps[i].what);
    for (const BufferId id : touched) {
      if (id < 0) continue;
      const Buffer& b = program.buffers[static_cast<std::size_t>(id)];
      if (b.role != Buffer::Role::Temporary || b.bytes() == 0) continue;
      const auto step = static_cast<std::int64_t>(i);
      const auto [it, is_new] =
          found.try_emplace(id, ProgramRecord::Place{b.offset, b.bytes(), step, step});
      it->second.last = step;
    }
  }
  std::vector<ProgramRecord::Place> out;
  for (const auto& [id, place] : found) out.push_back(place);
  return out;
}

}  // namespace

ProgramRecord record_program(const CompiledGraph& compiled, const Profile& profile) {
  const Program& program = compiled.program();
  ProgramRecord out;
  out.program = program.name;
  out.steps = static_cast<std::int64_t>(program.steps.size());
  out.arena_bytes = program.arena_bytes;
  out.live_bytes = program.live_bytes;
  for (const BufferId id : program.inputs) {
    if (id >= 0) out.kept_bytes += program.buffers[static_cast<std::size_t>(id)].bytes();
  }
  out.places = places_in(program);
  const double runs = static_cast<double>(std::max<std::int64_t>(1, profile.runs()));
  out.seconds = profile.seconds() / runs;
  for (const ProfileRow& row : profile.rows()) {
    if (row.depth > 0) continue;  // counted with the step that runs it
    out.rows.push_back({row.label, row.kind, row.seconds / runs, row.bytes, row.flops});
  }
  return out;
}

std::string to_json(const ProgramRecord& r) {
  std::string out = fmt::format(
      "{{\"program\": {}, \"seconds\": {}, \"steps\": {}, \"arena_bytes\": {}, \"live_bytes\": {}, "
      "\"kept_bytes\": {},\n\"rows\": [",
      quote_json(r.program), number_json(r.seconds), r.steps, r.arena_bytes, r.live_bytes,
      r.kept_bytes);
  std::string_view separator = "\n";
  for (const ProgramRecord::Row& row : r.rows) {
    out += fmt::format(
        "{}{{\"label\": {}, \"kind\": {}, \"seconds\": {}, \"bytes\": {}, \"flops\": {}}}",
        separator, quote_json(row.label), quote_json(row.kind), number_json(row.seconds), row.bytes,
        row.flops);
    separator = ",\n";
  }
  out += "],\n\"places\": [";
  separator = "\n";
  for (const ProgramRecord::Place& p : r.places) {
    out += fmt::format("{}[{}, {}, {}, {}]", separator, p.offset, p.bytes, p.first, p.last);
    separator = ", ";
  }
  return out + "]}\n";
}

namespace {

ProgramRecord::Row read_row(JsonReader& in) {
  ProgramRecord::Row row;
  in.object([&](const std::string& key) {
    if (key == "label")
      row.label = in.string();
    else if (key == "kind")
      row.kind = in.string();
    else if (key == "seconds")
      row.seconds = in.number();
    else if (key == "bytes")
      row.bytes = in.integer();
    else if (key == "flops")
      row.flops = in.integer();
    else
      in.skip();
  });
  return row;
}

ProgramRecord::Place read_place(JsonReader& in) {
  std::vector<std::int64_t> n;
  in.array([&] { n.push_back(in.integer()); });
  n.resize(4);
  return {n[0], n[1], n[2], n[3]};
}

}  // namespace

ProgramRecord read_program_record(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  JsonReader in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  ProgramRecord out;
  in.object([&](const std::string& key) {
    if (key == "program")
      out.program = in.string();
    else if (key == "seconds")
      out.seconds = in.number();
    else if (key == "steps")
      out.steps = in.integer();
    else if (key == "arena_bytes")
      out.arena_bytes = in.integer();
    else if (key == "live_bytes")
      out.live_bytes = in.integer();
    else if (key == "kept_bytes")
      out.kept_bytes = in.integer();
    else if (key == "rows")
      in.array([&] { out.rows.push_back(read_row(in)); });
    else if (key == "places")
      in.array([&] { out.places.push_back(read_place(in)); });
    else
      in.skip();
  });
  in.end();
  return out;
}

}  // namespace ricci
