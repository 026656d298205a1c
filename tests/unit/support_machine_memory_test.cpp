#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "ricci/io/file.h"

#include "support/machine_memory.h"
#include "support/scratch_folder.h"

namespace ricci::support_machine_memory_test {
namespace {

constexpr std::int64_t Unlimited = std::numeric_limits<std::int64_t>::max();

// A tree like that of the system.
class Groups {
 public:
  explicit Groups(std::string_view lines) { write("/proc/self/cgroup", lines); }
  void write(const std::string& file, std::string_view text) {
    const std::filesystem::path path = root_.path() + file;
    std::filesystem::create_directories(path.parent_path());
    io::write_file(path.string(), text);
  }
  [[nodiscard]] std::int64_t allowed() const { return container_memory(root_.path()); }

 private:
  testing::ScratchFolder root_;
};

TEST(MachineMemory, IsTheLeastOfNestedGroups) {
  Groups groups("0::/a/b/c\n");
  EXPECT_EQ(groups.allowed(), Unlimited);
  groups.write("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
  EXPECT_EQ(groups.allowed(), Unlimited);
  groups.write("/sys/fs/cgroup/a/b/memory.max", "3000\n");
  EXPECT_EQ(groups.allowed(), 3000);
  groups.write("/sys/fs/cgroup/a/b/c/memory.max", "4000\n");
  EXPECT_EQ(groups.allowed(), 3000);
  groups.write("/sys/fs/cgroup/a/memory.max", "2000\n");
  EXPECT_EQ(groups.allowed(), 2000);
  groups.write("/sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(groups.allowed(), 1000);
}

TEST(MachineMemory, IsThatOfGroupsOfVersionOne) {
  Groups groups("9:name=systemd:/x\n4:cpu,memory:/a/b\n3:cpuset:/\n0::/\n");
  groups.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  groups.write("/sys/fs/cgroup/x/memory.max", "7\n");
  EXPECT_EQ(groups.allowed(), 9223372036854771712);
  groups.write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "5000\n");
  EXPECT_EQ(groups.allowed(), 5000);
  groups.write("/sys/fs/cgroup/unified/memory.max", "4000\n");
  EXPECT_EQ(groups.allowed(), 4000);
}

// The path of a group is the host's where a container has no names of its own for them.
TEST(MachineMemory, IsFoundWhereTheGroupHasAnotherNameOutside) {
  Groups groups("4:memory:/docker/0123\n0::/../../other\n");
  groups.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n");
  EXPECT_EQ(groups.allowed(), 6000);
  groups.write("/sys/fs/cgroup/memory.max", "5000\n");
  EXPECT_EQ(groups.allowed(), 5000);
}

TEST(MachineMemory, NonsenseLimitsNothing) {
  EXPECT_EQ(Groups("").allowed(), Unlimited);
  Groups groups("x\n::\n0:\n4:memory\n0::\n:memory:relative\n");
  groups.write("/sys/fs/cgroup/memory/relative/memory.limit_in_bytes", "-5\n");
  EXPECT_EQ(groups.allowed(), Unlimited);
}

}  // namespace
}  // namespace ricci::support_machine_memory_test
