#include "training/checkpoints/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include "engine/base/byte_size.h"
#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/file_descriptor.h"
#include "lm/base/staged_folder.h"
#include "lm/base/temporary_name.h"

namespace caldera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCheckpoint = "checkpoint-";

/// The step of a checkpoint's name; nothing for another name.
std::optional<std::int64_t> step_of(const fs::path& name) {
  const std::string text = name.string();
  if (!text.starts_with(kCheckpoint)) return std::nullopt;
  std::int64_t step = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + kCheckpoint.size(), end, step);
  return error == std::errc() && stopped == end && step >= 0 ? std::optional(step) : std::nullopt;
}

/// Removes a folder so that no half of it is ever under its name.
void retire(const fs::path& folder) {
  std::error_code error;
  const fs::path away = folder.parent_path() / detail::temporary_name();
  fs::rename(folder, away, error);
  if (!error) fs::remove_all(away, error);
}

std::string text_or_nothing(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? read_text_file(path) : std::string();
}

/// Puts a file that is on the disk already at `to`: as a second name of it, or else as a copy.
void put_file(const fs::path& from, const fs::path& to) {
  const fs::path second = to.parent_path() / detail::temporary_name();
  if (::link(from.c_str(), second.c_str()) != 0) {
    std::error_code error;
    if (!fs::copy_file(from, second, error))
      throw FileError(fmt::format("cannot write {}: {}", to.string(), error.message()));
  }
  std::error_code error;
  fs::rename(second, to, error);
  if (error) throw FileError(fmt::format("cannot write {}: {}", to.string(), error.message()));
}

/// The files of a checkpoint that load, the marker last: without it the rest is no model.
std::vector<fs::path> model_files(const fs::path& checkpoint, const std::string& marker) {
  std::vector<fs::path> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint)) {
    const fs::path name = entry.path().filename();
    if (name != kTrainStateFile && name != marker) names.push_back(name);
  }
  std::ranges::sort(names);
  names.emplace_back(marker);
  return names;
}

}  // namespace

std::vector<std::int64_t> checkpoint_steps(const fs::path& run_folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(run_folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto step = step_of(entry->path().filename());
    if (step && fs::exists(entry->path() / kTrainStateFile, error)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

fs::path checkpoint_path(const fs::path& run_folder, std::int64_t step) {
  return run_folder / fmt::format("{}{}", kCheckpoint, step);
}

std::optional<fs::path> find_train_state(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path / kTrainStateFile, error)) return path / kTrainStateFile;
  const std::vector<std::int64_t> steps = checkpoint_steps(path);
  if (steps.empty()) return std::nullopt;
  return checkpoint_path(path, steps.back()) / kTrainStateFile;
}

RunFolder::RunFolder(fs::path path, RunFolderOptions options, WriteModel write_model)
    : path_(std::move(path)), options_(std::move(options)), write_model_(std::move(write_model)) {}

RunFolder::~RunFolder() {
  lock_.reset();
  // Those in which nothing was written.
  for (const fs::path& folder : created_)
    if (::rmdir(folder.c_str()) != 0) break;
}

void RunFolder::open() {
  std::error_code error;
  for (fs::path folder = fs::absolute(path_, error).lexically_normal();
       !error && folder.has_relative_path() && !fs::exists(folder, error); folder = folder.parent_path())
    if (folder.has_filename()) created_.push_back(folder);
  fs::create_directories(path_, error);
  if (!error) path_ = fs::canonical(path_, error);  // a link to the folder stays one
  if (error)
    throw FileError(fmt::format("{}: cannot create the folder: {}", path_.string(), error.message()));
  lock_ = std::make_unique<RunLock>(path_);
  detail::remove_leftovers(path_);
  detail::remove_leftovers(path_.parent_path(), path_.filename().string());
}

void RunFolder::check_space(std::uint64_t bytes) const {
  const fs::path probe = path_ / detail::temporary_name();
  const detail::FileDescriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  int error = file ? 0 : errno;
  if (file) {
    ::unlink(probe.c_str());
    if (bytes > 0) error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  }
  const bool cannot_tell = error == EINVAL || error == EOPNOTSUPP || error == ENOSYS;
  if (error != 0 && !cannot_tell)
    throw FileError(fmt::format("{}: there is no room for checkpoints of {}: {}", path_.string(),
                                format_bytes(static_cast<std::int64_t>(bytes)),
                                std::generic_category().message(error)));
}

void RunFolder::fill(const fs::path& folder, const TrainState& state) const {
  StagedFiles files;
  write_model_(folder, files);
  write_train_state(files, folder / kTrainStateFile, state);
  files.commit();
}

void RunFolder::write_notes(const fs::path& folder) const {
  StagedFiles files;
  for (const auto& [name, text] : options_.notes) files.add_text(folder / name, text);
  files.commit();
}

void RunFolder::save(const TrainState& state, bool publish) {
  const fs::path folder = checkpoint_path(path_, state.step);
  if (!saved_ && (options_.replace || !fs::exists(path_ / options_.marker))) publish = true;
  const bool replaces = !saved_ && options_.replace;
  if (!replaces || !replace_all(folder.filename(), state, publish)) {
    StagedFolder staged(folder);
    fill(staged.path(), state);
    staged.commit([](const fs::path&) { return false; });
    // The file system cannot exchange folders: the marker goes first, so that what is left is no model,
    // rather than the weights of one with the configuration of another.
    std::error_code error;
    if (replaces) fs::remove(path_ / options_.marker, error);
    // Checkpoints of a later step are of the run that this one turned away from.
    if (!saved_)
      for (const std::int64_t step : checkpoint_steps(path_))
        if (step > state.step || (replaces && step != state.step)) retire(checkpoint_path(path_, step));
    if (!saved_) write_notes(path_);
    if (publish) this->publish(folder);
  }
  saved_ = true;
  drop_old(state);
}

bool RunFolder::replace_all(const fs::path& checkpoint, const TrainState& state, bool publish) {
  const auto is_of_a_run = [&](const fs::path& entry) {
    return step_of(entry).has_value() || options_.notes.contains(entry.string());
  };
  try {
    StagedFolder staged(path_);
    fs::create_directory(staged.path() / checkpoint);
    fill(staged.path() / checkpoint, state);
    write_notes(staged.path());
    const std::vector<fs::path> files = model_files(staged.path() / checkpoint, options_.marker);
    if (publish)
      for (const fs::path& file : files) put_file(staged.path() / checkpoint / file, staged.path() / file);
    staged.commit([&](const fs::path& entry) {
      return !is_of_a_run(entry) && std::ranges::find(files, entry) == files.end();
    });
    return true;
  } catch (const FileError&) {
    return false;
  }
}

void RunFolder::publish(const fs::path& checkpoint) const {
  const std::vector<fs::path> files = model_files(checkpoint, options_.marker);
  const std::string before = text_or_nothing(path_ / options_.marker);
  if (!before.empty() && before != read_text_file(checkpoint / options_.marker)) {
    try {
      StagedFolder staged(path_);
      for (const fs::path& file : files) put_file(checkpoint / file, staged.path() / file);
      return staged.commit();
    } catch (const FileError&) {  // as in save()
      std::error_code error;
      fs::remove(path_ / options_.marker, error);
    }
  }
  for (const fs::path& file : files) put_file(checkpoint / file, path_ / file);
}

void RunFolder::drop_old(const TrainState& state) const {
  const std::vector<std::int64_t> steps = checkpoint_steps(path_);
  for (std::int64_t i = 0; i + options_.keep < std::ssize(steps); ++i) {
    const std::int64_t step = steps[static_cast<std::size_t>(i)];
    if (!state.best || state.best->step != step) retire(checkpoint_path(path_, step));
  }
}

}  // namespace caldera
