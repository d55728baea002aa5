#include "lm/tokenizers/stream_decoder.h"

#include "lm/base/unicode/utf8.h"

namespace caldera {
namespace {

/// Most tokens that an unfinished character can have (three bytes of four). Beyond them the oldest is broken
/// for good.
constexpr int kMaxUnfinished = 3;

/// Most tokens that add no text and are kept all the same, as what follows may depend on them; then those in
/// the midst go.
constexpr std::size_t kMaxSilent = 256;
constexpr std::size_t kKeptSilent = 64;  ///< at either end

}  // namespace

void StreamDecoder::prime(std::span<const std::int32_t> context) {
  window_.assign(context.begin(), context.end());
  pending_ = window_.size();
  forget();
}

void StreamDecoder::forget() {
  if (pending_ != window_.size() || pending_ <= kMaxSilent) return;
  window_.erase(window_.begin() + kKeptSilent, window_.end() - kKeptSilent);
  pending_ = window_.size();
}

std::string StreamDecoder::text(std::size_t begin, std::size_t end) const {
  return tokenizer_.decode(std::span(window_).subspan(begin, end - begin), skip_special_);
}

std::string StreamDecoder::release(std::size_t end) {
  const std::string before = text(0, pending_);
  const std::string now = text(0, end);
  // A run of bytes that turned out malformed may change how its beginning reads; what is out stays out.
  std::string piece = now.starts_with(before) ? now.substr(before.size()) : text(pending_, end);
  if (!piece.empty()) {
    window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(pending_));
    end -= pending_;
  }
  pending_ = end;
  forget();
  return piece;
}

std::string StreamDecoder::push(std::int32_t id) {
  const std::int32_t alone[] = {id};
  (void)tokenizer_.decode(alone, skip_special_);  // throws for a bad id, before anything has changed
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  window_.push_back(id);
  if (!text(0, window_.size()).ends_with(detail::kReplacementCharacter)) {
    unfinished_ = 0;
    return release(window_.size());
  }
  if (unfinished_ < kMaxUnfinished) {
    ++unfinished_;
    return {};
  }
  return release(pending_ + 1);
}

std::string StreamDecoder::finish() {
  unfinished_ = 0;
  return release(window_.size());
}

}  // namespace caldera
