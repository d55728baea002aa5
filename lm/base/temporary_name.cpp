#include "lm/base/temporary_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

namespace caldera::detail {
namespace {

constexpr std::string_view kMark = ".caldera-";
constexpr std::string_view kEnd = ".tmp";

/// The process that made a file of this name; nothing where the name is none of ours, or another owner's.
std::optional<pid_t> writer_of(std::string_view name, std::string_view owner) {
  const std::size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos || !name.starts_with('.') || !name.ends_with(kEnd)) return std::nullopt;
  if (!owner.empty() && name.substr(1, mark > 0 ? mark - 1 : 0) != owner) return std::nullopt;
  std::string_view numbers = name.substr(mark + kMark.size());
  numbers.remove_suffix(kEnd.size());
  const auto read_number = [&](auto& number) {
    const auto [stopped, error] = std::from_chars(numbers.data(), numbers.data() + numbers.size(), number);
    numbers.remove_prefix(static_cast<std::size_t>(stopped - numbers.data()));
    return error == std::errc();
  };
  pid_t process = 0;
  std::uint64_t number = 0;
  if (!read_number(process) || process <= 0 || !numbers.starts_with('-')) return std::nullopt;
  numbers.remove_prefix(1);
  if (!read_number(number) || !numbers.empty()) return std::nullopt;
  return process;
}

/// A process of our own number wrote it in an earlier life of that number.
bool still_runs(pid_t process) {
  return process != ::getpid() && (::kill(process, 0) == 0 || errno == EPERM);
}

}  // namespace

std::string temporary_name(std::string_view owner) {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("{}{}{}{}-{}{}", owner.empty() ? "" : ".", owner, kMark, ::getpid(),
                     counter.fetch_add(1), kEnd);
}

void remove_leftovers(const std::filesystem::path& folder, std::string_view owner) {
  std::vector<std::filesystem::path> leftovers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto writer = writer_of(entry->path().filename().string(), owner);
    if (writer && !still_runs(*writer)) leftovers.push_back(entry->path());
  }
  for (const auto& path : leftovers) std::filesystem::remove_all(path, error);
}

}  // namespace caldera::detail
