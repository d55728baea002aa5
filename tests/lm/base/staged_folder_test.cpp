#include "lm/base/staged_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "engine/base/error.h"
#include "lm/base/temporary_name.h"
#include "tests/support/temp_folder.h"

namespace caldera {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void put(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

using Names = std::set<std::string>;

TEST(StagedFolder, AppearsWhole) {
  const TempFolder temp;
  StagedFolder staged(temp / "out");
  put(staged.path() / "inner/a", "new");
  EXPECT_FALSE(fs::exists(temp / "out"));
  staged.commit();
  EXPECT_EQ(content(temp / "out/inner/a"), "new");
  EXPECT_EQ(names_in(temp.path()), Names{"out"});
}

TEST(StagedFolder, ReplacesAndKeepsWhatItIsToldTo) {
  const TempFolder temp;
  put(temp / "out/a", "old");
  put(temp / "out/kept/deep/file", "kept");
  put(temp / "out/dropped", "dropped");
  std::ofstream open(temp / "out/open", std::ios::app);
  open << "before" << std::flush;
  StagedFolder staged(fs::path(temp / "out").string() + "/");
  put(staged.path() / "a", "new");
  EXPECT_EQ(content(temp / "out/a"), "old");
  staged.commit([](const fs::path& name) { return name != "dropped"; });
  open << " and after" << std::flush;

  EXPECT_EQ(names_in(temp / "out"), (Names{"a", "kept", "open"}));
  EXPECT_EQ(content(temp / "out/a"), "new");
  EXPECT_EQ(content(temp / "out/kept/deep/file"), "kept");
  EXPECT_EQ(content(temp / "out/open"), "before and after");
  EXPECT_EQ(names_in(temp.path()), Names{"out"});
}

TEST(StagedFolder, LeavesEverythingAloneUnlessCommitted) {
  const TempFolder temp;
  put(temp / "out/a", "old");
  {
    StagedFolder staged(temp / "out");
    put(staged.path() / "a", "new");
  }
  EXPECT_EQ(content(temp / "out/a"), "old");
  EXPECT_EQ(names_in(temp.path()), Names{"out"});
  EXPECT_THROW(StagedFolder(temp / "absent/out"), FileError);
}

// A process that has ended: a child that was waited for.
std::string number_of_an_ended_process() {
  const pid_t child = ::fork();
  if (child == 0) _exit(0);
  EXPECT_GT(child, 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return std::to_string(child);
}

TEST(TemporaryName, LeftoversAreThoseOfProcessesThatEnded) {
  const TempFolder temp;
  const std::string ended = number_of_an_ended_process();
  const std::string running = std::to_string(::getppid());
  for (const std::string& name : Names{".caldera-" + ended + "-0.tmp", ".out.caldera-" + ended + "-7.tmp",
                                       ".other.caldera-" + ended + "-7.tmp", ".caldera-" + running + "-0.tmp",
                                       ".caldera-" + ended + ".tmp", "caldera-" + ended + "-0.tmp",
                                       ".caldera-" + ended + "-0.tmp.txt", ".caldera--1-0.tmp", "model"})
    put(temp / name, "x");
  put(temp / (".out.caldera-" + ended + "-8.tmp/deep/file"), "x");

  detail::remove_leftovers(temp.path(), "out");
  Names names = names_in(temp.path());
  EXPECT_EQ(names.size(), 8U);
  EXPECT_FALSE(names.contains(".out.caldera-" + ended + "-7.tmp"));
  EXPECT_FALSE(names.contains(".out.caldera-" + ended + "-8.tmp"));

  detail::remove_leftovers(temp.path());
  EXPECT_EQ(names_in(temp.path()), (Names{".caldera-" + running + "-0.tmp", ".caldera-" + ended + ".tmp",
                                          "caldera-" + ended + "-0.tmp", ".caldera-" + ended + "-0.tmp.txt",
                                          ".caldera--1-0.tmp", "model"}));
  detail::remove_leftovers(temp / "absent");
}

TEST(TemporaryName, EachIsAnother) {
  Names names;
  for (int i = 0; i < 100; ++i) names.insert(detail::temporary_name());
  EXPECT_EQ(names.size(), 100U);
  EXPECT_TRUE(detail::temporary_name("out").starts_with(".out.caldera-"));
}

}  // namespace
}  // namespace caldera
