#include "lm/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "tests/lm/base/io_test_support.h"

namespace caldera {
namespace {

using testing::error_of;
using testing::slurp;
using testing::TempFolder;

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, WritesAndReplaces) {
  const TempFolder folder;
  const auto path = folder / "a.txt";
  write_text_file(path, "first");
  EXPECT_EQ(slurp(path), "first");
  const std::string binary("\0\r\n\xFF", 4);
  write_text_file(path, binary);
  EXPECT_EQ(slurp(path), binary);
  EXPECT_EQ(read_text_file(path), binary);
  EXPECT_EQ(files_in(folder.path()), 1u) << "a temporary file is left";
}

TEST(AtomicFile, JoinsParts) {
  const TempFolder folder;
  const std::string a = "one ", b, c = "two";
  const auto bytes = [](const std::string& s) { return std::as_bytes(std::span(s)); };
  const std::vector<std::span<const std::byte>> parts{bytes(a), bytes(b), bytes(c)};
  write_file_atomically(folder / "p", parts);
  EXPECT_EQ(slurp(folder / "p"), "one two");
}

TEST(AtomicFile, HonoursTheUmask) {
  const TempFolder folder;
  const mode_t old = ::umask(0027);
  write_text_file(folder / "m", "x");
  ::umask(old);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "m").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST(AtomicFile, FailureLeavesTheOldFile) {
  const TempFolder folder;
  EXPECT_CONTAINS(error_of<FileError>([&] { write_text_file(folder / "no/such/folder/f", "x"); }),
                  "no/such/folder");
  EXPECT_CONTAINS(error_of<FileError>([&] { write_text_file("", "x"); }), "cannot write");
  // A folder in the file's place.
  std::filesystem::create_directory(folder / "taken");
  folder.put("taken/inside", "kept");
  EXPECT_CONTAINS(error_of<FileError>([&] { write_text_file(folder / "taken", "x"); }), "folder");
  EXPECT_EQ(slurp(folder / "taken/inside"), "kept");
  EXPECT_EQ(files_in(folder.path()), 1u) << "a temporary file is left";
}

TEST(AtomicFile, SymbolicLinksAreFollowed) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "real");
  folder.put("real/f", "old");
  std::filesystem::create_symlink("real/f", folder / "link");
  std::filesystem::create_symlink(folder / "link", folder / "link-to-link");
  write_text_file(folder / "link-to-link", "new");
  EXPECT_EQ(slurp(folder / "real/f"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link-to-link"));

  std::filesystem::create_symlink("real/created", folder / "dangling");
  write_text_file(folder / "dangling", "x");
  EXPECT_EQ(slurp(folder / "real/created"), "x");

  std::filesystem::create_symlink("circle", folder / "circle");
  EXPECT_CONTAINS(error_of<FileError>([&] { write_text_file(folder / "circle", "x"); }), "symbolic links");
}

TEST(AtomicFile, APipeIsWrittenTo) {
  const TempFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = slurp(pipe); });
  write_text_file(pipe, "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, ASocketIsLeftAlone) {
  const TempFolder folder;
  const auto path = folder / "s";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.string().size(), sizeof address.sun_path);
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_CONTAINS(error_of<FileError>([&] { write_text_file(path, "x"); }), "not a regular file");
  EXPECT_TRUE(std::filesystem::is_socket(path));
  ::close(fd);
}

TEST(StagedFiles, NothingIsReplacedBeforeTheCommit) {
  const TempFolder folder;
  folder.put("a", "old a");
  {
    StagedFiles files;
    files.add_text(folder / "a", "new a");
    files.add_text(folder / "b", "new b");
    EXPECT_EQ(slurp(folder / "a"), "old a");
    EXPECT_FALSE(std::filesystem::exists(folder / "b"));
    files.commit();
    EXPECT_EQ(slurp(folder / "a"), "new a");
    EXPECT_EQ(slurp(folder / "b"), "new b");
  }
  {
    StagedFiles files;
    files.add_text(folder / "a", "never");
  }
  EXPECT_EQ(slurp(folder / "a"), "new a");
  EXPECT_EQ(files_in(folder.path()), 2u) << "a temporary file is left";
}

TEST(StagedFiles, OneThatCannotBeReplacedKeepsAll) {
  const TempFolder folder;
  folder.put("a", "old");
  StagedFiles files;
  files.add_text(folder / "a", "new");
  files.add_text(folder / "b", "new");
  std::filesystem::create_directory(folder / "b");
  EXPECT_CONTAINS(error_of<FileError>([&] { files.commit(); }), "folder");
  EXPECT_EQ(slurp(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 2u) << "a temporary file is left";
}

TEST(AtomicFile, AKillLeavesOldOrNewWhole) {
  const TempFolder folder;
  const auto path = folder / "state";
  const std::string a(300'000, 'a');
  const std::string b(500'000, 'b');
  write_text_file(path, a);
  for (int round = 0; round < 15; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        write_text_file(path, b);
        write_text_file(path, a);
      }
    }
    ::usleep(static_cast<useconds_t>(1000 + 1777 * round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself";
    const std::string now = slurp(path);
    ASSERT_TRUE(now == a || now == b) << "torn file of " << now.size() << " bytes";
  }
  write_text_file(path, "done");  // leftovers of killed writers are in nobody's way
  EXPECT_EQ(slurp(path), "done");
}

TEST(AtomicFile, ThreadsReplaceWholeFiles) {
  const TempFolder folder;
  const auto path = folder / "shared";
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'e'; ++c) {
    threads.emplace_back([&path, c] {
      for (int i = 0; i < 20; ++i) write_text_file(path, std::string(10'000, c));
    });
  }
  for (auto& thread : threads) thread.join();
  const auto text = read_text_file(path);
  ASSERT_EQ(text.size(), 10'000u);
  EXPECT_EQ(text, std::string(10'000, text[0]));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(ReadTextFile, NamesWhatIsWrong) {
  const TempFolder folder;
  EXPECT_CONTAINS(error_of<FileError>([&] { read_text_file(folder / "absent.json"); }), "absent.json");
  EXPECT_CONTAINS(error_of<FileError>([&] { read_text_file(folder.path()); }), "folder");
  EXPECT_CONTAINS(error_of<FileError>([&] { read_text_file("/dev/zero"); }), "regular file");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_CONTAINS(error_of<FileError>([&] { read_text_file(folder / "pipe"); }), "regular file");
  const auto path = folder.put("ten", "0123456789");
  EXPECT_EQ(read_text_file(path, 10), "0123456789");
  EXPECT_CONTAINS(error_of<FileError>([&] { read_text_file(path, 9); }), "limit");
}

}  // namespace
}  // namespace caldera
