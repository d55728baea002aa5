#include "training/trainer/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lm/base/file_descriptor.h"

namespace caldera::detail {

bool is_json_until(const std::string& line, std::int64_t step) {
  const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  return record.is_object() && record.contains("step") && record["step"].is_number_integer() &&
         record["step"].get<std::int64_t>() <= step;
}

bool is_row_until(const std::string& line, std::int64_t step) {
  std::int64_t of_line = 0;
  const auto [stopped, error] = std::from_chars(line.data(), line.data() + line.size(), of_line);
  return error == std::errc() && *stopped == ',' && of_line <= step;
}

struct LineFile::File : FileDescriptor {
  using FileDescriptor::FileDescriptor;
};

LineFile::LineFile(std::filesystem::path path, std::string what, Warn warn)
    : path_(std::move(path)), what_(std::move(what)), warn_(std::move(warn)) {
  if (!warn_) warn_ = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
}

LineFile::~LineFile() = default;

void LineFile::close() { file_.reset(); }

void LineFile::begin(const std::function<bool(const std::string& line)>& keep) {
  std::string kept;
  if (keep) {
    std::ifstream before(path_);
    // The last line is none unless it ends: a crash tore it.
    for (std::string line; std::getline(before, line) && !before.eof();)
      if (keep(line)) kept += line + '\n';
  }
  file_ = std::make_unique<File>(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!*file_) {
    file_.reset();
    return fail(errno);
  }
  size_ = 0;
  append(kept);
}

void LineFile::write(const std::string& line) { append(line + '\n'); }

void LineFile::append(const std::string& bytes) {
  if (!file_) return;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(file_->get(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      fail(wrote < 0 ? errno : ENOSPC);
      // No half line stays. A pipe has no length to cut; what it took, it took.
      if (::ftruncate(file_->get(), size_) == 0) ::lseek(file_->get(), size_, SEEK_SET);
      return;
    }
    done += static_cast<std::size_t>(wrote);
  }
  size_ += static_cast<std::int64_t>(bytes.size());
}

void LineFile::fail(int error) {
  if (warned_) return;
  warned_ = true;
  warn_(fmt::format("warning: {}: cannot write {} there ({}); the training goes on without it",
                    path_.string(), what_, std::generic_category().message(error)));
}

}  // namespace caldera::detail
