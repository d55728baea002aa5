#include "lm/generate/cache/prompt_cache.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera {
namespace {

constexpr std::string_view kMagic = "CALDERA-PROMPT-1";
constexpr const char* kSuffix = ".prompt";
constexpr std::size_t kMostWaiting = std::size_t{512} << 20;  // bytes

/// A checksum of bytes that is as fast as reading them: four sums side by side.
std::uint64_t checksum(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
  std::uint64_t sums[4] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32)
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + 8 * lane, 8);
      sums[lane] = (sums[lane] ^ word) * kPrime;
      sums[lane] ^= sums[lane] >> 29;
    }
  std::uint64_t sum = bytes.size();
  for (; at < bytes.size(); ++at) sum = (sum ^ static_cast<std::uint64_t>(bytes[at])) * kPrime;
  for (const std::uint64_t lane : sums) {
    sum = (sum ^ lane) * kPrime;
    sum ^= sum >> 31;
  }
  return sum;
}

/// What stands in front of a piece's bytes: 16 of the magic, its name, its ids, and their checksum.
struct Header {
  char magic[16];
  char piece[64];
  std::int32_t ids[PromptCache::kPieceTokens];
  std::uint64_t bytes;
  std::uint64_t sum;
};

Header header_of(const std::string& piece, std::span<const std::int32_t> ids,
                 std::span<const std::byte> bytes) {
  Header header{};
  std::copy_n(kMagic.begin(), std::min(kMagic.size(), sizeof(header.magic)), header.magic);
  std::copy_n(piece.begin(), std::min(piece.size(), sizeof(header.piece)), header.piece);
  std::copy_n(ids.begin(), std::min(ids.size(), PromptCache::kPieceTokens), header.ids);
  header.bytes = bytes.size();
  header.sum = checksum(bytes);
  return header;
}

bool is_piece(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

PromptCache::PromptCache(std::filesystem::path folder, std::string identity, std::uint64_t max_bytes)
    : folder_(std::move(folder)), identity_(std::move(identity)), max_bytes_(max_bytes) {
  // What is there already, in the order in which it was used.
  std::vector<std::pair<std::filesystem::file_time_type, std::pair<std::string, std::uint64_t>>> found;
  try {
    std::filesystem::create_directories(folder_);
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().stem().string();
      if (entry.path().extension() != kSuffix || !is_piece(name) || !entry.is_regular_file()) continue;
      found.push_back({entry.last_write_time(), {name, entry.file_size()}});
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw FileError(folder_.string() + ": " + error.code().message());
  }
  std::ranges::sort(found);
  for (const auto& [time, file] : found) {
    files_[file.first] = {file.second, ++clock_};
    bytes_ += file.second;
  }
  make_room();
  thread_ = std::thread([this] { work(); });
}

PromptCache::~PromptCache() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::filesystem::path PromptCache::path_of(const std::string& piece) const {
  return folder_ / (piece + kSuffix);
}

std::vector<std::string> PromptCache::pieces_of(const std::string& kind,
                                                std::span<const std::int32_t> ids) const {
  Sha256 hash;
  hash.add(identity_).add(std::string_view("\0", 1)).add(kind).add(std::string_view("\0", 1));
  std::vector<std::string> pieces;
  for (; ids.size() >= kPieceTokens; ids = ids.subspan(kPieceTokens))
    pieces.push_back(hash.add(std::as_bytes(ids.first(kPieceTokens))).hex());
  return pieces;
}

bool PromptCache::has(const std::string& piece) const {
  const std::lock_guard lock(mutex_);
  return files_.contains(piece);
}

std::uint64_t PromptCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::optional<std::vector<std::byte>> PromptCache::load(const std::string& piece,
                                                        std::span<const std::int32_t> ids,
                                                        std::size_t bytes) {
  if (!has(piece)) return std::nullopt;
  const std::filesystem::path path = path_of(piece);
  std::vector<std::byte> content(bytes);
  Header header{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(bytes));
  const bool whole = file.good() && file.peek() == std::ifstream::traits_type::eof();
  const Header expected = header_of(piece, ids, content);
  if (!whole || std::memcmp(&header, &expected, sizeof(header)) != 0) {
    // One that waits to be written is not damaged, but not there yet.
    const std::lock_guard lock(mutex_);
    if (std::ranges::any_of(waiting_, [&](const Waiting& w) { return w.piece == piece; }) || writing_)
      return std::nullopt;
    remove_file(piece);
    return std::nullopt;
  }
  std::error_code ignored;
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
  const std::lock_guard lock(mutex_);
  if (const auto found = files_.find(piece); found != files_.end()) found->second.used = ++clock_;
  return content;
}

void PromptCache::drop(const std::string& piece) {
  const std::lock_guard lock(mutex_);
  remove_file(piece);
}

void PromptCache::remove_file(const std::string& piece) {
  std::error_code ignored;
  std::filesystem::remove(path_of(piece), ignored);
  forget(piece);
}

void PromptCache::save(const std::string& piece, std::span<const std::int32_t> ids,
                       std::vector<std::byte> bytes) {
  const Header header = header_of(piece, ids, bytes);
  const auto front = std::as_bytes(std::span(&header, 1));
  bytes.insert(bytes.begin(), front.begin(), front.end());
  {
    const std::lock_guard lock(mutex_);
    if (files_.contains(piece) || waiting_bytes_ + bytes.size() > kMostWaiting) return;
    files_[piece] = {bytes.size(), ++clock_};
    bytes_ += bytes.size();
    waiting_bytes_ += bytes.size();
    waiting_.push_back({piece, std::move(bytes)});
  }
  changed_.notify_all();
}

void PromptCache::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !writing_; });
}

void PromptCache::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
    if (waiting_.empty()) return;
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    lock.unlock();
    write(next);
    lock.lock();
    waiting_bytes_ -= next.content.size();
    writing_ = false;
    make_room();
    changed_.notify_all();
  }
}

void PromptCache::write(const Waiting& waiting) {
  try {
    const std::span<const std::byte> part(waiting.content);
    write_file_atomically(path_of(waiting.piece), {&part, 1});
  } catch (const Error&) {
    // A full disk: what is not kept is computed.
    const std::lock_guard lock(mutex_);
    forget(waiting.piece);
  }
}

void PromptCache::forget(const std::string& piece) {
  const auto found = files_.find(piece);
  if (found == files_.end()) return;
  bytes_ -= found->second.bytes;
  files_.erase(found);
}

/// Removes files that were not used for longest. What waits to be written stays.
void PromptCache::make_room() {
  while (bytes_ > max_bytes_ && !files_.empty()) {
    auto oldest = files_.end();
    for (auto it = files_.begin(); it != files_.end(); ++it) {
      const bool waits =
          std::ranges::any_of(waiting_, [&](const Waiting& w) { return w.piece == it->first; });
      if (!waits && (oldest == files_.end() || it->second.used < oldest->second.used)) oldest = it;
    }
    if (oldest == files_.end()) return;
    std::error_code ignored;
    std::filesystem::remove(path_of(oldest->first), ignored);
    bytes_ -= oldest->second.bytes;
    files_.erase(oldest);
  }
}

}  // namespace caldera
