// KeyRing: the keys that requests may have, and how much each may ask for.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lm/base/sha256.h"

namespace caldera::serve {

struct KeyLimits {
  std::string name;  ///< in logs
  std::optional<double> requests_per_minute;
  std::optional<double> tokens_per_minute;  ///< of prompts and answers
  std::optional<std::int64_t> clients;      ///< requests that are answered at once
};

/// Knows keys by their hashes alone. May be used from any thread.
class KeyRing {
 public:
  class Use;

  /// A key without limits; empty: none.
  explicit KeyRing(const std::string& key = {});
  /// Adds those of a file: {"keys": [{"name", "key" or "sha256" (64 hexadecimal digits),
  /// "requests_per_minute", "tokens_per_minute", "clients"}]}, limits may be missing. Throws FileError.
  void add_file(const std::filesystem::path& path);
  void add(const std::string& key, const KeyLimits& limits) { add(Sha256().add(key).digest(), limits); }

  /// Has the keys of another ring in place of its own. What keys of both have used stays used, and requests
  /// that have begun with a key that is no more go on.
  void replace(KeyRing&& other);

  /// Whether a key is asked for at all.
  bool locks() const;
  /// Throws ApiError 401 for a key that is none of them.
  void check(const std::string& key) const;
  /// Begins a request of a key, which lasts as long as what is returned. Null where no key is asked for.
  /// Throws ApiError: 401, or 429 with the time after which it may be tried again.
  std::shared_ptr<Use> begin(const std::string& key);

 private:
  using Clock = std::chrono::steady_clock;
  /// Holds what may be had at once: a minute's share, which comes back as time passes.
  struct Bucket {
    double left = 0;
    Clock::time_point at = Clock::now();
    void refill(double per_minute);
  };
  struct Key {
    Sha256::Digest digest{};
    KeyLimits limits;
    Bucket requests, tokens;
    std::int64_t clients = 0;
  };

  void add(const Sha256::Digest& digest, const KeyLimits& limits);
  std::shared_ptr<Key> find(const std::string& key) const;

  mutable std::mutex mutex_;  // of what follows
  std::vector<std::shared_ptr<Key>> keys_;
};

/// A request of a key.
class KeyRing::Use {
 public:
  Use(KeyRing& ring, std::shared_ptr<Key> key)
      : ring_(ring), key_(std::move(key)), name_(key_->limits.name) {}
  ~Use();
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  const std::string& name() const { return name_; }
  /// Takes tokens off what the key may have.
  void count_tokens(std::int64_t tokens);

 private:
  KeyRing& ring_;
  std::shared_ptr<Key> key_;
  std::string name_;
};

}  // namespace caldera::serve
