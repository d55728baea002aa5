#include "lm/serve/http/key_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/serve/protocol/fields.h"

namespace caldera::serve {
namespace {

constexpr double kMinute = 60;
constexpr std::size_t kMostKeys = 10000;

Sha256::Digest digest_of_hex(const std::string& text, const Fields& fields) {
  Sha256::Digest digest{};
  const auto value = [&](char c) {
    const std::size_t at = std::string_view("0123456789abcdef").find(c);
    if (at == std::string_view::npos || text.size() != 2 * digest.size())
      fields.fail("sha256", "must have 64 hexadecimal digits, in lower case");
    return static_cast<unsigned>(at);
  };
  if (text.empty()) fields.fail("sha256", "must have 64 hexadecimal digits, in lower case");
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned digit = value(text[i]);
    digest[i / 2] = static_cast<std::uint8_t>(digest[i / 2] * 16U + digit);
  }
  return digest;
}

ApiError limited(const std::string& what, double seconds) {
  ApiError error(429, "rate_limit_error", fmt::format("the key's {}; try again later", what), {},
                 "rate_limit_exceeded");
  error.retry_after(static_cast<int>(std::clamp(std::ceil(seconds), 1.0, 3600.0)));
  return error;
}

}  // namespace

KeyRing::KeyRing(const std::string& key) {
  if (!key.empty()) add(key, {.name = "key"});
}

void KeyRing::add(const Sha256::Digest& digest, const KeyLimits& limits) {
  auto key = std::make_shared<Key>();
  key->digest = digest;
  key->limits = limits;
  key->requests.left = limits.requests_per_minute.value_or(0);
  key->tokens.left = limits.tokens_per_minute.value_or(0);
  keys_.push_back(std::move(key));
}

void KeyRing::add_file(const std::filesystem::path& path) {
  try {
    const Json document = parse_body(read_text_file(path), 8);
    const Fields fields(document);
    fields.refuse_others({"keys"});
    const Json* list = fields.list("keys", kMostKeys);
    if (list == nullptr || list->empty()) fields.fail("keys", "must list at least one key");
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string at = fmt::format("keys[{}]", i);
      if (!(*list)[i].is_object()) fields.fail(at, "must be an object");
      const Fields entry((*list)[i], at + ".");
      entry.refuse_others({"name", "key", "sha256", "requests_per_minute", "tokens_per_minute", "clients"});
      KeyLimits limits;
      limits.name = entry.text("name").value_or(at);
      limits.requests_per_minute = entry.number("requests_per_minute", 0, 1e12);
      limits.tokens_per_minute = entry.number("tokens_per_minute", 0, 1e12);
      limits.clients = entry.integer("clients", 0, 1 << 20);
      const auto key = entry.text("key");
      const auto hash = entry.text("sha256");
      if (key.has_value() == hash.has_value() || (key && key->empty()))
        entry.fail("key", "or 'sha256' is missing: one of the two");
      const Sha256::Digest digest = key ? Sha256().add(*key).digest() : digest_of_hex(*hash, entry);
      if (std::ranges::any_of(keys_, [&](const auto& other) { return other->digest == digest; }))
        entry.fail("key", "is there twice");
      add(digest, limits);
    }
  } catch (const ApiError& error) {
    throw FileError(path.string() + ": " + error.what());
  }
}

void KeyRing::replace(KeyRing&& other) {
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<Key>& key : other.keys_) {
    const auto own = std::ranges::find_if(keys_, [&](const auto& k) { return k->digest == key->digest; });
    if (own == keys_.end()) continue;
    const auto left = [](const Bucket& used, std::optional<double> before, std::optional<double> now) {
      if (!now || !before) return now.value_or(0);  // nothing was counted
      return std::min(*now, used.left + *now - *before);
    };
    Key& known = **own;
    known.requests.left =
        left(known.requests, known.limits.requests_per_minute, key->limits.requests_per_minute);
    known.tokens.left = left(known.tokens, known.limits.tokens_per_minute, key->limits.tokens_per_minute);
    known.limits = key->limits;
    key = *own;
  }
  keys_ = std::move(other.keys_);
}

bool KeyRing::locks() const {
  const std::lock_guard lock(mutex_);
  return !keys_.empty();
}

/// Compares hashes: how long that takes says nothing about a key. The ring is locked.
std::shared_ptr<KeyRing::Key> KeyRing::find(const std::string& key) const {
  const Sha256::Digest digest = Sha256().add(key).digest();
  for (const auto& known : keys_)
    if (known->digest == digest) return known;
  throw ApiError(401, "authentication_error",
                 key.empty() ? "an API key is asked for: send \"Authorization: Bearer KEY\""
                             : "the API key is not the server's",
                 {}, "invalid_api_key");
}

void KeyRing::check(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  if (!keys_.empty()) find(key);
}

void KeyRing::Bucket::refill(double per_minute) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - at).count();
  left = std::min(per_minute, left + seconds * per_minute / kMinute);
  at = now;
}

std::shared_ptr<KeyRing::Use> KeyRing::begin(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (keys_.empty()) return nullptr;
  const std::shared_ptr<Key> known = find(key);
  Key& found = *known;
  const KeyLimits& limits = found.limits;
  if (limits.clients && found.clients >= *limits.clients)
    throw limited(fmt::format("{} requests at once are being answered", *limits.clients), 1);
  if (limits.tokens_per_minute) {
    found.tokens.refill(*limits.tokens_per_minute);
    if (found.tokens.left <= 0)
      throw limited(fmt::format("{:g} tokens a minute are used", *limits.tokens_per_minute),
                    kMinute * (1 - found.tokens.left) / std::max(*limits.tokens_per_minute, 1e-9));
  }
  if (limits.requests_per_minute) {
    found.requests.refill(*limits.requests_per_minute);
    if (found.requests.left < 1)
      throw limited(fmt::format("{:g} requests a minute are used", *limits.requests_per_minute),
                    kMinute * (1 - found.requests.left) / std::max(*limits.requests_per_minute, 1e-9));
    found.requests.left -= 1;
  }
  ++found.clients;
  return std::make_shared<Use>(*this, known);
}

KeyRing::Use::~Use() {
  const std::lock_guard lock(ring_.mutex_);
  --key_->clients;
}

void KeyRing::Use::count_tokens(std::int64_t tokens) {
  const std::lock_guard lock(ring_.mutex_);
  key_->tokens.left -= static_cast<double>(tokens);
}

}  // namespace caldera::serve
