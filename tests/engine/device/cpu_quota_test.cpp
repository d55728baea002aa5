#include "engine/device/cpu_quota.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;

void write_line(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text << '\n';
}

TEST(CpuQuota, IsTheLeastOfTheGroupAndThoseAboveIt) {
  const TempFolder root;
  write_line(root / "a/cpu.max", "150000 100000");
  write_line(root / "a/b/cpu.max", "800000 100000");
  EXPECT_EQ(cores_of_quota(root.path(), "0::/a/b\n"), 2);  // one and a half, rounded up
  EXPECT_EQ(cores_of_quota(root.path(), "0::/\n"), std::nullopt);
  write_line(root / "a/b/cpu.max", "50000 100000");
  EXPECT_EQ(cores_of_quota(root.path(), "0::/a/b\n"), 1);
  write_line(root / "a/b/cpu.max", "max 100000");
  EXPECT_EQ(cores_of_quota(root.path(), "0::/a/b"), 2);
}

TEST(CpuQuota, IsReadFromTheFirstVersionToo) {
  const TempFolder root;
  write_line(root / "cpu/docker/1/cpu.cfs_quota_us", "300000");
  write_line(root / "cpu/docker/1/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores_of_quota(root.path(), "5:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/\n"), 3);
  EXPECT_EQ(cores_of_quota(root.path(), "4:cpuacct:/docker/1\n"), std::nullopt);
  write_line(root / "cpu/docker/1/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(cores_of_quota(root.path(), "4:cpu:/docker/1\n"), std::nullopt);
}

TEST(CpuQuota, IsNoneWhereFilesSayNothing) {
  const TempFolder root;
  for (const char* groups : {"", "\n", "0", "0:", "0::", "::", "0::/missing", "0::../..", ":cpu:"})
    EXPECT_EQ(cores_of_quota(root.path(), groups), std::nullopt) << groups;
  for (const char* text : {"", "0 100000", "100000", "100000 0", "-5 100000", "x y", "nan 1", "1e400 1"}) {
    write_line(root / "cpu.max", text);
    EXPECT_EQ(cores_of_quota(root.path(), "0::/"), std::nullopt) << text;
  }
  write_line(root / "cpu.max", "1e300 1");
  EXPECT_EQ(cores_of_quota(root.path(), "0::/"), 1 << 20);
}

}  // namespace
}  // namespace caldera::testing
