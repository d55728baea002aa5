// LineFile: a file of lines, or of other records, that grows while a run goes on. Private to training/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace caldera::detail {

/// Says whether a line of a log is a JSON object whose "step", or a row of a table whose first number, is at
/// most `step`: what a run that goes on from there keeps.
bool is_json_until(const std::string& line, std::int64_t step);
bool is_row_until(const std::string& line, std::int64_t step);

/// Takes whole lines, each there as soon as it is written. Where writing fails (a full disk) it warns once,
/// leaves no half line, and goes on when it can.
class LineFile {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// `what` is what the warning calls the file. Without `warn` warnings go to standard error.
  LineFile(std::filesystem::path path, std::string what, Warn warn);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Begins the file with the lines of the earlier one that `keep` is true of; with none, where `keep` is
  /// empty.
  void begin(const std::function<bool(const std::string& line)>& keep);
  void write(const std::string& line);
  /// Writes a record that is no line, whole or not at all.
  void append(const std::string& bytes);
  void close();

 private:
  struct File;
  void fail(int error);

  std::filesystem::path path_;
  std::string what_;
  Warn warn_;
  std::unique_ptr<File> file_;
  std::int64_t size_ = 0;  // of what was written whole
  bool warned_ = false;
};

}  // namespace caldera::detail
