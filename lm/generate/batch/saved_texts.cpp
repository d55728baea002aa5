// Texts in files: what a batch finds of a request's beginning there, and what it leaves.
#include "engine/runtime/runtime.h"
#include "lm/generate/batch/batch_scheduler.h"
#include "lm/generate/cache/prompt_cache.h"

namespace caldera {
namespace {

constexpr auto kPiece = static_cast<std::int64_t>(PromptCache::kPieceTokens);
// Shorter texts are computed sooner than a disk is asked.
constexpr std::int64_t kLeastSaved = 4 * kPiece;

}  // namespace

bool BatchScheduler::saves(const RunningRequest& request) const {
  return limits_.prompt_cache != nullptr && !changed_ && !request.scores_prompt();
}

/// Takes pieces of the request's beginning from files, all but its last token at most.
void BatchScheduler::restore(RunningRequest& request) {
  PromptCache& cache = *limits_.prompt_cache;
  PageStore& store = forward_->store();
  request.found_nothing_saved();
  if (request.waiting() < kLeastSaved) return;
  const auto ids = request.ids().first(static_cast<std::size_t>(request.ids().size() - 1));
  const std::vector<std::string> pieces = cache.pieces_of(request.saved_kind(), ids);
  for (auto i = static_cast<std::size_t>(request.fed() / kPiece); i < pieces.size(); ++i) {
    const auto begin = static_cast<std::int64_t>(i) * kPiece;
    const auto part = ids.subspan(static_cast<std::size_t>(begin), PromptCache::kPieceTokens);
    const bool was_there = cache.has(pieces[i]);
    const auto bytes = cache.load(pieces[i], part, forward_->row_bytes() * PromptCache::kPieceTokens);
    if (!bytes) {
      // Where one is damaged, others may be, and nothing would find them: all behind it are written again.
      const bool was_damaged = was_there && !cache.has(pieces[i]);
      for (std::size_t k = i + 1; was_damaged && k < pieces.size(); ++k) cache.drop(pieces[k]);
      break;
    }
    if (!request.reserve(store, begin + kPiece - request.fed())) break;
    // What of the piece was known holds the same numbers.
    forward_->set_rows(request.text(), begin, kPiece, *bytes);
    request.restored(store, begin + kPiece);
  }
  found(request);
}

/// Leaves the first `end` tokens of a text, which are computed, in files, but for what is there: up to where
/// a window has left something behind.
void BatchScheduler::save(const RunningRequest& request, std::int64_t end) {
  if (!saves(request) || std::ssize(request.ids()) < kLeastSaved) return;
  PromptCache& cache = *limits_.prompt_cache;
  const auto ids = request.ids().first(static_cast<std::size_t>(end));
  const std::vector<std::string> pieces = cache.pieces_of(request.saved_kind(), ids);
  try {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (cache.has(pieces[i])) continue;
      const auto begin = static_cast<std::int64_t>(i) * kPiece;
      if (!forward_->has_rows(request.text(), begin, kPiece)) return;
      cache.save(pieces[i], ids.subspan(static_cast<std::size_t>(begin), PromptCache::kPieceTokens),
                 forward_->rows(request.text(), begin, kPiece));
    }
  } catch (const Error&) {
    // What is not kept is computed; what is wrong with the device shows where it is used next.
  }
}

/// Leaves pieces that the next `count` tokens, which are computed, make whole, before a window gives them up.
void BatchScheduler::save_before_windows(const RunningRequest& request, std::int64_t count) {
  const std::int64_t end = request.fed() + count;
  if (end / kPiece > request.fed() / kPiece && forward_->has_windows()) save(request, end);
}

}  // namespace caldera
